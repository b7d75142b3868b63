"""mipcash: the best configuration of an expensive black box, under rules that are known in advance.

``import mipcash`` is light: solvers, Pyomo and scikit-learn are imported at first use. Read the rooms in this order:

    modelling/     the language of spaces;   program/   its compilation;   backends/   solvers;   space/   questions and answers
    surrogates/    models of outputs;   acquisition/   what they propose;   optimizers/   the default;   methods/   those of papers
    study/         runs, journals and results;   report/, integrations/ and cli/   what stands around them

errors, text, display, deadline, lazy and settings belong to no room; ``__main__`` runs the command line.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from mipcash.lazy import attributes_of

__version__ = "0.1.0"
"""The only definition of the version: wheel, command line and journals read it here."""

_HOMES = {
    "Space": "mipcash.space.space",
    "maximum": "mipcash.modelling.operators",
    "minimum": "mipcash.modelling.operators",
    "all_of": "mipcash.modelling.formulas",
    "any_of": "mipcash.modelling.formulas",
    "implies": "mipcash.modelling.formulas",
    "Real": "mipcash.modelling.domains",
    "Integer": "mipcash.modelling.domains",
    "Ordinal": "mipcash.modelling.domains",
    "Categorical": "mipcash.modelling.domains",
    "Solution": "mipcash.space.solution",
    "Study": "mipcash.study.study",
    "Trial": "mipcash.study.trial",
    "Failed": "mipcash.study.trial",
    "CrossValidated": "mipcash.integrations.sklearn.cross_validated",
    "Folds": "mipcash.study.folds",
    "ensemble": "mipcash.integrations.sklearn.ensemble",
    "Confirm": "mipcash.study.confirm",
    "Budget": "mipcash.study.spending",
    "Cost": "mipcash.study.spending",
    "Execution": "mipcash.study.execution",
    "Journal": "mipcash.study.storage.registry",
    "Method": "mipcash.study.method",
    "Steps": "mipcash.study.spending",
    "Racing": "mipcash.study.pruning",
    "Halving": "mipcash.study.pruning",
    "Result": "mipcash.study.result",
    "minimize": "mipcash.study.minimize",
    "read_trials": "mipcash.study.records.tables",
}

_MODULES = ("errors", "settings")
"""For ``except mc.errors.SpaceError`` and ``mc.settings.HybridSettings``."""
__all__ = ["__version__", *_MODULES, *sorted(_HOMES)]

if TYPE_CHECKING:
    from mipcash import errors as errors
    from mipcash import settings as settings
    from mipcash.integrations.sklearn.cross_validated import CrossValidated as CrossValidated
    from mipcash.integrations.sklearn.ensemble import ensemble as ensemble
    from mipcash.modelling.domains import Categorical as Categorical
    from mipcash.modelling.domains import Integer as Integer
    from mipcash.modelling.domains import Ordinal as Ordinal
    from mipcash.modelling.domains import Real as Real
    from mipcash.modelling.formulas import all_of as all_of
    from mipcash.modelling.formulas import any_of as any_of
    from mipcash.modelling.formulas import implies as implies
    from mipcash.modelling.operators import maximum as maximum
    from mipcash.modelling.operators import minimum as minimum
    from mipcash.space.solution import Solution as Solution
    from mipcash.space.space import Space as Space
    from mipcash.study.confirm import Confirm as Confirm
    from mipcash.study.execution import Execution as Execution
    from mipcash.study.folds import Folds as Folds
    from mipcash.study.method import Method as Method
    from mipcash.study.minimize import minimize as minimize
    from mipcash.study.pruning import Halving as Halving
    from mipcash.study.pruning import Racing as Racing
    from mipcash.study.records.tables import read_trials as read_trials
    from mipcash.study.result import Result as Result
    from mipcash.study.spending import Budget as Budget
    from mipcash.study.spending import Cost as Cost
    from mipcash.study.spending import Steps as Steps
    from mipcash.study.storage.registry import Journal as Journal
    from mipcash.study.study import Study as Study
    from mipcash.study.trial import Failed as Failed
    from mipcash.study.trial import Trial as Trial


if not TYPE_CHECKING:  # type checkers use the imports above and report unknown names themselves
    _attribute = attributes_of(__name__, _HOMES)

    def __getattr__(name: str) -> Any:
        if name in _MODULES:
            return import_module(f"mipcash.{name}")
        if name not in _HOMES:
            raise _unknown(name)
        return _attribute(name)

    def _unknown(name: str) -> AttributeError:
        from mipcash.text import did_you_mean

        moved = name in import_module("mipcash.settings").__all__
        hint = f"it is mipcash.settings.{name}" if moved else did_you_mean(name, __all__)
        return AttributeError(f"module 'mipcash' has no attribute {name!r}; {hint}")


def __dir__() -> list[str]:
    return sorted(__all__)
