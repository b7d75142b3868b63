"""``confirm=``: after the search, re-evaluate finalists in fresh repeats and recommend the best of them.

The repeats are trials of the study: they are journaled, resumed and evaluated in the same way as trials of the search. They count
in the budget, and the search leaves a part of it to them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

from mipcash.display import counted
from mipcash.errors import check_settings, warn
from mipcash.study.finalists import Finalist
from mipcash.study.policies.policy import BUDGET, CALLBACK, DEFECT, TIMEOUT
from mipcash.study.replication import RESERVED
from mipcash.study.spending import SEARCHED, Amount, Reserve, Spending
from mipcash.study.study import Study
from mipcash.text import shown


@dataclass(frozen=True)
class Confirm:
    """Settings for the confirmation of the best trial.

    Args:
        finalists: largest number of configurations that are evaluated again.
        repeats: number of repeats of each finalist.

    Examples:
        >>> import mipcash as mc
        >>> def train(config, repeat=0):
        ...     return config["a"] + 0.1 * (repeat + 1) * config["a"] % 0.3
        >>> space = mc.Space("box")
        >>> a = space.integer("a", 0, 9)
        >>> run = mc.minimize(train, space, 8, optimizer="random", confirm=mc.Confirm(finalists=2), progress=False)
        >>> len(run.finalists)
        2
    """

    finalists: int = 3
    repeats: int = 1

    def __post_init__(self) -> None:
        check_settings(self, finalists=2, repeats=1)

    def __str__(self) -> str:
        return f"confirm= evaluates {self.finalists} finalists {'once' if self.repeats == 1 else f'{self.repeats} times'} more"

    @property
    def evaluations(self) -> int:
        """Largest number of evaluations that the confirmation takes."""
        return self.finalists * self.repeats


REPLICATE = "replicate"
"""Value of ``confirm=`` for repeats that are chosen one by one (``mipcash.study.replication``)."""

ConfirmGiven = bool | int | str | Confirm | None
"""Type of ``confirm=``: a number of finalists, 0 or False for none, True for the defaults, or ``replicate``."""


def confirm_of(given: ConfirmGiven, budget: Amount | None = None) -> Confirm | str | bool | None:
    """Return the settings of ``confirm=``, or ``replicate``; False for no repeats, None if the argument is not given.

    Args:
        budget: of the run.

    Raises:
        ValueError: the argument is no number of finalists, or needs more evaluations than the budget has.
    """
    if given is None or given is False or given == REPLICATE:
        return given
    if isinstance(given, Confirm):
        settings = given
    elif given is True:
        settings = Confirm()
    elif isinstance(given, Integral) and given == 0:
        return False
    elif isinstance(given, Integral) and given >= 2:
        settings = Confirm(finalists=int(given))
    else:
        raise ValueError(
            f"confirm must be a number of finalists, at least 2, mc.Confirm(...), or {REPLICATE!r}; got {shown(given)}"
        )
    if isinstance(budget, Integral) and settings.evaluations + SEARCHED > budget:
        raise ValueError(
            f"{settings}, and the budget is {budget} evaluations, of which the search needs {SEARCHED}; raise it, or "
            "confirm fewer"
        )
    return settings


def check_replicated(settings: Any, costs: Mapping[str, float]) -> None:
    """Check that ``replicate`` is not combined with decoupled evaluations: only complete evaluations are repeated.

    Raises:
        ValueError: outputs are evaluated on their own.
    """
    if settings == REPLICATE and costs:
        raise ValueError(
            f"confirm={REPLICATE!r} repeats whole evaluations, and the objective is a function per output, which are evaluated "
            "separately; leave confirm out"
        )


def check_paid(settings: Any, spending: Spending) -> None:
    """Check that the budget is large enough for the repeats, as far as their cost is known before the run.

    Raises:
        ValueError: the budget is too small, or not limited.
    """
    if spending.total == math.inf and (isinstance(settings, Confirm) or settings == REPLICATE):
        raise ValueError(
            "confirm= repeats evaluations with a part of the budget, which is given by a time alone; give an amount too, "
            "mc.Budget(100, timeout=3600)"
        )
    reserve = reserve_of(settings)
    if not spending.admits(reserve.needs(spending.whole(()))):
        unit = "steps" if spending.by_steps else "in all"
        raise ValueError(
            f"{settings}, and the budget, {spending.total:g} {unit}, does not pay for these and {SEARCHED} evaluations to choose "
            "among; raise it, or confirm fewer"
        )


def reserve_of(settings: Any, budget: Amount | None = None) -> Reserve:
    """Return the part of the budget that the search leaves for repeats."""
    if isinstance(settings, Confirm):
        return Reserve(settings.evaluations, str(settings))
    if settings == REPLICATE and isinstance(budget, Integral):
        return Reserve(int(budget) // RESERVED, f"confirm={REPLICATE!r}")
    return Reserve()


def confirms(reason: str) -> bool:
    """Return True if finalists are evaluated after a search that ended for this reason: no timeout, callback or defect."""
    return reason not in (TIMEOUT, CALLBACK) and not reason.startswith(DEFECT)


def warn_of_identical(finalists: Sequence[Finalist]) -> None:
    """Warn if every repeat gave exactly the loss of the search, which means that the repeats confirmed nothing."""
    pairs = [(f.searched, loss) for f in finalists for loss in f.fresh]
    if pairs and all(searched == loss for searched, loss in pairs):
        warn(
            "the repeats of confirm= have exactly the losses of the search: the objective is deterministic, and its repeats "
            "confirm nothing; give it a parameter repeat, which chooses other folds or another seed, or leave confirm= out"
        )


def enqueue_finalists(study: Study, settings: Confirm, reason: str) -> None:
    """Enqueue the repeats of the finalists that do not exist yet: repeat 1 of all finalists, then repeat 2, and so on.

    Args:
        reason: why the search ended.
    """
    chosen = study.finalists(settings.finalists)
    if len(chosen) < 2:
        found = "one" if chosen else "none to confirm"
        cure = "; raise the budget" if reason == BUDGET else ""
        warn(f"{settings}, and the search found {found}: nothing is confirmed{cure}")
        return
    for repeat in range(1, settings.repeats + 1):
        for trial in chosen:
            study.repeat(trial, repeat)


def warn_of_rest(settings: Confirm, study: Study, budget: int | None) -> None:
    """Warn of repeats that the budget did not pay for, or of evaluations that were left for repeats and not needed."""
    waiting = sum(study.table.trials[n].repeat > 0 for n in study.table.waiting)
    left = 0 if budget is None else budget - study.n_evaluated
    if waiting:
        text = f"the budget does not pay for {counted(waiting, 'repeat')} of the finalists; raise it"
    elif left > 0 and study.result.finalists:
        text = (
            f"of the budget {counted(left, 'evaluation')} were not needed: the search leaves {settings.evaluations} for repeats; "
            "to search on, raise the budget by more than that"
        )
    else:
        return
    warn(f"{settings}: {text}")


def warn_of_failed(finalists: Sequence[Finalist]) -> None:
    """Warn if no finalist passed its repeats, so that the recommended configuration is one that was not repeated."""
    if finalists and all(f.problem for f in finalists):
        warn(
            f"no finalist passed its repeats ({finalists[0].problem}), so that nothing is confirmed: the recommendation is the "
            "best of the other evaluations. Correct the objective, or confirm fewer repeats"
        )
