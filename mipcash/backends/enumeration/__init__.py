"""Proofs by soft consistency and enumeration, without a solver.

Read in this order:

network    a program at fixed numbers as variables with pairwise costs
bounds     lower bounds
branching  branch and bound
backend    the three as a solver
"""
