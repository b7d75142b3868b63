"""Fuzzing harness: it compares the library with brute force on random spaces. The tests check the harness itself."""
