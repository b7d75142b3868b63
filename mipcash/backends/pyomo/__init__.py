"""Solvers called through Pyomo, by their profiles.

Read in this order:

interfaces  the two families of interfaces of Pyomo
backend     the solver
"""
