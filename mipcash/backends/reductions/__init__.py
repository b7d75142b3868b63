"""Reformulations that make programs smaller, tighter or better scaled for a solver, each with its inverse.

Read in this order:

reduction                         the protocol
product_columns                   quadratic objectives as linear ones
tightening, large_steps, scaling  coefficients
pruned_products                   fewer products, with a bound on the error
mccormick                         products of two reals
"""
