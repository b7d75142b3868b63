"""Integrations of other libraries: scikit-learn (searches, cross-validation, ensembles), Optuna (a sampler), and ``spaces/``.

No module imports this package; ``Space.from_optuna`` and similar constructors find their converters by name.
"""
