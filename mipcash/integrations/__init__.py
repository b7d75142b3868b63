"""Other libraries: scikit-learn (searches, cross-validation, ensembles), Optuna (a sampler), and their spaces (``spaces/``).

Nothing imports this package; ``Space.from_optuna`` and its like find their converters by name.
"""
