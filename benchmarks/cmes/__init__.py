"""Constrained max-value entropy search and rivals on ten problems of hyperparameters under a limit, and on the picture's problem."""
