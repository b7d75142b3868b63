"""Rivals: optimizers for comparisons, entry points of ``mipcash.optimizers`` (``benchmarks/pyproject.toml``).

adaptive_percentile.py    treatment of outcome constraints, on the surrogates of ``hybrid``
joint_gp.py               one relaxed Gaussian process, rounded (Daxberger et al. 2019, Section 5, "GPyOpt")
"""
