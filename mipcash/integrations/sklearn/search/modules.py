"""Pipelines made of the modules of a space: each module a step, each of its algorithms an estimator."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from sklearn.base import clone, is_classifier, is_regressor
from sklearn.pipeline import Pipeline

from mipcash.errors import SpaceError
from mipcash.modelling.domains import Permutation
from mipcash.modelling.parameters import ModuleParameter
from mipcash.space.space import Space
from mipcash.text import did_you_mean, shown

NOTHING = ("none", "passthrough")
"""Algorithms that omit their step."""


@dataclass(frozen=True)
class ModulePipelines:
    """Builds the pipeline of a configuration.

    Attributes:
        modules: steps in the order in which they run, unless an ordering changes it.
        estimators: by module and algorithm; None: the step is omitted.
        orders: orderings, with the modules that each of them orders.
        seed: of every random estimator without a ``random_state`` of its own.
    """

    modules: Sequence[str]
    estimators: Mapping[tuple[str, str], Any]
    orders: Mapping[str, Sequence[str]]
    seed: int

    @classmethod
    def of(cls, space: Space, given: Mapping[str, Any] | None, task: str | None, seed: int) -> ModulePipelines:
        """Make it from the modules of a space.

        Args:
            given: algorithm, or ``module.algorithm`` -> estimator or its class; other algorithms are scikit-learn's classes by
                name.
            task: ``classification`` or ``regression``, the task of the last module; None: any task.

        Raises:
            SpaceError: no modules, an algorithm that is no estimator or lacks a hyperparameter of the space, or a parameter that
                belongs to no module.
        """
        given = dict(given or {})
        modules = {n: p for n, p in space.parameters.items() if isinstance(p, ModuleParameter)}
        if not modules:
            raise SpaceError(
                f"space {space.name!r} has no modules to make a pipeline of; declare them, space.module('model', {{'SVC': {{'C': "
                "mc.Real(0.1, 100, log=True)}}), give build= a function of a configuration that returns an estimator, or "
                "use SpaceSearchCV(estimator, space)"
            )
        orders = {n: p.domain.members for n, p in space.parameters.items() if isinstance(p.domain, Permutation)}
        _check_parameters(space, modules, orders)
        listed = [(m, a) for m, p in modules.items() for a in p.hyperparameters]
        _check_given(given, listed)
        found = {(m, a): _estimator(m, a, given) for m, a in listed}
        for (module, algorithm), estimator in found.items():
            for hyper in modules[module].hyperparameters[algorithm]:
                _check_hyper(module, algorithm, estimator, hyper)
        last = list(modules)[-1]
        for algorithm in modules[last].hyperparameters:
            _check_last(last, algorithm, found[last, algorithm], task)
        return cls(tuple(modules), found, orders, seed)

    def __call__(self, config: Mapping[str, Any]) -> Pipeline:
        """Return an unfitted pipeline, without inactive and omitted modules."""
        steps = []
        for module in self._in_order(config):
            algorithm = config.get(module)
            estimator = None if algorithm is None else self.estimators[module, algorithm]
            if estimator is None:
                continue
            begin = f"{module}.{algorithm}."
            tuned = {n.removeprefix(begin): v for n, v in config.items() if n.startswith(begin)}
            steps.append((module, self._seeded(clone(estimator)).set_params(**clone(tuned, safe=False))))
        return Pipeline(steps)

    def _in_order(self, config: Mapping[str, Any]) -> Iterator[str]:
        """Yield modules in running order: ordered modules exchange places among themselves."""
        places = {name: iter(config[name]) for name in self.orders if name in config}
        ordered = {m: places[name] for name, members in self.orders.items() if name in places for m in members}
        for module in self.modules:
            yield next(ordered[module]) if module in ordered else module

    def _seeded(self, estimator: Any) -> Any:
        unset = {
            name: self.seed
            for name, value in estimator.get_params().items()
            if value is None and (name == "random_state" or name.endswith("__random_state"))
        }
        return estimator.set_params(**unset)


@lru_cache(maxsize=1)
def known_estimators() -> Mapping[str, type]:
    """Return scikit-learn's estimators by the name of their class."""
    from sklearn.utils import all_estimators

    return dict(all_estimators())


def _estimator(module: str, algorithm: str, given: Mapping[str, Any]) -> Any:
    """Return the estimator of an algorithm, or None if the step is omitted."""
    found = given.get(f"{module}.{algorithm}", given.get(algorithm))
    if isinstance(found, str) and found in NOTHING:
        return None
    if found is None and (algorithm in given or algorithm in NOTHING):
        return None
    if found is None:
        found = known_estimators().get(algorithm)
    if found is None:
        near = did_you_mean(algorithm, known_estimators(), "")
        hint = f"{near} Or give" if near else "give"
        raise SpaceError(
            f"algorithm {algorithm!r} of module {module!r} is no estimator of scikit-learn; {hint} it as "
            f"estimators={{{algorithm!r}: YourEstimator()}}"
        )
    try:
        estimator = found() if isinstance(found, type) else found
    except TypeError as error:
        raise SpaceError(
            f"algorithm {algorithm!r} of module {module!r} cannot be made without arguments ({error}); give it as "
            f"estimators={{{algorithm!r}: {algorithm}(...)}}"
        ) from error
    if not hasattr(estimator, "fit") or not hasattr(estimator, "get_params"):
        raise SpaceError(
            f"estimators={{{algorithm!r}: ...}} is {shown(estimator)}, which is no estimator: it has no fit and get_params; "
            "give one, its class, or 'passthrough'"
        )
    return estimator


def _check_parameters(
    space: Space, modules: Mapping[str, ModuleParameter], orders: Mapping[str, Sequence[str]]
) -> None:
    own = {f"{m}.{a}.{h}" for m, p in modules.items() for a, hypers in p.hyperparameters.items() for h in hypers}
    for name in space.parameters:
        if name not in own and name not in modules and name not in orders:
            raise SpaceError(
                f"parameter {name!r} of space {space.name!r} belongs to no module, so that no estimator takes it; declare it under "
                "its algorithm, space.module('model', {'SVC': {'C': mc.Real(0.1, 100)}}), or give build="
            )


def _check_given(given: Mapping[str, Any], found: Sequence[tuple[str, str]]) -> None:
    known = {name for module, algorithm in found for name in (algorithm, f"{module}.{algorithm}")}
    for name in given:
        if name not in known:
            raise SpaceError(
                f"estimators= names {name!r}, which is no algorithm of the space; {did_you_mean(name, sorted(known))}"
            )


def _check_hyper(module: str, algorithm: str, estimator: Any, hyper: str) -> None:
    known = [] if estimator is None else list(estimator.get_params())
    if hyper in known:
        return
    name = f"{module}.{algorithm}.{hyper}"
    if estimator is None:
        raise SpaceError(f"parameter {name!r} is of an algorithm that leaves its step out; take it out of the space")
    raise SpaceError(
        f"parameter {name!r}: {type(estimator).__name__} has no parameter {hyper!r}; {did_you_mean(hyper, known)}"
    )


def _check_last(module: str, algorithm: str, estimator: Any, task: str | None) -> None:
    of = f"algorithm {algorithm!r} of the last module {module!r}"
    if estimator is None or not hasattr(estimator, "predict"):
        raise SpaceError(
            f"{of} predicts nothing; the module that is declared last must have the classifiers or regressors"
        )
    wanted = {"classification": is_classifier, "regression": is_regressor}.get(task or "")
    if wanted is not None and not wanted(estimator):
        raise SpaceError(f"{of} is no estimator of {task}; take it out, or pass another task= or scoring=")
