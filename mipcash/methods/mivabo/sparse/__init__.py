"""Sparse priors: scale mixtures of normals over the weights.

Read in this order:

mixture    the common part
gibbs      their samples
posterior  the linear model under them
"""
