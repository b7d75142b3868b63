"""Integrations of other libraries.

sklearn/ has searches, cross-validation and ensembles, optuna/ a sampler, spaces/ converters, ray an executor, trackers callbacks.

No module imports this package; ``Space.from_optuna`` and similar constructors find their converters by name.
"""
