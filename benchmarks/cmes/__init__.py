"""Constrained max-value entropy search and rivals on ten problems of hyperparameters under a limit; a picture."""
