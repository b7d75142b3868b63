"""Gaussian process models over points whose posterior mean and samples a MIP can minimise.

Read in this order:

    protocols        Surrogate, Posterior, Section, MixedFunction: the contract with the searches
    structured/      the model of the default: effects, pairs and a joint kernel over the numbers, with a residual
    level_kernels    covariances of the levels of a group
    interactions     which pairs of parameters may interact
    limit_scale      the scale on which an output with an outcome constraint is learned

cosines, fourier, covariance and maximum are numerical parts that several models share. No module here knows a solver.
"""
