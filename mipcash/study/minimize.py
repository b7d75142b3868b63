"""The loop that runs by itself: ask, evaluate, tell, until the budget is spent."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

from mipcash.optimizers.optimizer import Limit
from mipcash.optimizers.outcome import LOSS, PRESENT, Outcome
from mipcash.space.direction import MINIMIZE
from mipcash.space.space import Space
from mipcash.study.arguments import check_costs, check_goals, costs_by_output
from mipcash.study.calls import callbacks_of, check_direction, check_objective, check_order, explained
from mipcash.study.confirm import (
    REPLICATE,
    Confirm,
    ConfirmGiven,
    check_paid,
    check_replicated,
    confirm_of,
    confirms,
    enqueue_finalists,
    reserve_of,
    warn_of_identical,
)
from mipcash.study.evaluating.evaluation import Objective
from mipcash.study.evaluating.pool import Evaluating, Inline, Pool
from mipcash.study.evaluating.processes import Processes, brought
from mipcash.study.execution import Execution, ExecutionGiven, execution_of
from mipcash.study.loop import Loop
from mipcash.study.method import OptimizerGiven
from mipcash.study.policies.defects import EndAtDefect
from mipcash.study.policies.ended import Callback, Callbacks, OptimizerStops
from mipcash.study.policies.policy import BEST_OF_ALL, BUDGET, CONFIRMED, EXHAUSTED, Policy
from mipcash.study.policies.spent import Deadline, WithinBudget
from mipcash.study.policies.workers import Pace, Shown, Suspects, await_others
from mipcash.study.progress import Progress, make_progress
from mipcash.study.pruning import PruningGiven, pruning_of
from mipcash.study.records.given import KnownGiven
from mipcash.study.records.goals import DirectionGiven, goals_of
from mipcash.study.records.limits import LimitsGiven
from mipcash.study.replication import tells_variance
from mipcash.study.result import Result
from mipcash.study.signatures import takes
from mipcash.study.sources import Repeats, Search
from mipcash.study.spending import Budget, BudgetGiven, Reserve, Spending
from mipcash.study.storage.registry import StorageGiven
from mipcash.study.study import Study


@explained
def minimize(
    objective: Objective,
    space: Space,
    budget: BudgetGiven,
    *,
    direction: DirectionGiven = MINIMIZE,
    limits: LimitsGiven = None,
    known: KnownGiven = (),
    seed: int = 0,
    optimizer: OptimizerGiven = "hybrid",
    storage: StorageGiven = None,
    execution: ExecutionGiven = None,
    pruning: PruningGiven = False,
    confirm: ConfirmGiven = None,
    callbacks: Callback | Sequence[Callback] = (),
    progress: bool | Progress | None = None,
) -> Result:
    """Find the legal configuration of a space for which an expensive objective is lowest, or highest.

    >>> space = mc.Space("network")
    >>> layers = space.integer("layers", 1, 3)
    >>> rate = space.real("rate", 1e-4, 1e-1, log=True)
    >>> result = mc.minimize(lambda config: (config["rate"] - 0.01) ** 2 + config["layers"], space, 25)
    >>> result.config, result.value

    Objective, space and budget say what is searched; most scripts add ``storage=``, ``limits=`` or ``execution=``. What belongs
    together is one argument: a plain value for the common case, an object for the rest.

    Args:
        objective: takes a configuration (a dict that it may change) and returns a float, or a dict with ``"loss"`` and further
            named numbers. What it raises is a failure, and so is a loss that is not finite or beyond 1e100 in magnitude, or any
            other value; the run goes on, but for a ``DefectError``. It may be a generator, which yields such a result for each of
            several fits: the outcome is their mean, unless it returns one of its own. Or one function per output, by name,
            ``{"loss": f, "latency_ms": g}``, each of which returns its number: then the optimizer may choose which to call.
        space: the space to search; every proposal is legal under its rules.
        budget: number of evaluations, failed ones and those of a resumed journal included, known ones not; of functions per output
            each call is one. ``mc.Fits(200)``: number of fits, of an objective that yields. ``mc.Cost(3600)``: what they may cost
            together. :class:`mipcash.Budget` adds a time limit and costs: ``mc.Budget(50, timeout=3600)``. What would exceed it is
            not started.
        direction: ``minimize`` or ``maximize``. Trials, results, limits and the journal have what the objective gave, with its own
            sign, under the name of the loss. Several objectives: their names, ``["loss", "latency_ms"]``, or a direction each,
            ``{"accuracy": "maximize", "latency_ms": "minimize"}``; the objective returns a dict that has them all, and
            ``result.front`` is the Pareto front.
        limits: outcome constraints, by output, at most or (low, high): ``{"latency_ms": 5.0, "accuracy": (0.9, None)}``. They are
            learned, and the answer is the best that kept them.
        known: evaluations made elsewhere, as pairs of a configuration and its outcome; see :meth:`mipcash.Study.add`. What is in
            the storage already is not added again.
        seed: a whole number; the same seed gives the same run.
        optimizer: a name (``hybrid``, ``cmes``, ``mivabo``, ``admm``, ``random`` ...), a :class:`mipcash.Method` with its settings
            and solver, ``mc.Method("hybrid", solver="scip")``, or an optimizer.
        storage: file of the journal; one that exists is resumed. None keeps it in memory. A warning says where it was begun with
            another objective. ``mc.Journal("run.db", fresh=True)`` starts anew.
        execution: number of evaluations at a time, or :class:`mipcash.Execution`: executor, retries, limits on time and memory of
            an evaluation.
        pruning: whether an objective that yields or reports is stopped before its last fit, where it is clearly worse than the best
            so far; see :mod:`mipcash.study.pruning`. ``True``: by the paired differences of folds; ``"halving"``: by successive
            halving, also for learning curves; :class:`mipcash.Racing`, :class:`mipcash.Halving`: with other settings. What was
            stopped is one evaluation, is learned from as a noisier one, and is never the answer.
        confirm: evaluations again after the search, with ``repeat=1``, 2 ... where the objective has a parameter of that name; they
            count in the budget, and ``result.finalists`` has their losses. A number of finalists, or :class:`mipcash.Confirm`: the
            best of the search are evaluated again, and the best of them there, limits included, is the answer. ``"replicate"``, for
            noisy objectives: a quarter of the budget, and what the search leaves of the rest, goes to repeats of the
            configurations that are most likely the best, and the answer has the lowest mean of repeats. ``False``: nothing is
            repeated. None: repeats take what is left when the space is exhausted, where the objective has a parameter ``repeat``,
            returns a number ``variance`` beside the loss, or yields fits that differ.
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
        ValueError: a budget, costs or a setting out of range, or two that exclude each other.
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
    budget, execution = Budget.of(budget), execution_of(execution)
    pruning_of(pruning)
    confirming = confirm_of(confirm, budget.amount)
    goals = goals_of(direction)
    check_direction(objective, goals)
    callbacks = callbacks_of(callbacks)
    if isinstance(space, Space):  # else the study says so
        check_objective(objective, space.parameters)
    costs = costs_by_output(objective, budget.costs, limits)
    check_goals(goals, costs, pruning_of(pruning), confirming)
    check_replicated(confirming, costs)
    check_paid(confirming, Spending.of_budget(budget.amount, costs))
    if execution.allowed is not None:
        brought(objective)  # before a journal is made
    display = make_progress(progress)
    with Study(
        space,
        optimizer,
        direction=direction,
        seed=seed,
        storage=storage,
        limits=limits,
        costs=costs,
        pruning=pruning,
        retries=execution.retries,
    ) as study:
        if study.renamed is not None:
            display.note(f"the journal that was there is {study.renamed} now")
        study.add_missing(known)
        return run(
            study, objective, budget, execution=execution, confirm=confirm, callbacks=callbacks, progress=display
        )


