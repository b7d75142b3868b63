"""Bayesian linear models over features (MiVaBO)."""
