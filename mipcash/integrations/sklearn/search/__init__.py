"""Searches with scikit-learn's conventions.

Read in this order:

search                         ``fit``, attributes and methods of both searches
space_search, pipeline_search  the two searches
objective, folds, limited      the objective, its folds, and outcome constraints
modules, preparation           pipelines of modules, and tables in front of them
results, belonging, executors  ``cv_results_``, identity of scores, workers
"""
