"""The loop that runs by itself: ask, evaluate, tell, until the budget is spent."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from numbers import Integral
from typing import TYPE_CHECKING, Any

from mipcash.optimizers.optimizer import Limit, Optimizer
from mipcash.optimizers.outcome import LOSS, PRESENT, Outcome
from mipcash.space.direction import MINIMIZE
from mipcash.space.space import Space
from mipcash.study.arguments import check_costs, check_goals, costs_by_output, seconds_of
from mipcash.study.calls import callbacks_of, check_direction, check_objective, check_order, explained
from mipcash.study.confirm import (
    CONFIRMED,
    ConfirmGiven,
    Confirming,
    Replicating,
    check_paid,
    confirm_of,
    confirms,
    reserve_of,
    warn_of_identical,
)
from mipcash.study.evaluating.allowed import Allowed
from mipcash.study.evaluating.evaluation import Objective
from mipcash.study.evaluating.pool import Executors, Pool
from mipcash.study.evaluating.processes import Processes, brought
from mipcash.study.loop import BEST_OF_ALL, BUDGET, EXHAUSTED, Callback, Loop
from mipcash.study.progress import Progress, make_progress
from mipcash.study.racing import RacingGiven, racing_of
from mipcash.study.records.given import KnownGiven
from mipcash.study.records.goals import ObjectivesGiven, goals_of
from mipcash.study.records.limits import LimitsGiven
from mipcash.study.replication import RESERVED, tells_variance
from mipcash.study.result import Result
from mipcash.study.signatures import takes
from mipcash.study.spending import Budget, Cost, Fits, Reserve, Spending, check_budget
from mipcash.study.storage.protocol import Storage
from mipcash.study.study import SECONDS_PER_PROPOSAL, Study
from mipcash.study.text import shown

if TYPE_CHECKING:
    from mipcash.backends.task import Backend


@explained
def minimize(
    objective: Objective,
    space: Space,
    budget: Budget,
    *,
    direction: str = MINIMIZE,
    objectives: ObjectivesGiven = None,
    limits: LimitsGiven = None,
    known: KnownGiven = (),
    seed: int = 0,
    optimizer: str | Optimizer = "hybrid",
    settings: Any = None,
    solver: str | Backend = "auto",
    seconds_per_proposal: float | None = SECONDS_PER_PROPOSAL,
    storage: str | os.PathLike[str] | Storage | None = None,
    fresh: bool = False,
    timeout: float | None = None,
    workers: int = 1,
    executor: Executors = None,
    retries: int = 2,
    evaluation_timeout: float | None = None,
    evaluation_memory: float | None = None,
    racing: RacingGiven = False,
    confirm: ConfirmGiven = None,
    noisy: bool | None = None,
    costs: Mapping[str, float] | None = None,
    callbacks: Callback | Sequence[Callback] = (),
    progress: bool | Progress | None = None,
) -> Result:
    """Find the legal configuration of a space for which an expensive objective is lowest, or highest.

    >>> space = mc.Space("network")
    >>> layers = space.integer("layers", 1, 3)
    >>> rate = space.real("rate", 1e-4, 1e-1, log=True)
    >>> result = mc.minimize(lambda config: (config["rate"] - 0.01) ** 2 + config["layers"], space, 25)
    >>> result.config, result.value

    Objective, space and budget say what is searched; most scripts add ``storage=``, ``limits=`` or ``workers=``. The other
    arguments are for evaluations that take long, fail or come in folds.

    Args:
        objective: takes a configuration (a dict that it may change) and returns a float, or a dict with ``"loss"`` and further
            named numbers. What it raises is a failure, and so is a loss that is not finite or beyond 1e100 in magnitude, or any
            other value; the run goes on, but for a ``DefectError``. It may be a generator, which yields such a result for each of
            several fits: the outcome is their mean, unless it returns one of its own. Or one function per output, by name,
            ``{"loss": f, "latency_ms": g}``, each of which returns its number: then the optimizer may choose which to call.
        space: the space to search; every proposal is legal under its rules.
        budget: number of evaluations, failed ones and those of a resumed journal included, known ones not; of functions per output
            each call is one. ``mc.Fits(200)``: number of fits, of an objective that yields. ``mc.Cost(3600)``: what they may cost
            together, by ``costs``. What would exceed it is not started.
        direction: ``minimize`` or ``maximize``. Trials, results, limits and the journal have what the objective gave, with its own
            sign, under the name of the loss.
        objectives: names of several outputs, ``["loss", "latency_ms"]``, or directions by name, ``{"accuracy": "maximize",
            "latency_ms": "minimize"}``: the objective returns a dict that has them all, and ``result.front`` has what nothing is
            better than in all of them. None: the loss alone.
        limits: what outputs of a good configuration keep, by name, at most or (low, high): ``{"latency_ms": 5.0, "accuracy": (0.9,
            None)}``. They are learned, and the answer is the best that kept them.
        known: evaluations made elsewhere, as pairs of a configuration and its outcome; see :meth:`mipcash.Study.add`. What is in
            the storage already is not added again.
        seed: a whole number; the same seed gives the same run.
        optimizer: a name (``hybrid``, ``cmes``, ``mivabo``, ``admm``, ``random`` ...), or an optimizer.
        settings: those of the optimizer that differ from its defaults, ``{"n_initial": 8}``; or an object of
            :mod:`mipcash.settings`.
        solver: a name of ``mipcash solvers``, which proves the proposals; ``auto`` takes the fastest that is installed.
        seconds_per_proposal: that a proposal may take at most; None: no limit. The best found by then is proposed.
        storage: file of the journal; one that exists is resumed. None keeps it in memory. A warning says where it was begun with
            another objective.
        fresh: whether to start anew: a journal that exists is renamed to the first free ``NAME.old-1.db``, ``NAME.old-2.db`` ...
            and a new one begins. A database of a server is refused; name a new study there.
        timeout: seconds from now after which no new evaluation starts; one that runs is finished. A proposal gets at most
            what is left of them.
        workers: evaluations at a time, in threads. With one, runs of the same seed are the same; with more, the order
            in which evaluations end decides what the optimizer knows when.
        executor: any ``concurrent.futures.Executor`` to evaluate in instead of threads, ``workers`` at a time; it is
            not shut down. Or a callable that makes one, such as ``lambda: ProcessPoolExecutor(4)``: then one that breaks
            is replaced. With processes the objective must be importable.
        retries: further attempts at an evaluation whose worker died while the run went on; after that it has failed. A trial
            that lost a worker is evaluated alone, so that none fails for another's fault. Where the whole run is killed, its
            evaluations are made again when it is resumed, and that costs no retry.
        evaluation_timeout: seconds after which an evaluation is ended and has failed; None: no limit. Evaluations run in
            ``workers`` processes of their own then, one at a time in each, that load the objective once (the time of that
            does not count); a process whose time is up is killed, with what the evaluation started. What the objective
            changes in this process's variables is not seen here.
        evaluation_memory: megabytes (of 10^6 bytes) beyond which an evaluation is ended in the same way; None: no limit. What
            its process and those that it started hold counts, with all that was loaded; looked at every 0.05 seconds, in which
            an evaluation may exceed it.
        racing: whether an objective that yields or reports is stopped before its last fit, where it is clearly worse than the best
            so far; see :mod:`mipcash.study.racing`. ``True``: by the paired differences of folds; ``"halving"``: by successive
            halving, also for learning curves; :class:`mipcash.Racing`, :class:`mipcash.Halving`: with other settings. What was
            stopped is one evaluation, is learned from as a noisier one, and is never the answer.
        confirm: a number of finalists, or :class:`mipcash.Confirm`: the best of the search are evaluated again, with
            ``repeat=1``, 2 ... where the objective has a parameter of that name, and the best of them there, limits included, is
            the answer. They count in the budget. ``result.finalists`` has both losses. Without such a parameter repeats of a
            deterministic objective are identical, which is warned of. None: the answer is the search's.
        noisy: whether two evaluations of one configuration differ. ``True``: a quarter of the budget, and what the search leaves of
            the rest, goes to repeats of the configurations that are most likely the best, and the answer has the lowest mean of
            repeats. ``False``: nothing is repeated. None: repeats take what is left when the space is exhausted, where the
            objective has a parameter ``repeat``, returns a number ``variance`` beside the loss, or yields fits that differ.
        costs: what one call of each function costs, by output, in any one unit, where the objective is a function per output; None:
            1 each. ``hybrid`` calls what promises most per cost; optimizers that do not choose call all for each configuration.
        callbacks: one or several, called as ``callback(study, trial)`` after each evaluation. One that returns True ends the
            run; an exception ends it too and is passed on. In both cases the run can be resumed.
        progress: None shows a bar on a terminal and a line per evaluation elsewhere; True forces the bar, False is
            silent; a :class:`~mipcash.study.progress.Progress` shows the run its own way.

    Ctrl-C, ``SystemExit`` and a killed process leave a journal that resumes with the same proposals: the evaluation
    they interrupt is done again.

    Returns:
        The answer, ``result.config`` and ``result.value``, and all trials, ``result.history``.

    Raises:
        TypeError: the objective cannot be called with one configuration, the space is none, or an argument is unknown.
        ValueError: budget, costs, workers, retries or a number of seconds out of range; an executor beside ``evaluation_timeout``
            or ``evaluation_memory``.
        ConfigurationError: a known configuration is illegal.
        StorageError: see :class:`mipcash.Study`.
        ObjectiveError: the objective cannot be brought to a process, which ``evaluation_timeout`` and ``evaluation_memory`` need,
            or takes all of that memory when it is loaded.
        ExecutorError: a lent executor is broken; nothing is lost, and the run can be resumed.
        DefectError: the objective fails for a reason of its own: an error that cannot depend on the configuration (a name, a
            package that is missing) before any evaluation has succeeded, or the same error in each of the first five. Those
            evaluations do not count; run again, once it is mended, and they are made again. :class:`mipcash.Failed` and nan are
            statements about a configuration, and never end a run.
    """
    check_order(objective, space, budget)
    _check_plan(budget, timeout, workers)
    allowed = Allowed.of(evaluation_timeout, evaluation_memory, executor)
    racing_of(racing)
    confirming = confirm_of(confirm, budget)
    check_direction(objective, direction)
    goals = goals_of(direction, objectives)
    callbacks = callbacks_of(callbacks)
    if isinstance(space, Space):  # else the study says so
        check_objective(objective, space.parameters)
    costs = costs_by_output(objective, costs, limits)
    check_goals(goals, costs, racing_of(racing), confirming or noisy)
    if noisy and costs:
        raise ValueError(
            "noisy=True repeats whole evaluations, and costs= is for outputs that are evaluated apart; leave one out"
        )
    check_paid(confirming, Spending.of_budget(budget, costs))
    if allowed is not None:
        brought(objective)  # before a journal is made
    display = make_progress(progress)
    with Study(
        space,
        optimizer,
        solver,
        direction=direction,
        objectives=objectives,
        seed=seed,
        storage=storage,
        fresh=fresh,
        settings=settings,
        limits=limits,
        costs=costs,
        retries=retries,
        seconds_per_proposal=seconds_per_proposal,
    ) as study:
        if study.renamed is not None:
            display.note(f"the journal that was there is {study.renamed} now")
        study.add_missing(known)
        return run(
            study,
            objective,
            budget,
            timeout=timeout,
            callbacks=callbacks,
            workers=workers,
            progress=display,
            executor=executor,
            evaluation_timeout=evaluation_timeout,
            evaluation_memory=evaluation_memory,
            racing=racing,
            confirm=confirm,
            noisy=noisy,
        )


def run(
    study: Study,
    objective: Objective,
    budget: Budget,
    *,
    timeout: float | None = None,
    callbacks: Callback | Sequence[Callback] = (),
    workers: int = 1,
    progress: bool | Progress | None = None,
    executor: Executors = None,
    evaluation_timeout: float | None = None,
    evaluation_memory: float | None = None,
    racing: RacingGiven = False,
    confirm: ConfirmGiven = None,
    noisy: bool | None = None,
) -> Result:
    """:func:`minimize` for a study that exists; the study stays open."""
    deadline = None if timeout is None else time.monotonic() + timeout
    _check_plan(budget, timeout, workers)
    check_objective(objective, study.space.parameters)
    check_direction(objective, study.goals.goals[0].direction)
    check_costs(objective, study.costs)
    spending = Spending.of_budget(budget, study.costs)
    allowed, raced = Allowed.of(evaluation_timeout, evaluation_memory, executor), racing_of(racing)
    confirming = confirm_of(confirm, budget)
    check_paid(confirming, spending)
    check_goals(study.goals, study.costs, raced, confirming)
    reserve = reserve_of(confirming)
    if noisy and confirming is None and isinstance(budget, Integral):
        reserve = Reserve(int(budget) // RESERVED, "noisy=True")
    with _place(objective, executor, workers, allowed) as place, make_progress(progress) as display:
        study.plan(None if isinstance(budget, (Cost, Fits)) else int(budget), timeout, objective)
        display.spending, display.limits, display.deadline = spending, study.limits, deadline
        display.begin(study.space.name, spending.total, study.trials)
        loop = Loop(study, objective, spending, deadline, callbacks_of(callbacks), display, raced, reserve)
        reason = loop.alone() if place is None else loop.together(place, workers)
        if confirming is not None and confirms(reason) and reserve.paid:
            again = Confirming(study, objective, spending, deadline, callbacks_of(callbacks), display)
            again.begin(confirming)
            ended = again.alone() if place is None else again.together(place, workers)
            reason = reason if ended in (CONFIRMED, BUDGET) else ended
            functions = objective.values() if isinstance(objective, Mapping) else [objective]
            if not any(takes(f, "repeat") for f in functions):
                warn_of_identical(study.result.finalists)
        elif confirming is None and confirms(reason) and _is_noisy(study, objective, noisy):
            again = Replicating(study, objective, spending, deadline, callbacks_of(callbacks), display)
            ended = again.alone() if place is None else again.together(place, workers)
            reason = reason if ended in (CONFIRMED, BUDGET) else ended
        elif reason == EXHAUSTED and _all_known(study):
            reason = BEST_OF_ALL
        study.stop(reason)
        return replace(study.result, objective=objective)


@contextmanager
def _place(
    objective: Objective, executor: Executors, workers: int, allowed: Allowed | None
) -> Iterator[Pool | Processes | None]:
    """Where evaluations run; None: in this thread."""
    if allowed is not None:
        with Processes(objective, workers, allowed) as processes:
            yield processes
    elif executor is None and workers == 1:
        yield None
    else:
        with Pool(objective, executor, workers) as pool:
            yield pool


def _is_noisy(study: Study, objective: Objective, noisy: bool | None) -> bool:
    """Return whether what is left of the budget goes to repeats: as the caller says, else where evaluations show noise."""
    if noisy is not None or study.goals.several or study.costs:
        return bool(noisy)
    if tells_variance(study.trials) or (callable(objective) and takes(objective, "repeat")):
        return True
    return study.noise > 0.0


def _all_known(study: Study) -> bool:
    """Whether every trial has a loss, and what decides whether it keeps the limits.

    Where outputs are evaluated apart, as much of it as shows that a configuration is not better than the answer.
    """
    found = study.result
    if study.goals.several:
        return all(t.done for t in study.trials if t.legal and not t.repeat)
    best, first = found.best, found.standing.best
    lowest = math.nan if best is None or best.minimised is None else best.minimised
    if first is not None and first.minimised is not None and not lowest <= first.minimised:
        return False  # the optimizer recommends another, of whose limits it is surer
    decide = (LOSS, *(limit.output for limit in study.limits))
    legal = [t for t in study.trials if t.legal and not t.repeat]
    if not study.costs:
        return all(t.done and t.whole and all(t.outcome[name].status == PRESENT for name in decide) for t in legal)
    told: dict[str, Outcome] = {}
    for trial in legal:
        key = repr(trial.config)
        told[key] = told.get(key, Outcome()).with_part(trial.turned().outcome)
    limits = study.goals.turned(study.limits)
    return all(_settled(outcome, limits, lowest) for outcome in told.values())


def _settled(outcome: Outcome, limits: Sequence[Limit], best: float) -> bool:
    """Whether it is known that a configuration is not better than one whose loss is the best."""
    told = ((limit, outcome[limit.output]) for limit in limits)
    known = [limit for limit, output in told if output.status == PRESENT and output.variance is None]
    broken = any(limit.violation(outcome[limit.output].value) > 0.0 for limit in known)
    return broken or (
        outcome.loss is not None and not outcome.stopped and (len(known) == len(limits) or outcome.loss >= best)
    )


def _check_plan(budget: Budget, timeout: float | None, workers: int) -> None:
    check_budget(budget)
    seconds_of("timeout", timeout)
    if not isinstance(workers, Integral) or isinstance(workers, bool) or workers < 1:
        raise ValueError(f"workers must be a whole number, at least 1, got {shown(workers)}")
