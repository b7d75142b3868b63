"""scikit-learn: searches with its conventions, cross-validated objectives, and ensembles of evaluated configurations.

Read in this order:

cross_validated  an objective that cross-validates, over splits, scoring and fitting
ensemble         several configurations as one estimator, from predictions, scored by predicted
measures         seconds and size of a fitted estimator
search/          the searches
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mipcash.lazy import attributes_of

_HOMES = {
    "CrossValidated": "mipcash.integrations.sklearn.cross_validated",
    "PipelineSearchCV": "mipcash.integrations.sklearn.search.pipeline_search",
    "SpaceSearchCV": "mipcash.integrations.sklearn.search.space_search",
    "ensemble": "mipcash.integrations.sklearn.ensemble",
}

__all__ = sorted(_HOMES)

if TYPE_CHECKING:
    from mipcash.integrations.sklearn.cross_validated import CrossValidated as CrossValidated
    from mipcash.integrations.sklearn.ensemble import ensemble as ensemble
    from mipcash.integrations.sklearn.search.pipeline_search import PipelineSearchCV as PipelineSearchCV
    from mipcash.integrations.sklearn.search.space_search import SpaceSearchCV as SpaceSearchCV

if not TYPE_CHECKING:
    __getattr__ = attributes_of(__name__, _HOMES)
