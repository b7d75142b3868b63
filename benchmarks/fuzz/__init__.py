"""Differential fuzzing: drawn spaces, what they mean in exact fractions, and what the library says about them."""
