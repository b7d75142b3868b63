"""Gaussian process models over points, whose posterior mean and samples a mixed-integer program can minimise.

Read in this order:

    protocols        Surrogate, Posterior, Section, MixedFunction: the interface between models and searches.
    structured/      The default model: effects, pairs and a joint kernel over the numerical parameters, with a residual.
    level_kernels    Covariances of the levels of a group.
    limit_scale      The scale on which an output with an outcome constraint is modelled.

cosines, covariance and maximum are numerical parts that several models share. No module here depends on a solver.
"""
