"""Spaces of many layers, levels, parameters and rules: what the benchmark ``scale`` measures."""
