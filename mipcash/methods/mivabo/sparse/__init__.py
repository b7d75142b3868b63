"""Sparse priors: scale mixtures of normals over the weights.

Read in this order:

mixture    the common part
posterior  their samples or bounds, and the linear model under them
"""
