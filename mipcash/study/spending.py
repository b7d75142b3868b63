"""What a run may spend: a number of evaluations, of fits, or a cost.

An evaluation is one call of a function: of the objective, or, where its outputs are functions of their own, of one of these. What
counts is what was told: a call that was lost with its worker, or interrupted, is made again and costs nothing.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import Any

from mipcash.display import counted
from mipcash.errors import MipcashError
from mipcash.study.arguments import seconds_of
from mipcash.study.text import shown
from mipcash.study.trial import Trial


class BudgetError(MipcashError, ValueError):
    """A budget that turns out not to pay for one evaluation."""


ROUNDING = 1e-9
"""Share of a budget by which a sum of costs may exceed it: of rounding."""


@dataclass(frozen=True)
class Cost:
    """A budget by what evaluations cost, in the unit of the costs: ``mc.Budget(mc.Cost(3600), costs=...)``.

    Raises:
        ValueError: no finite number above 0.
    """

    amount: float

    def __post_init__(self) -> None:
        given = self.amount
        number = float(given) if isinstance(given, Real) and not isinstance(given, bool) else math.nan
        if not 0.0 < number < math.inf:
            raise ValueError(
                f"mc.Cost takes a finite number above 0, what all evaluations may cost; got {shown(given)}"
            )
        object.__setattr__(self, "amount", number)

    def __str__(self) -> str:
        return f"a cost of {self.amount:g}"


@dataclass(frozen=True)
class Fits:
    """A budget by fits, of an objective that yields a result for each: ``mc.minimize(..., budget=mc.Fits(200), pruning=True)``.

    No evaluation is started whose fits might exceed it, by what the longest so far took. The first one, which shows how many they
    are, runs alone; where it takes more than all of them, that is a ``BudgetError``. A later one that takes more fits than any
    before may exceed it, which is warned of.

    Raises:
        ValueError: no whole number, at least 1.
    """

    number: int

    def __post_init__(self) -> None:
        given = self.number
        if isinstance(given, bool) or not isinstance(given, Integral) or int(given) < 1:
            raise ValueError(
                f"mc.Fits takes a whole number, at least 1, how many fits all evaluations may take; got {shown(given)}"
            )
        object.__setattr__(self, "number", int(given))

    def __str__(self) -> str:
        return counted(self.number, "fit")


Amount = int | Cost | Fits
"""What a run may spend."""


@dataclass(frozen=True)
class Budget:
    """What a run may spend: ``mc.minimize(f, space, mc.Budget(50, timeout=3600))``.

    Attributes:
        amount: a number of evaluations, ``mc.Fits(200)`` or ``mc.Cost(3600)``.
        timeout: seconds from the beginning after which no new evaluation starts; one that runs is finished. A proposal gets at most
            what is left of them. None: no limit.
        costs: what one call of each function costs, by output, in any one unit, where the objective is a function per output; None:
            1 each. ``hybrid`` calls what promises most per cost; optimizers that do not choose call all for each configuration.

    Raises:
        ValueError: no budget, or no number of seconds above 0.
    """

    amount: Amount
    timeout: float | None = None
    costs: Mapping[str, float] | None = None

    def __post_init__(self) -> None:
        check_budget(self.amount)
        object.__setattr__(self, "timeout", seconds_of("timeout", self.timeout))

    @classmethod
    def of(cls, given: Any) -> Budget:
        """Return the budget that ``budget=`` says."""
        return given if isinstance(given, Budget) else cls(given)

    @property
    def evaluations(self) -> int | None:
        """Their number; None where fits or costs count."""
        return None if isinstance(self.amount, (Cost, Fits)) else int(self.amount)


BudgetGiven = Amount | Budget
"""What ``budget=`` takes."""


@dataclass(frozen=True)
class Spending:
    """A budget beside what trials cost.

    Attributes:
        total: what may be spent.
        costs: of one evaluation of each output, by name; empty: a trial is one evaluation.
        by_fits: whether fits count, and not evaluations.
    """

    total: float
    costs: Mapping[str, float] = field(default_factory=dict)
    by_fits: bool = False

    @classmethod
    def of_budget(cls, budget: Any, costs: Mapping[str, float]) -> Spending:
        """Of what a run is given.

        Args:
            costs: of the study; empty: outputs are not evaluated apart.

        Raises:
            ValueError: no budget; one by cost where nothing says what evaluations cost; one that does not pay for all outputs once.
        """
        check_budget(budget)
        if isinstance(budget, Fits):
            if costs:
                raise ValueError(
                    f"budget is {budget}, and outputs are functions of their own, which are evaluated apart; give a number of "
                    "calls, or mc.Cost(3600)"
                )
            return cls(budget.number, by_fits=True)
        if not isinstance(budget, Cost):
            spending = cls(int(budget), dict.fromkeys(costs, 1.0))
        elif costs:
            spending = cls(budget.amount, costs)
        else:
            raise ValueError(
                f"budget is {budget}, and nothing says what an evaluation costs: give the outputs as functions of their own and "
                'costs, minimize({"loss": f, "ms": g}, space, mc.Budget(mc.Cost(3600), costs={"loss": 60, "ms": 1}))'
            )
        least = sum(spending.costs.values())
        if costs and not spending.admits(least):
            raise ValueError(
                f"budget is {budget}, which does not pay for one evaluation of each output, {least:g} together; raise it"
            )
        return spending

    def of(self, trial: Trial) -> float:
        """What a trial costs; by fits, what it took."""
        if self.by_fits:
            return float(trial.fits)
        if not self.costs:
            return 1.0
        return sum(self.costs.get(name, 0.0) for name in trial.evaluate or self.costs)

    def spent(self, trials: Iterable[Trial]) -> float:
        """What those that were told have cost; what was evaluated elsewhere costs nothing."""
        return sum(self.of(t) for t in trials if not (t.pending or t.known))

    def least(self, trials: Sequence[Trial]) -> float:
        """What the next trial costs at least: one output, unless all that were proposed so far want all outputs.

        By fits, what it may cost at most: as many as the longest took.
        """
        if self.by_fits:
            return float(max([1, *(t.fits for t in trials)]))
        if not self.costs:
            return 1.0
        whole = trials and all(len(t.evaluate or self.costs) >= len(self.costs) for t in trials if not t.known)
        return sum(self.costs.values()) if whole else min(self.costs.values())

    def whole(self, trials: Sequence[Trial]) -> float:
        """What an evaluation of all outputs costs; by fits, as many as the longest took."""
        return self.least(trials) if self.by_fits else sum(self.costs.values()) if self.costs else 1.0

    def exceeded(self, trials: Sequence[Trial]) -> str:
        """What is wrong with what was spent in fits, the cure included; empty: nothing.

        Raises:
            BudgetError: the only evaluation took more than the budget.
        """
        spent = self.spent(trials) if self.by_fits else 0.0
        if self.admits(spent):
            return ""
        budget, took = Fits(int(self.total)), counted(int(self.whole(trials)), "fit")
        if sum(not (t.pending or t.known) for t in trials) == 1:
            raise BudgetError(
                f"budget is {budget}, and one evaluation took {took}: nothing else was evaluated. Give it as many fits as the "
                f"evaluations should take together, such as mc.Fits({10 * int(spent)}), or a number of evaluations"
            )
        return (
            f"{int(spent)} fits were spent of a budget of {budget}: an evaluation took {took}, more than any before it"
        )

    def admits(self, cost: float) -> bool:
        """Whether so much may be spent in all."""
        return cost <= self.total * (1.0 + ROUNDING)


SEARCHED = 2
"""Evaluations of a search that finalists are chosen among, at least."""


@dataclass
class Reserve:
    """What a search leaves of its budget to the repeats of finalists.

    Attributes:
        evaluations: that it leaves.
        said: what they are for, in words.
        paid: whether the budget pays for them; of one by fits the first evaluation shows it.
    """

    evaluations: int = 0
    said: str = ""
    paid: bool = True

    def needs(self, whole: float) -> float:
        """What repeats and the least search cost, where an evaluation costs so much; 0 where there are no repeats."""
        return (self.evaluations + SEARCHED) * whole if self.evaluations else 0.0

    def of(self, spending: Spending, trials: Sequence[Trial]) -> float:
        """What is kept back."""
        whole = spending.whole(trials)
        told = any(not (t.pending or t.known) for t in trials)
        if self.paid and spending.by_fits and told and not spending.admits(self.needs(whole)):
            self.paid = False
            warnings.warn(
                f"{self.said}, {self.evaluations * whole:g} fits where an evaluation takes {whole:g}, and the budget is "
                f"{spending.total:g} fits in all: nothing is confirmed, and all of them go to the search. Give "
                f"mc.Fits({self.needs(whole):g}) or more, or confirm fewer",
                stacklevel=2,
            )
        return self.evaluations * whole if self.paid else 0.0


def check_budget(budget: Any) -> None:
    """Refuse what is no budget.

    Raises:
        ValueError: no whole number of evaluations, and no cost.
    """
    if isinstance(budget, (Cost, Fits)):
        return
    if isinstance(budget, bool) or not isinstance(budget, Integral) or int(budget) < 1:
        raise ValueError(
            f"budget must be a whole number of evaluations, at least 1, got {shown(budget)}; or what they may cost, mc.Cost(3600)"
        )
