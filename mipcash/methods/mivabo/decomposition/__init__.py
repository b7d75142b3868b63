"""Dual decomposition: bounds over levels and numbers jointly."""
