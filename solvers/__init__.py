"""Solver profiles: one TOML file each."""
