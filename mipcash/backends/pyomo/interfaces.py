"""The two families of solver interfaces in Pyomo, behind one protocol.

    contrib   ``pyomo.contrib.solver``: gurobi_persistent, gurobi_direct, scip_persistent, highs, ...
    legacy    ``pyomo.environ.SolverFactory``: cplex_persistent, cplex_direct, xpress_persistent, glpk, cbc, ...

A model is edited in place (objective, bounds, cuts) and passed again. A persistent interface detects the changes, or receives a
list of them.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pyomo.environ as pyo

from mipcash.backends.profiles import OptionValue, PyomoProfile
from mipcash.backends.task import FEASIBLE, INFEASIBLE, OPTIMAL, UNKNOWN
from mipcash.errors import SolverError
from mipcash.program.forms import Vector


@dataclass(frozen=True)
class Report:
    """A solver's result for a model.

    Attributes:
        status: see ``mipcash.backends.task.Answer``.
        values: of the columns, shape (n_columns,), nan for columns that the solver never received; None without an incumbent.
        bound: lower bound on the model's objective; -inf if there is none.
    """

    status: str
    values: Vector | None
    bound: float


@dataclass(frozen=True)
class Edits:
    """Changes of a model since it was last passed to the solver.

    Attributes:
        bounds: variables with other bounds.
        added, removed: constraints.
    """

    bounds: Sequence[Any] = ()
    added: Sequence[Any] = ()
    removed: Sequence[Any] = ()


class Interface(Protocol):
    """One solver with one model."""

    def solve(self, edits: Edits, options: Mapping[str, OptionValue], warm: bool) -> Report:
        """Minimise the model in its present state; ``warm`` starts from the values of its variables.

        Raises:
            SolverError: the solver stopped for a reason that is neither a proof nor a limit.
            Exception: whatever the solver raises, including its size limit.
        """


def make_interface(profile: PyomoProfile, name: str, model: Any, columns: Sequence[Any]) -> Interface:
    """Make the interface that a profile names.

    Args:
        name: of the solver, for messages.
        model: the Pyomo model, its objective being ``model.cost``.
        columns: its variables in the order of the program's columns.

    Raises:
        SolverError: this version of Pyomo does not know the solver.
    """
    kind = ContribInterface if profile.interface == "contrib" else LegacyInterface
    return kind(profile, name, model, columns)


class ContribInterface:
    """A solver of ``pyomo.contrib.solver``; a persistent one checks for changes of the kinds that the backend makes."""

    def __init__(self, profile: PyomoProfile, name: str, model: Any, columns: Sequence[Any]) -> None:
        self._name, self._model, self._columns = name, model, columns
        try:
            from pyomo.contrib.solver.common.factory import SolverFactory

            self._solver = SolverFactory(profile.factory)
        except ImportError:
            self._solver = None
        # for an unknown name a factory returns an object that is not a solver
        if self._solver is None or not hasattr(self._solver, "config"):
            raise _unknown(name, profile)
        updates: Any = getattr(self._solver.config, "auto_updates", None)
        watched = {
            "check_for_new_or_removed_constraints",
            "check_for_new_objective",
            "check_for_new_or_removed_objectives",
            "update_vars",
            "check_for_new_or_removed_vars",
        }
        for key in updates if updates is not None else ():
            updates[key] = key in watched

    def solve(self, edits: Edits, options: Mapping[str, OptionValue], warm: bool) -> Report:
        """See ``Interface``."""
        _forget(self._solver)
        given: dict[str, Any] = {"warmstart_discrete_vars": True} if warm else {}
        results = self._solver.solve(
            self._model,
            load_solutions=False,
            raise_exception_on_nonoptimal_result=False,
            solver_options=dict(options),
            **given,
        )
        values = self._values(results)
        bound = results.objective_bound
        bound = -math.inf if bound is None or not math.isfinite(bound) else float(bound)
        return Report(self._status(results, values is not None), values, bound)

    def _status(self, results: Any, has_incumbent: bool) -> str:
        condition = results.termination_condition.name
        if condition == "convergenceCriteriaSatisfied":
            return OPTIMAL
        if condition in ("provenInfeasible", "infeasibleOrUnbounded"):
            return INFEASIBLE  # every column is bounded, so the program is not unbounded
        if condition in ("maxTimeLimit", "iterationLimit", "interrupted", "objectiveLimit", "unknown"):
            return FEASIBLE if has_incumbent else UNKNOWN
        raise SolverError(f"{self._name} stopped with {condition!r}: there is no proof, and no limit was reached")

    def _values(self, results: Any) -> Vector | None:
        if results.solution_status.name not in ("optimal", "feasible"):
            return None
        loader = results.solution_loader
        found = loader.get_vars() if hasattr(loader, "get_vars") else loader.get_primals()
        return np.array([found.get(v, np.nan) for v in self._columns], dtype=float)


class LegacyInterface:
    """A solver of ``pyomo.environ.SolverFactory``; a persistent one receives the list of changes."""

    def __init__(self, profile: PyomoProfile, name: str, model: Any, columns: Sequence[Any]) -> None:
        self._profile, self._name, self._model, self._columns = profile, name, model, columns
        self._solver: Any = pyo.SolverFactory(profile.factory)
        if type(self._solver).__name__ == "UnknownSolver":
            raise _unknown(name, profile)
        if not self._solver.available(exception_flag=False):
            raise SolverError(f"Pyomo finds no {profile.factory!r} for solver {name!r}; check its installation")
        if profile.persistent:
            self._solver.set_instance(model)
            own: Any = getattr(self._solver, "_solver_model", None)
            # CPLEX prints a warning if its models are released only when the interpreter ends
            weakref.finalize(self, _end, own)
            # CPLEX prints an error before it raises it as an exception, which is reported anyway
            for stream in ("set_error_stream", "set_warning_stream"):
                if hasattr(own, stream):
                    getattr(own, stream)(None)

    def solve(self, edits: Edits, options: Mapping[str, OptionValue], warm: bool) -> Report:
        """See ``Interface``."""
        given: dict[str, Any] = {"load_solutions": False, "options": dict(options), "tee": False}
        if self._profile.persistent:
            _forget(self._solver)
            for constraint in edits.removed:
                self._solver.remove_constraint(constraint)
            for constraint in edits.added:
                self._solver.add_constraint(constraint)
            for variable in edits.bounds:
                self._solver.update_var(variable)
            self._solver.set_objective(self._model.cost)
            results = self._solver.solve(save_results=False, **given, **({"warmstart": True} if warm else {}))
        else:
            results = self._solver.solve(self._model, **given, **({"warmstart": True} if warm else {}))
        values = self._values(results)
        bound = results.problem.lower_bound
        finite = isinstance(bound, (int, float)) and math.isfinite(bound)
        return Report(self._status(results, values is not None), values, float(bound) if finite else -math.inf)

    def _status(self, results: Any, has_incumbent: bool) -> str:
        condition = str(results.solver.termination_condition)
        if condition in ("optimal", "globallyOptimal"):
            return OPTIMAL
        if condition in ("infeasible", "infeasibleOrUnbounded"):
            return INFEASIBLE  # every column is bounded, so the program is not unbounded
        # Pyomo calls some limits of CPLEX (nodes, time without an incumbent) errors; the solver's own status names them
        words = f"{condition} {self._words()}".lower()
        if any(word in words for word in ("limit", "maxiterations", "maxevaluations", "interrupt", "aborted")):
            return FEASIBLE if has_incumbent else UNKNOWN
        raise SolverError(f"{self._name} stopped with {words.strip()!r}: there is no proof, and no limit was reached")

    def _words(self) -> str:
        return str(self._solution.get_status_string()) if hasattr(self._solution, "get_status_string") else ""

    @property
    def _solution(self) -> Any:
        """Solution object of CPLEX for the last solve; None for other solvers."""
        return getattr(getattr(self._solver, "_solver_model", None), "solution", None)

    def _values(self, results: Any) -> Vector | None:
        for variable in self._columns:
            variable.set_value(None, skip_validation=True)
        if hasattr(self._solution, "get_solution_type") and self._solution.get_solution_type() == 0:
            return None  # reading values now would make CPLEX print an error
        try:
            if self._profile.persistent:
                self._solver.load_vars()
            else:
                self._model.solutions.load_from(results, ignore_invalid_labels=True)
        except Exception:
            # interfaces differ in how they report that there is no solution to load
            return None
        values = [v.value for v in self._columns]
        if all(v is None for v in values):
            return None
        return np.array([np.nan if v is None else v for v in values], dtype=float)


def _forget(solver: Any) -> None:
    """Reset what a solver keeps of earlier solves, so that an answer depends on its task alone.

    Gurobi and CPLEX start from the last solution by default, and Pyomo has no option against it.
    """
    own: Any = getattr(solver, "_solver_model", None)
    if hasattr(own, "MIP_starts"):
        own.MIP_starts.delete()
    elif type(own).__module__.startswith("gurobipy"):
        own.reset(1)


def _end(own: Any) -> None:
    """Release a solver's own model."""
    if hasattr(own, "end"):
        own.end()


def _unknown(name: str, profile: PyomoProfile) -> SolverError:
    return SolverError(
        f"this version of Pyomo has no {profile.interface} interface {profile.factory!r}, which solver {name!r} needs; "
        "pip install --upgrade pyomo"
    )
