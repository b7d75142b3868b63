"""Constrained max-value entropy search and rivals on ten hyperparameter problems with an outcome constraint."""
