"""Searches with scikit-learn's conventions: what ``fit`` of a search estimator is made of."""
