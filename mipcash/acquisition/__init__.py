"""Acquisition functions, to be minimised, and the searches that minimise them over the legal points.

Read in this order:

    acquisition, analytic    The protocol, and closed forms of one posterior.
    catalogue                Acquisition inputs, and the functions by name.
    constrained, feasible_first    Expected improvement and Thompson sampling under outcome constraints.
    neighbourhood            Legal points around a point, in batches.
    mixed_search             Legal moves from a pool of points. The variant for wide spaces is wide_search.
    alternating, continuous_step    MIP and L-BFGS-B in turn, and the optimisation of numerical parameters at fixed levels.

To add a function, write it like one of analytic and enter it in catalogue.
"""
