"""Converters from spaces of other libraries, and back if the other library can express the space.

Read in this order:

shared                                                       the common part
from_configspace, optuna_distributions, param_distributions  one library each
"""