def run(
    study: Study,
    objective: Objective,
    budget: BudgetGiven,
    *,
    execution: ExecutionGiven = None,
    confirm: ConfirmGiven = None,
    callbacks: Callback | Sequence[Callback] = (),
    progress: bool | Progress | None = None,
) -> Result:
    """:func:`minimize` for a study that exists; the study stays open."""
    budget, execution = Budget.of(budget), execution_of(execution)
    check_objective(objective, study.space.parameters)
    check_direction(objective, study.goals)
    check_costs(objective, study.costs)
    spending = Spending.of_budget(budget.amount, study.costs)
    confirming = confirm_of(confirm, budget.amount)
    check_paid(confirming, spending)
    check_goals(study.goals, study.costs, study.pruning, confirming)
    reserve = reserve_of(confirming, budget.amount)
    callbacks, deadline = callbacks_of(callbacks), Deadline(budget.timeout)
    with _pool(objective, execution) as pool, make_progress(progress) as display:
        study.plan(budget.evaluations, budget.timeout, objective)
        display.spending, display.limits, display.deadline = spending, study.limits, deadline.at
        display.begin(study.space.name, spending.total, study.trials)
        others = partial(await_others, study, deadline)
        pace, within = Pace(), WithinBudget(study, spending, reserve)
        search = Search(study, within, deadline, pace)
        policies: list[Policy] = [EndAtDefect(study), Shown(study, display), pace, within, deadline, Suspects(study)]
        policies += [OptimizerStops(study), Callbacks(study, callbacks)]
        reason = Loop(study, pool, execution.workers, search, policies, display, others).run()
        again = _repeats(study, objective, confirming, reason, reserve)
        if again is not None:
            within = WithinBudget(study, spending, Reserve(), whole=True)
            policies = [EndAtDefect(study), Shown(study, display), deadline, within, Suspects(study)]
            policies += [Callbacks(study, callbacks)]
            ended = Loop(study, pool, execution.workers, again, policies, display, others).run()
            reason = reason if ended in (CONFIRMED, BUDGET) else ended
            functions = objective.values() if isinstance(objective, Mapping) else [objective]
            if isinstance(confirming, Confirm) and not any(takes(f, "repeat") for f in functions):
                warn_of_identical(study.result.finalists)
        elif reason == EXHAUSTED and not isinstance(confirming, Confirm) and _all_known(study):
            reason = BEST_OF_ALL
        study.stop(reason)
        return replace(study.result, objective=objective)


