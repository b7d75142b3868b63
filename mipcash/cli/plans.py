"""Settings of one run: the command line, completed by the model's defaults and the standard ones."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mipcash.cli import archive, modelfile
from mipcash.cli.limits import Pairs, together
from mipcash.cli.modelfile import STANDARD
from mipcash.errors import ModelError, SpaceError
from mipcash.space.direction import MINIMIZE, direction_of
from mipcash.study.arguments import check_objectives, costs_by_output, whole_number
from mipcash.study.calls import check_direction
from mipcash.study.confirm import REPLICATE, ConfirmGiven, check_paid, confirm_of
from mipcash.study.execution import Execution
from mipcash.study.method import Method
from mipcash.study.pruning import PruningGiven, pruning_of
from mipcash.study.records.directions import DirectionGiven, direction_given, objectives_of
from mipcash.study.records.fingerprint import listing
from mipcash.study.records.limits import limits_of, stored_limits
from mipcash.study.records.objective import identity_of
from mipcash.study.spending import Budget, Cost, Spending, Steps
from mipcash.study.storage.listings import fingerprint
from mipcash.study.storage.protocol import StudyRecord
from mipcash.text import one_line, shown


def typed_options(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a command, given all its parameters, by the names in STANDARD; None: not given.

    Raises:
        ModelError: ``direction`` and ``objective`` are both given, or an objective is invalid.
    """
    direction = read_direction(parameters.get("direction"), parameters.get("objective") or [])
    return {**{name: parameters.get(name) for name in STANDARD}, "direction": direction}


def read_pruning(given: Any) -> PruningGiven:
    """Return the setting of ``--pruning on``, ``off`` or ``halving``, or of a model's DEFAULTS.

    Raises:
        ModelError: the value is none of these.
    """
    parsed: PruningGiven = {"on": True, "off": False}.get(given, given) if isinstance(given, str) else given
    try:
        pruning_of(parsed)
    except ValueError:
        raise ModelError(f"pruning is on, off or halving, such as --pruning on; got {shown(given)}") from None
    return parsed


def read_confirm(given: Any) -> ConfirmGiven:
    """Return the setting of ``--confirm 3``, ``0`` or ``replicate``, or of a model's DEFAULTS.

    Raises:
        ModelError: the value is none of these.
    """
    parsed: ConfirmGiven = int(given) if isinstance(given, str) and given.isdecimal() else given
    try:
        confirm_of(parsed)
    except ValueError:
        raise ModelError(
            f"confirm is a number of finalists, at least 2, or {REPLICATE}; got {shown(given)}; on the command line "
            "--confirm 3, or --confirm 0 for none"
        ) from None
    return parsed


