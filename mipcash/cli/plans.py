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
from mipcash.study.confirm import ConfirmGiven, check_paid, confirm_of
from mipcash.study.racing import HALVING, RacingGiven, racing_of
from mipcash.study.records.goals import ObjectivesGiven, goals_of
from mipcash.study.records.limits import limits_of, stored_limits
from mipcash.study.spending import Budget, Cost, Fits, Spending
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
    "racing": None,
    "confirm": None,
    "noisy": None,
    "direction": MINIMIZE,
    "objectives": None,
}
"""Of ``mipcash run``, where neither the command nor the model says more."""


def racing_said(given: Any) -> RacingGiven:
    """Of ``--racing on``, ``off`` or ``halving``, or of a model's DEFAULTS.

    Raises:
        ModelError: it is none of these.
    """
    said: RacingGiven = {"on": True, "off": False}.get(given, given) if isinstance(given, str) else given
    try:
        racing_of(said)
    except ValueError:
        raise ModelError(f"racing is on, off or halving, such as --racing on; got {shown(given)}") from None
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
    racing: RacingGiven
    confirm: ConfirmGiven
    noisy: bool | None
    storage: Path | str
    options: Mapping[str, str]
    limits: Pairs
    quiet: bool
    cost: float | None = None
    fits: int | None = None
    direction: str = MINIMIZE
    objectives: ObjectivesGiven = None

    def __post_init__(self) -> None:
        try:
            confirm_of(self.confirm, self.pays)
        except ValueError as error:
            raise ModelError(f"{error}; on the command line --confirm 3, or --confirm 0 for none") from None

    @property
    def goals(self) -> dict[str, Any]:
        """What is optimised, as arguments of a study."""
        return {"direction": self.direction, "objectives": self.objectives}

    @property
    def pays(self) -> Budget:
        """What the run may spend: a cost or fits, where one is given; else evaluations."""
        if self.cost is not None:
            return Cost(self.cost)
        return self.budget if self.fits is None else Fits(self.fits)

    @property
    def paying(self) -> str:
        """The same in words."""
        if self.cost is not None:
            return f"evaluations that cost {self.cost:g}"
        return f"{self.budget} evaluations" if self.fits is None else f"evaluations of {self.pays}"

    @property
    def beyond(self) -> str:
        """What goes on as this run does and no journal holds, as flags after ``mipcash resume RUN.DB``."""
        racing = {True: "on", HALVING: HALVING}.get(self.racing) if isinstance(self.racing, (bool, str)) else None
        told = {"cost": self.cost, "fits": self.fits, "racing": racing}
        if isinstance(self.confirm, int) and self.confirm > 1:
            told["confirm"] = self.confirm
        noisy = {True: " --noisy", False: " --deterministic", None: ""}[self.noisy]
        return noisy + "".join(f" --{name} {value}" for name, value in told.items() if value is not None)

    def costs(self, loaded: modelfile.Model) -> dict[str, float]:
        """Costs of a model's functions, where it has one per output; else none.

        Raises:
            ModelError: they are not those of the functions, or a budget by cost has none to go by, or too small a one.
        """
        try:
            costs = costs_by_output(loaded.objective, loaded.costs, self.limits)
            check_paid(confirm_of(self.confirm, self.pays), Spending.of_budget(self.pays, costs))
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
            ModelError: a cost and fits, or racing or a direction that there is not.
        """
        said = {name: value for name, value in given.items() if value is not None}
        # objectives that are typed bring a direction each, so that of the model's loss is no longer meant
        replaced = {"direction"} if "objectives" in said else set()
        defaults = {name: value for name, value in loaded.defaults.items() if name not in replaced}
        chosen = {**STANDARD, **defaults, **said}
        if cost is not None and fits is not None:
            raise ModelError("a run has one budget: give --cost or --fits")
        try:
            goals_of(chosen["direction"], chosen["objectives"])
        except ValueError as error:
            raise ModelError(str(error)) from None
        chosen["racing"] = racing_said(chosen["racing"])
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
        now = (self.seed, self.solver, self.optimizer, dict(self.options), limits, goals_of(**self.goals))
        return then != now


def objectives_said(given: Sequence[str]) -> dict[str, str] | None:
    """``--objective loss --objective accuracy=maximize`` as directions by name; None: nothing was said.

    Raises:
        ModelError: one has no name, or is given twice, or goes in no direction.
    """
    found: dict[str, str] = {}
    for text in given:
        name, _, direction = text.partition("=")
        if not name.strip() or name in found:
            raise ModelError(f"--objective takes NAME or NAME=maximize, each name once; got {shown(text)}")
        try:
            found[name] = direction_of(direction or MINIMIZE)
        except SpaceError as error:
            raise ModelError(f"--objective {one_line(text, 60)}: {error}") from None
    return found or None
