"""Declared spaces with their objectives: one file each, to run by name and to copy."""