@dataclass(frozen=True)
class Plan:
    """One run: the options of ``mipcash run``, completed by the model's defaults.

    Attributes:
        limits: outcome constraints of the model and of the command line.
        typed: all options of the command by name; None: not given.
    """

    model: modelfile.Model
    method: Method
    execution: Execution
    budget: Budget
    seed: int
    pruning: PruningGiven
    confirm: ConfirmGiven
    storage: Path | str
    options: Mapping[str, str]
    limits: Pairs
    direction: DirectionGiven
    typed: Mapping[str, Any]

    @property
    def paying(self) -> str:
        """Budget as text for the progress message."""
        amount = self.budget.amount
        if isinstance(amount, Cost):
            return f"evaluations that cost {amount.amount:g}"
        return f"evaluations of {amount}" if isinstance(amount, Steps) else f"{amount} evaluations"

    def costs(self) -> dict[str, float]:
        """Return the costs of a model with one function per output; empty for a single function.

        Raises:
            ModelError: the model names other costs, or the budget does not pay for the finalists.
        """
        try:
            costs = costs_by_output(self.model.objective, self.model.costs, self.limits)
            check_paid(confirm_of(self.confirm, self.budget.amount), Spending.of_budget(self.budget.amount, costs))
        except ValueError as error:
            raise ModelError(f"{self.model.title}: {error}") from error
        return costs

    @classmethod
    def of(
        cls,
        loaded: modelfile.Model,
        given: Mapping[str, Any],
        storage: Path | str | None,
        options: Mapping[str, str],
        limits: Pairs,
        typed: Mapping[str, Any],
    ) -> Plan:
        """Make the plan for a model.

        Args:
            given: options of the command line, by the names in STANDARD; None: not given.
            limits: outcome constraints of the command line.
            typed: all options of the command by name; None: not given.

        Raises:
            ModelError: a setting is invalid, both ``cost`` and ``steps`` are typed, or the budget does not pay for the finalists.
        """
        chosen = {**STANDARD, **loaded.defaults, **{name: value for name, value in given.items() if value is not None}}
        cost, steps = typed["cost"], typed["steps"]
        if cost is not None and steps is not None:
            raise ModelError("a run has one budget: give --cost or --steps")
        for name in ("solver", "optimizer"):
            if not isinstance(chosen[name], str):
                raise ModelError(f"{name} must be a name, got {shown(chosen[name])}")
        pruning, confirm = read_pruning(chosen["pruning"]), read_confirm(chosen["confirm"])
        both, seconds = together(loaded.limits, limits), chosen["seconds_per_proposal"]
        most = {name: chosen[name] for name in ("evaluation_timeout", "evaluation_memory")}
        try:
            amount = Cost(cost) if cost is not None else chosen["budget"] if steps is None else Steps(steps)
            budget = Budget(amount, chosen["timeout"])
            method = Method(chosen["optimizer"], solver=chosen["solver"], seconds_per_proposal=seconds)
            execution = Execution(chosen["workers"], **most)
            seed, direction = whole_number("seed", chosen["seed"], 0), chosen["direction"]
            check_direction(loaded.objective, objectives_of(direction))
            check_objectives(objectives_of(direction), {}, pruning, confirm, limits_of(both))
        except (TypeError, ValueError) as error:
            raise ModelError(str(error)) from None
        try:
            confirm_of(confirm, amount)
        except ValueError as error:
            raise ModelError(f"{error}; on the command line --confirm 3, or --confirm 0 for none") from None
        path = storage or archive.default_path(loaded.title, seed)
        return cls(loaded, method, execution, budget, seed, pruning, confirm, path, options, both, direction, typed)

    def done(self, old: archive.Archive, confirm: str | None) -> bool:
        """Return True if a journal holds this run, to the end of its budget.

        Args:
            confirm: the option ``--confirm`` as typed.
        """
        most = self.budget.evaluations
        return most is not None and old.finished(most, confirm) and not self.differs(old)

    def differs(self, old: archive.Archive) -> bool:
        """Return True if a journal belongs to another study or objective. Opening it then gives an error or a warning."""
        record = old.record
        then: list[object] = [record.seed, record.solver, record.optimizer, dict(record.options), dict(record.limits)]
        then += [record.objectives.each, record.fingerprint]
        limits, each = stored_limits(limits_of(self.limits)), objectives_of(self.direction).each
        now: list[object] = [self.seed, self.method.solver, self.method.optimizer, dict(self.options), limits]
        now += [each, fingerprint(listing(self.model.space))]
        evaluated, objective = record.objective, identity_of(self.model.objective)
        return then != now or (evaluated is not None and objective is not None and evaluated != objective)


def of_study(
    record: StudyRecord, solver: str, loaded: modelfile.Model, given: Mapping[str, Any]
) -> tuple[modelfile.Model, dict[str, Any]]:
    """Return a model, and options of the command line, completed by what the study's journal states.

    Args:
        solver: the solver that was agreed on.
    """
    stated = {
        "seed": record.seed,
        "optimizer": record.optimizer,
        "budget": record.budget,
        "direction": direction_given(record.objectives),
    }
    typed = {name: value for name, value in given.items() if value is not None}
    if loaded.limits and stored_limits(limits_of(loaded.limits)) != dict(record.limits):
        warnings.warn(f"LIMITS of {loaded.title} are not those of the journal, which hold for its runs", stacklevel=2)
    limits = {name: (low, high) for name, (low, high) in record.limits.items()}
    return replace(loaded, limits=limits), {**stated, **typed, "solver": solver}


def read_direction(direction: str | None, objectives: Sequence[str]) -> str | dict[str, str] | None:
    """Return the value of ``--direction maximize``, or of ``--objective loss --objective accuracy=maximize``; None for neither.

    Raises:
        ModelError: both options are given, or an objective has no name, is repeated, or has an invalid direction.
    """
    if direction is not None and objectives:
        raise ModelError("--objective gives a direction for each objective already; leave --direction out")
    found: dict[str, str] = {}
    for text in objectives:
        name, _, parsed = text.partition("=")
        if not name.strip() or name in found:
            raise ModelError(f"--objective takes NAME or NAME=maximize, each name once; got {shown(text)}")
        try:
            found[name] = direction_of(parsed or MINIMIZE)
        except SpaceError as error:
            raise ModelError(f"--objective {one_line(text, 60)}: {error}") from None
    return found or direction
