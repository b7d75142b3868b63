"""Rivals: optimizers for comparisons, entry points of ``mipcash.optimizers`` (``benchmarks/pyproject.toml``).

constraints.py    treatments of outcome constraints, on the surrogates of ``hybrid``
annealing.py      simulated annealing instead of the MIP (Daxberger et al. 2019, Section 5)
joint_gp.py       one relaxed Gaussian process, rounded (the same section, "GPyOpt")
"""
