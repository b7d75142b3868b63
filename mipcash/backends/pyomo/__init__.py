"""Solvers called through Pyomo, by their profiles."""
