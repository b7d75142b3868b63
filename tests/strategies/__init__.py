"""Hypothesis strategies and independent oracles, shared by all tests."""
