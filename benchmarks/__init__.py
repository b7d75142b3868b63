"""Benchmarks: claims and comparisons as registered runs, ``python -m benchmarks list``."""
