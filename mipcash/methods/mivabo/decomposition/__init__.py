"""Dual decomposition: bounds over levels and numerical parameters jointly."""
