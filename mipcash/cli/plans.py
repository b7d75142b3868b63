"""Settings of one run: the command line, completed by the model's defaults and the standard ones."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
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
from mipcash.study.spending import Amount, Budget, Cost, Spending, Steps
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
        typed: all options of the command by name; None: not given.

    Raises:
        ModelError: a setting is invalid, or the budget does not pay for the finalists.
    """

    budget: int
    seed: int
    solver: str
    optimizer: str
    timeout: float | None
    workers: int
    seconds_per_proposal: float
    evaluation_timeout: float | None
    evaluation_memory: float | None
    pruning: PruningGiven
    confirm: ConfirmGiven
    storage: Path | str
    options: Mapping[str, str]
    limits: Pairs
    quiet: bool
    cost: float | None = None
    steps: int | None = None
    direction: DirectionGiven = MINIMIZE
    typed: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, value in (("solver", self.solver), ("optimizer", self.optimizer)):
            if not isinstance(value, str):
                raise ModelError(f"{name} must be a name, got {shown(value)}")
        try:
            Budget(self.amount, self.timeout)
            _ = self.method, self.execution
            whole_number("seed", self.seed, 0)
        except (TypeError, ValueError) as error:
            raise ModelError(str(error)) from None
        try:
            confirm_of(self.confirm, self.amount)
        except ValueError as error:
            raise ModelError(f"{error}; on the command line --confirm 3, or --confirm 0 for none") from None

    @property
    def amount(self) -> Amount:
        """Budget of the run: a cost or a number of steps if one is given, else a number of evaluations."""
        if self.cost is not None:
            return Cost(self.cost)
        return self.budget if self.steps is None else Steps(self.steps)

    @property
    def method(self) -> Method:
        """Method that makes the proposals."""
        return Method(self.optimizer, solver=self.solver, seconds_per_proposal=self.seconds_per_proposal)

    @property
    def execution(self) -> Execution:
        """Settings for the evaluations."""
        limits = (self.evaluation_timeout, self.evaluation_memory)
        return Execution(self.workers, evaluation_timeout=limits[0], evaluation_memory=limits[1])

    @property
    def paying(self) -> str:
        """Budget as text for the progress message."""
        if self.cost is not None:
            return f"evaluations that cost {self.cost:g}"
        return f"{self.budget} evaluations" if self.steps is None else f"evaluations of {self.amount}"

    def costs(self, loaded: modelfile.Model) -> dict[str, float]:
        """Return the costs of a model with one function per output; empty for a single function.

        Raises:
            ModelError: the costs do not match the functions, or the budget is by cost without costs, or too small.
        """
        try:
            costs = costs_by_output(loaded.objective, loaded.costs, self.limits)
            check_paid(confirm_of(self.confirm, self.amount), Spending.of_budget(self.amount, costs))
        except ValueError as error:
            raise ModelError(f"{loaded.title}: {error}") from error
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
            ModelError: both ``cost`` and ``steps`` are typed, or ``pruning``, ``confirm`` or ``direction`` is invalid.
        """
        parsed = {name: value for name, value in given.items() if value is not None}
        chosen = {**STANDARD, **loaded.defaults, **parsed}
        cost, steps = typed["cost"], typed["steps"]
        if cost is not None and steps is not None:
            raise ModelError("a run has one budget: give --cost or --steps")
        chosen["pruning"], chosen["confirm"] = read_pruning(chosen["pruning"]), read_confirm(chosen["confirm"])
        try:
            objectives = objectives_of(chosen["direction"])
            check_direction(loaded.objective, objectives)
            both = together(loaded.limits, limits)
            check_objectives(objectives, {}, chosen["pruning"], chosen["confirm"], limits_of(both))
        except ValueError as error:
            raise ModelError(str(error)) from None
        path = storage or archive.default_path(loaded.title, chosen["seed"])
        return cls(
            **chosen,
            storage=path,
            options=options,
            limits=both,
            quiet=typed["quiet"],
            cost=cost,
            steps=steps,
            typed=typed,
        )

    def done(self, old: archive.Archive, loaded: modelfile.Model, confirm: str | None) -> bool:
        """Return True if a journal holds this run, to the end of its budget.

        Args:
            confirm: the option ``--confirm`` as typed.
        """
        by_number = self.cost is None and self.steps is None
        return by_number and old.finished(self.budget, confirm) and not self.differs(old, loaded)

    def differs(self, old: archive.Archive, loaded: modelfile.Model) -> bool:
        """Return True if a journal belongs to another study or objective. Opening it then gives an error or a warning."""
        record = old.record
        then = (
            record.seed,
            record.solver,
            record.optimizer,
            dict(record.options),
            dict(record.limits),
            record.objectives.each,
            record.fingerprint,
        )
        limits, each = stored_limits(limits_of(self.limits)), objectives_of(self.direction).each
        space = fingerprint(listing(loaded.space))
        now = (self.seed, self.solver, self.optimizer, dict(self.options), limits, each, space)
        evaluated, objective = record.objective, identity_of(loaded.objective)
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
