"""Searches with scikit-learn's conventions: the parts of a search estimator's ``fit``."""
