"""Budget of a run: a number of evaluations, a number of steps (folds, epochs), or a cost.

An evaluation is one call of a function: the objective or, if each output has its own function, one of these. Only evaluations with
a recorded outcome count. A call that was interrupted or lost its worker is repeated and costs nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import Any

from mipcash.display import counted
from mipcash.errors import BudgetError, warn
from mipcash.study.arguments import positive
from mipcash.study.trial import Trial
from mipcash.text import shown

ROUNDING = 1e-9
"""Relative tolerance for rounding, within which a sum of costs may exceed the budget."""


@dataclass(frozen=True)
class Cost:
    """A budget by total cost of the evaluations, in the unit of the costs: ``mc.Budget(mc.Cost(3600), costs=...)``.

    Args:
        amount: the total cost, a finite number above 0.

    Raises:
        ValueError: ``amount`` is no finite number above 0.

    Examples:
        >>> import mipcash as mc
        >>> space = mc.Space("box")
        >>> a = space.integer("a", 0, 9)
        >>> functions = {"loss": lambda c: c["a"], "ms": lambda c: 2.0 * c["a"]}
        >>> budget = mc.Budget(mc.Cost(33), costs={"loss": 10, "ms": 1})
        >>> mc.minimize(functions, space, budget, limits={"ms": 5}, optimizer="random", progress=False).n_done
        3
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
class Steps:
    """A budget in steps (folds, epochs), for objectives that yield: ``mc.minimize(..., budget=mc.Steps(200), pruning=True)``.

    An evaluation is not started if it might exceed the budget, assuming as many steps as the longest so far. The first one, which
    shows the number of steps, runs alone; if it exceeds the budget, a ``BudgetError`` is raised. A later one that takes more steps
    than any before may exceed the budget, with a warning.

    Args:
        number: number of steps, an integer of at least 1.

    Raises:
        ValueError: ``number`` is no integer, or below 1.

    Examples:
        >>> import mipcash as mc
        >>> def train(config):
        ...     yield from (config["a"] + noise for noise in (0.1, 0.0, -0.1))  # three folds
        >>> space = mc.Space("box")
        >>> a = space.integer("a", 0, 9)
        >>> mc.minimize(train, space, mc.Steps(9), optimizer="random", progress=False).n_steps
        9
    """

    number: int

    def __post_init__(self) -> None:
        given = self.number
        if isinstance(given, bool) or not isinstance(given, Integral) or int(given) < 1:
            raise ValueError(
                f"mc.Steps takes a whole number, at least 1, the steps that all evaluations may take; got {shown(given)}"
            )
        object.__setattr__(self, "number", int(given))

    def __str__(self) -> str:
        return counted(self.number, "step")


Amount = int | Cost | Steps
"""Type of the amount of a budget."""


@dataclass(frozen=True)
class Budget:
    """Budget of a run: ``mc.minimize(f, space, mc.Budget(50, timeout=3600))``.

    Args:
        amount: a number of evaluations, ``mc.Steps(200)`` or ``mc.Cost(3600)``; None: no limit but ``timeout``.
        timeout: seconds after which no new evaluation starts; a running one is completed. A proposal gets at most the remaining
            seconds. None: no limit.
        costs: cost of one call of each function, by output, in any one unit, if the objective is a function per output; None: 1
            each. ``hybrid`` prefers the call with the best expected gain per cost; optimizers that do not choose call all functions
            for each configuration.

    Raises:
        ValueError: the amount is invalid, the timeout is no number above 0, or neither is given.

    Examples:
        >>> import mipcash as mc
        >>> budget = mc.Budget(50, timeout=3600)  # 50 evaluations, none of which starts after an hour
        >>> budget.evaluations
        50
        >>> budget = mc.Budget(timeout=3600)  # as many evaluations as start within an hour
        >>> mc.Budget(mc.Cost(600), costs={"loss": 60, "latency_ms": 1}).evaluations is None
        True
    """

    amount: Amount | None = None
    timeout: float | None = None
    costs: Mapping[str, float] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "timeout", positive("timeout", self.timeout))
        if self.amount is not None or self.timeout is None:
            check_budget(self.amount)

    @classmethod
    def of(cls, given: Any) -> Budget:
        """Return the budget given as ``budget=``.

        Args:
            given: a budget, or its amount.

        Returns:
            The budget.
        """
        return given if isinstance(given, Budget) else cls(given)

    @property
    def evaluations(self) -> int | None:
        """Number of evaluations; None if the budget is in steps, costs or time."""
        return None if self.amount is None or isinstance(self.amount, (Cost, Steps)) else int(self.amount)


BudgetGiven = Amount | Budget
"""Type of ``budget=``."""