def _repeats(
    study: Study, objective: Objective, confirming: Confirm | str | bool | None, reason: str, reserve: Reserve
) -> Repeats | None:
    """Return the repeats that follow a search; None if there are none."""
    if not confirms(reason):
        return None
    if isinstance(confirming, Confirm):
        if not reserve.paid:
            return None
        enqueue_finalists(study, confirming)
        return Repeats(study)
    return Repeats(study, chosen=True) if _is_noisy(study, objective, confirming) else None


@contextmanager
def _pool(objective: Objective, execution: Execution) -> Iterator[Evaluating]:
    """Where evaluations run."""
    allowed, executor, workers = execution.allowed, execution.executor, execution.workers
    if allowed is not None:
        with Processes(objective, workers, allowed) as processes:
            yield processes
    elif executor is None and workers == 1:
        yield Inline(objective)
    else:
        with Pool(objective, executor, workers) as pool:
            yield pool


def _is_noisy(study: Study, objective: Objective, said: str | bool | None) -> bool:
    """Return whether what is left of the budget goes to repeats: as the caller says, else where evaluations show noise."""
    if said is not None or study.goals.several or study.costs:
        return said == REPLICATE
    if tells_variance(study.trials) or (callable(objective) and takes(objective, "repeat")):
        return True
    from mipcash.optimizers.noise import evident_noise  # brings surrogates along

    return evident_noise(study.table.history) > 0.0


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
