"""Artificial objective of the ADMM papers: splitting methods, one Gaussian process over all parameters, and rivals."""
