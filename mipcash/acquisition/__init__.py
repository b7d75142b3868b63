"""Acquisition functions, to be minimised, and the searches that minimise them over the legal points.

Read in this order:

    acquisition, analytic    the contract, and closed forms of one posterior
    ingredients, catalogue   acquisition inputs, and the functions by name
    constrained              expected improvement under outcome constraints
    fantasies, per_cost      beside pending evaluations; per cost of decoupled evaluation
    neighbourhood            legal points around a point, many at once
    mixed_search             legal moves from a pool;   wide_search   the same in wide spaces
    alternating, continuous_step    MIP and L-BFGS-B in turn; the numbers beside fixed levels
    blocks, refinement       moves of whole modules; small steps at the incumbent

To add a function: write it like one of analytic, and enter it in catalogue.
"""
