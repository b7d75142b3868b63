"""Sparse priors: scale mixtures of normals over the weights."""
