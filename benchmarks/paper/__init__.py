"""The experiments of Daxberger et al., "Mixed-variable Bayesian optimization", run again."""
