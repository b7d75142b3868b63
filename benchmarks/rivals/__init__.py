"""Optimizers that the benchmarks compare with, entry points of ``mipcash.optimizers`` (``benchmarks/pyproject.toml``).

constraints.py    ways to treat outcome constraints, on the surrogates of ``hybrid``
annealing.py      simulated annealing in the place of the MIP (Daxberger et al. 2019, Section 5)
joint_gp.py       one relaxed Gaussian process, rounded (the same section, "GPyOpt")
"""
