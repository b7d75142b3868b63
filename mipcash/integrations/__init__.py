"""Other libraries: scikit-learn (searches, cross-validated objectives, ensembles) and Optuna (a sampler).

Nothing imports this package.
"""
