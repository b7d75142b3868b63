"""Benchmarks: claims and comparisons as registered runs, listed by ``python -m benchmarks list``."""
