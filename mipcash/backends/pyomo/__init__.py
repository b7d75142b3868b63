"""Solvers that Pyomo drives, by their profiles."""
