"""scikit-learn: searches with its conventions, cross-validated objectives, and fitted estimators made of what a run found."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

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

    def __getattr__(name: str) -> Any:
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}; it has {', '.join(__all__)}")
        value = getattr(import_module(_HOMES[name]), name)
        globals()[name] = value
        return value
