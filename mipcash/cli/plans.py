"""What one run is given: the command line, completed by the model's own defaults and by what holds where neither says more."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mipcash.cli import archive, modelfile
from mipcash.cli.limits import Pairs, together
from mipcash.errors import ModelError, SpaceError
from mipcash.space.direction import MINIMIZE, direction_of
from mipcash.study.arguments import costs_by_output
from mipcash.study.confirm import REPLICATE, ConfirmGiven, check_paid, confirm_of
from mipcash.study.execution import Execution
from mipcash.study.method import Method
from mipcash.study.pruning import HALVING, PruningGiven, pruning_of
from mipcash.study.records.goals import DirectionGiven, goals_of
from mipcash.study.records.limits import limits_of, stored_limits
from mipcash.study.spending import Amount, Cost, Fits, Spending
from mipcash.study.text import one_line, shown

STANDARD = {
    "budget": 50,
    "seed": 0,
    "solver": "auto",
    "optimizer": "hybrid",
    "timeout": None,
    "workers": 1,
    "seconds_per_proposal": 5.0,
    "evaluation_timeout": None,
    "evaluation_memory": None,
    "pruning": None,
    "confirm": None,
    "direction": MINIMIZE,
}
"""Of ``mipcash run``, where neither the command nor the model says more."""


def pruning_said(given: Any) -> PruningGiven:
    """Of ``--pruning on``, ``off`` or ``halving``, or of a model's DEFAULTS.

    Raises:
        ModelError: it is none of these.
    """
    said: PruningGiven = {"on": True, "off": False}.get(given, given) if isinstance(given, str) else given
    try:
        pruning_of(said)
    except ValueError:
        raise ModelError(f"pruning is on, off or halving, such as --pruning on; got {shown(given)}") from None
    return said


def confirm_said(given: Any) -> ConfirmGiven:
    """Of ``--confirm 3``, ``0`` or ``replicate``, or of a model's DEFAULTS.

    Raises:
        ModelError: it is none of these.
    """
    said: ConfirmGiven = int(given) if isinstance(given, str) and given.isdecimal() else given
    try:
        confirm_of(said)
    except ValueError:
        raise ModelError(
            f"confirm is a number of finalists, at least 2, or {REPLICATE}; got {shown(given)}; on the command line "
            "--confirm 3, or --confirm 0 for none"
        ) from None
    return said


@dataclass(frozen=True)
class Plan:
    """One run: what ``mipcash run`` was given, completed by the model's defaults.

    Raises:
        ModelError: finalists that the budget does not pay for.
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
    fits: int | None = None
    direction: DirectionGiven = MINIMIZE

    def __post_init__(self) -> None:
        try:
            confirm_of(self.confirm, self.amount)
        except ValueError as error:
            raise ModelError(f"{error}; on the command line --confirm 3, or --confirm 0 for none") from None

    @property
    def amount(self) -> Amount:
        """What the run may spend: a cost or fits, where one is given; else evaluations."""
        if self.cost is not None:
            return Cost(self.cost)
        return self.budget if self.fits is None else Fits(self.fits)

    @property
    def method(self) -> Method:
        """What proposes."""
        return Method(self.optimizer, solver=self.solver, seconds_per_proposal=self.seconds_per_proposal)

    @property
    def execution(self) -> Execution:
        """How evaluations run."""
        limits = (self.evaluation_timeout, self.evaluation_memory)
        return Execution(self.workers, evaluation_timeout=limits[0], evaluation_memory=limits[1])

    @property
    def paying(self) -> str:
        """The same in words."""
        if self.cost is not None:
            return f"evaluations that cost {self.cost:g}"
        return f"{self.budget} evaluations" if self.fits is None else f"evaluations of {self.amount}"

    @property
    def beyond(self) -> str:
        """What goes on as this run does and no journal holds, as flags after ``mipcash resume RUN.DB``."""
        pruning = {True: "on", HALVING: HALVING}.get(self.pruning) if isinstance(self.pruning, (bool, str)) else None
        told = {"cost": self.cost, "fits": self.fits, "pruning": pruning}
        if isinstance(self.confirm, (int, str)) and self.confirm not in (True, 1):
            told["confirm"] = int(self.confirm) if isinstance(self.confirm, int) else self.confirm
        return "".join(f" --{name} {value}" for name, value in told.items() if value is not None)

    def costs(self, loaded: modelfile.Model) -> dict[str, float]:
        """Costs of a model's functions, where it has one per output; else none.

        Raises:
            ModelError: they are not those of the functions, or a budget by cost has none to go by, or too small a one.
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
        quiet: bool,
        cost: float | None = None,
        fits: int | None = None,
    ) -> Plan:
        """Of a model.

        Args:
            given: what the command line says of STANDARD; None: nothing.
            limits: those of the command line.
            cost: what evaluations may cost, in the place of a number of them.
            fits: how many fits they may take, likewise.

        Raises:
            ModelError: a cost and fits, or pruning or a direction that there is not.
        """
        said = {name: value for name, value in given.items() if value is not None}
        chosen = {**STANDARD, **loaded.defaults, **said}
        if cost is not None and fits is not None:
            raise ModelError("a run has one budget: give --cost or --fits")
        try:
            goals_of(chosen["direction"])
        except ValueError as error:
            raise ModelError(str(error)) from None
        chosen["pruning"], chosen["confirm"] = pruning_said(chosen["pruning"]), confirm_said(chosen["confirm"])
        path = storage or archive.default_path(loaded.title, chosen["seed"])
        return cls(
            **chosen,
            storage=path,
            options=options,
            limits=together(loaded.limits, limits),
            quiet=quiet,
            cost=cost,
            fits=fits,
        )

    def differs(self, old: archive.Archive) -> bool:
        """Whether a journal is of another study; opening it then says how."""
        record = old.record
        then = (record.seed, record.solver, record.optimizer, dict(record.options), dict(record.limits), record.goals)
        limits = stored_limits(limits_of(self.limits))
        now = (self.seed, self.solver, self.optimizer, dict(self.options), limits, goals_of(self.direction))
        return then != now


def direction_said(direction: str | None, objectives: Sequence[str]) -> str | dict[str, str] | None:
    """``--direction maximize``, or ``--objective loss --objective accuracy=maximize``; None: nothing was said.

    Raises:
        ModelError: both were said; an objective has no name, or is given twice, or goes in no direction.
    """
    if direction is not None and objectives:
        raise ModelError("--objective says where each is to go already; leave --direction out")
    found: dict[str, str] = {}
    for text in objectives:
        name, _, said = text.partition("=")
        if not name.strip() or name in found:
            raise ModelError(f"--objective takes NAME or NAME=maximize, each name once; got {shown(text)}")
        try:
            found[name] = direction_of(said or MINIMIZE)
        except SpaceError as error:
            raise ModelError(f"--objective {one_line(text, 60)}: {error}") from None
    return found or direction