@dataclass(frozen=True)
class Spending:
    """A budget together with the cost of trials.

    Attributes:
        total: the total budget.
        costs: of one evaluation of each output, by name; empty: a trial is one evaluation.
        by_steps: True if the budget is in steps, not in evaluations.
    """

    total: float
    costs: Mapping[str, float] = field(default_factory=dict)
    by_steps: bool = False

    @classmethod
    def of_budget(cls, budget: Any, costs: Mapping[str, float]) -> Spending:
        """Make the spending for the amount of a budget; None: it is not limited.

        Args:
            costs: of the study; empty: evaluations are not decoupled.

        Raises:
            ValueError: the budget is invalid, is by cost without known costs, is in steps with decoupled evaluations, or does not
                pay for all outputs once.
        """
        if budget is None:
            return cls(math.inf, dict.fromkeys(costs, 1.0))
        check_budget(budget)
        if isinstance(budget, Steps):
            if costs:
                raise ValueError(
                    f"budget is {budget}, and outputs are functions of their own, which are evaluated separately; give a number of "
                    "calls, or mc.Cost(3600)"
                )
            return cls(budget.number, by_steps=True)
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
        """Return the cost of a trial: 1, or the cost of its outputs, or its number of steps."""
        if self.by_steps:
            return float(trial.steps)
        if not self.costs:
            return trial.fidelity
        return sum(self.costs.get(name, 0.0) for name in trial.evaluate or self.costs)

    def spent(self, trials: Iterable[Trial]) -> float:
        """Return the total cost of the trials with an outcome. Evaluations made outside the study cost nothing."""
        return sum(self.of(t) for t in trials if not (t.pending or t.known))

    def least(self, trials: Sequence[Trial]) -> float:
        """Return the least cost of the next trial: of one output, or of all outputs if every trial so far evaluated all of them.

        For a budget in steps, return the number of steps of the longest evaluation so far.
        """
        if self.by_steps:
            return float(max([1, *(t.steps for t in trials)]))
        if not self.costs:
            return min((t.fidelity for t in trials), default=1.0)
        whole = trials and all(len(t.evaluate or self.costs) >= len(self.costs) for t in trials if not t.known)
        return sum(self.costs.values()) if whole else min(self.costs.values())

    def whole(self, trials: Sequence[Trial]) -> float:
        """Return the cost of an evaluation of all outputs; for a budget in steps, the number of steps of the longest so far."""
        return self.least(trials) if self.by_steps else sum(self.costs.values()) if self.costs else 1.0

    def exceeded(self, trials: Sequence[Trial]) -> str:
        """Return a warning if more steps were taken than the budget has; empty otherwise.

        Raises:
            BudgetError: the only evaluation took more than the budget.
        """
        spent = self.spent(trials) if self.by_steps else 0.0
        if self.admits(spent):
            return ""
        budget, took = Steps(int(self.total)), counted(int(self.whole(trials)), "step")
        if sum(not (t.pending or t.known) for t in trials) == 1:
            raise BudgetError(
                f"budget is {budget}, and one evaluation took {took}: nothing else was evaluated. Give it as many steps as the "
                f"evaluations should take together, such as mc.Steps({10 * int(spent)}), or a number of evaluations"
            )
        return (
            f"{int(spent)} steps were spent of a budget of {budget}: an evaluation took {took}, more than any before it"
        )

    def admits(self, cost: float) -> bool:
        """Return True if this total cost is within the budget."""
        return cost <= self.total * (1.0 + ROUNDING)


SEARCHED = 2
"""Least number of search evaluations among which finalists are chosen."""


@dataclass
class Reserve:
    """Part of the budget that a search leaves to the repeats of finalists.

    Attributes:
        evaluations: number of evaluations that it leaves.
        message: what the evaluations are for; the beginning of a warning.
        paid: True if the budget pays for the repeats. For a budget in steps this is known after the first evaluation.
    """

    evaluations: int = 0
    message: str = ""
    paid: bool = True

    def needs(self, whole: float) -> float:
        """Return the cost of the repeats and of SEARCHED evaluations of the search, each of cost ``whole``; 0 without repeats."""
        return (self.evaluations + SEARCHED) * whole if self.evaluations else 0.0

    def of(self, spending: Spending, trials: Sequence[Trial]) -> float:
        """Return the part of the budget to reserve. If the budget is too small for the repeats, warn and return 0."""
        whole = spending.whole(trials)
        reported = any(not (t.pending or t.known) for t in trials)
        if self.paid and spending.by_steps and reported and not spending.admits(self.needs(whole)):
            self.paid = False
            warn(
                f"{self.message}, {self.evaluations * whole:g} steps where an evaluation takes {whole:g}, and the budget is "
                f"{spending.total:g} steps in all: nothing is confirmed, and all of them go to the search. Give "
                f"mc.Steps({self.needs(whole):g}) or more, or confirm fewer"
            )
        return self.evaluations * whole if self.paid else 0.0


def check_budget(budget: Any) -> None:
    """Raise an error unless a budget is valid.

    Raises:
        ValueError: the budget is neither a whole number of evaluations, at least 1, nor a cost or number of steps.
    """
    if isinstance(budget, (Cost, Steps)):
        return
    if isinstance(budget, bool) or not isinstance(budget, Integral) or int(budget) < 1:
        raise ValueError(
            f"budget must be a whole number of evaluations, at least 1, got {shown(budget)}; or what they may cost, mc.Cost(3600)"
        )
