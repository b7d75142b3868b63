"""Reformulations that make programs smaller, tighter or better scaled for a solver, each with its inverse."""
