"""Run the whole loop: ask, evaluate, tell, until the budget is spent."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

from mipcash.optimizers.noise import measured_noise
from mipcash.optimizers.optimizer import Limit
from mipcash.optimizers.outcome import LOSS, PRESENT, Outcome
from mipcash.space.direction import MINIMIZE
from mipcash.space.space import Space
from mipcash.study.arguments import check_costs, check_objectives, costs_by_output
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
    warn_of_failed,
    warn_of_identical,
    warn_of_rest,
)
from mipcash.study.evaluating.evaluation import Objective
from mipcash.study.evaluating.pool import Inline, Pool
from mipcash.study.evaluating.processes import Processes, pickled_objective
from mipcash.study.execution import Execution, ExecutionGiven, execution_of
from mipcash.study.loop import Loop
from mipcash.study.method import OptimizerGiven
from mipcash.study.policies.defects import EndAtDefect
from mipcash.study.policies.policy import BEST_OF_ALL, BUDGET, CONFIRMED, EXHAUSTED, Policy
from mipcash.study.policies.spent import Callback, Callbacks, Deadline, OptimizerStops, WithinBudget
from mipcash.study.policies.workers import Pace, Shown, Suspects, await_others
from mipcash.study.progress import Progress, make_progress
from mipcash.study.pruning import PruningGiven, pruning_of
from mipcash.study.records.directions import DirectionGiven, objectives_of
from mipcash.study.records.given import KnownGiven
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
    """Find the legal configuration of a space that minimises, or maximises, an expensive objective.

    Objective, space and budget define the search; most scripts add ``storage=``, ``limits=`` or ``execution=``. Related
    settings share one argument: a plain value for the common case, an object for the rest.

    Ctrl-C, ``SystemExit`` and a killed process leave a journal that resumes with the same proposals. Evaluations that had finished
    are recorded, without a call of ``callbacks``, unless the process was killed; the interrupted ones are repeated.

    Args:
        objective: takes a configuration (a dict that it may change) and returns a float, or a dict with ``"loss"`` and further
            named numbers. An exception, a loss that is not finite or beyond 1e100 in magnitude, or any other value is a failed
            evaluation. The run goes on after failures, except for a ``DefectError``. The objective may be a generator that yields
            such a result for each of several steps (folds, epochs): the outcome is their mean, unless it returns its own outcome.
            Or pass one function per output, ``{"loss": f, "latency_ms": g}``, each of which returns a number; the optimizer may
            then choose which to call.
        space: the space to search; every proposal is legal under its rules.
        budget: number of evaluations, including failed ones and those of a resumed journal, but not ``known`` ones. With one
            function per output, each call counts. ``mc.Steps(200)``: number of steps, for an objective that yields.
            ``mc.Cost(3600)``: their total cost. [`mipcash.Budget`][mipcash.study.spending.Budget] adds a time limit and costs:
            ``mc.Budget(50, timeout=3600)``. An evaluation that would exceed the budget is not started, except for the
            last one of a space with a fidelity.
        direction: ``minimize`` or ``maximize``. Trials, results, limits and the journal keep the objective's own sign, under the
            name of the loss. Several objectives: their names, ``["loss", "latency_ms"]``, or a direction each, ``{"accuracy":
            "maximize", "latency_ms": "minimize"}``; the objective returns a dict that has them all, and ``result.front`` is the
            Pareto front.
        limits: outcome constraints by output, an upper limit or (low, high): ``{"latency_ms": 5.0, "accuracy": (0.9, None)}``. They
            are modelled, and the best feasible trial is recommended.
        known: evaluations made outside this study, as pairs of a configuration and its outcome, or as a table
            ([`mipcash.read_trials`][mipcash.read_trials]); see [`mipcash.Study.add`][mipcash.study.study.Study.add]. Pairs that
            are in the storage already are not added again.
        seed: an integer, at least 0; the same seed gives the same run.
        optimizer: a name (``hybrid``, ``cmes``, ``mivabo``, ``admm``, ``random`` ...), a
            [`mipcash.Method`][mipcash.study.method.Method] with its settings and solver, ``mc.Method("hybrid",
            solver="scip")``, or an optimizer.
        storage: file of the journal; an existing one is resumed, with a warning if it was started with another objective. None
            keeps the journal in memory. ``mc.Journal("run.db", fresh=True)`` starts a new one.
        execution: number of concurrent evaluations, or [`mipcash.Execution`][mipcash.study.execution.Execution]: executor,
            retries, limits on time and memory of an evaluation.
        pruning: stop an objective that yields or reports before its last step if it is clearly worse than the best so far; see
            ``mipcash.study.pruning``. ``True``: by paired differences of folds; ``"halving"``: by successive halving, also for
            learning curves; [`mipcash.Racing`][mipcash.study.pruning.Racing],
            [`mipcash.Halving`][mipcash.study.pruning.Halving]: with other settings. A pruned trial counts as one evaluation.
            The model treats its loss as noisier, and it is never recommended.
        confirm: evaluations repeated after the search, with ``repeat=1``, 2 ... if the objective has a parameter of that name. They
            count in the budget, and ``result.finalists`` has their losses. A number of finalists, or
            [`mipcash.Confirm`][mipcash.study.confirm.Confirm]: the best trials of the search are evaluated again, and the best
            feasible one of them is recommended. ``"replicate"``, for
            noisy objectives: a quarter of the budget, and what the search leaves of the rest, goes to repeats of the configurations
            that are most likely the best. The one with the lowest mean is recommended. ``False``: no repeats. None: repeats use the
            budget left when the space is exhausted, if the objective has a parameter ``repeat``, returns a number ``variance``
            beside the loss, or yields steps that differ.
        callbacks: one or several, called as ``callback(study, trial)`` after each evaluation. A callback that returns True ends the
            run; an exception ends the run and is re-raised. In both cases the run can be resumed.
        progress: None shows a bar on a terminal or in a notebook, otherwise a line per evaluation; True forces the bar, False is
            silent; a ``Progress`` displays the run in its own way.

    Returns:
        The best trial, ``result.config`` and ``result.value``, and all trials, ``result.history``.

    Raises:
        TypeError: the objective cannot be called with one configuration, ``space`` is no space, or an argument is unknown.
        ValueError: a budget, costs or a setting is out of range, or two arguments exclude each other.
        ConfigurationError: a known configuration is illegal.
        StorageError: see [`mipcash.Study`][mipcash.study.study.Study].
        ObjectiveError: the objective cannot be sent to a process, as ``evaluation_timeout`` and ``evaluation_memory`` require, or
            loading it takes all of that memory.
        ExecutorError: the given executor is broken; nothing is lost, and the run can be resumed.
        DefectError: the objective itself is broken: an error that cannot depend on the configuration (an undefined name, a missing
            package) occurred before any evaluation succeeded, or the same error in each of the first five. Those evaluations do not
            count; they are repeated when the corrected objective is run again. [`mipcash.Failed`][mipcash.study.trial.Failed]
            and nan describe a configuration and never end a run.

    Examples:
        >>> import mipcash as mc
        >>> space = mc.Space("network")
        >>> layers = space.integer("layers", 1, 3)
        >>> rate = space.real("rate", 1e-4, 1e-1, log=True)
        >>> rule = space.rule("deep networks learn slowly", rate <= 0.03, when=layers[3])
        >>> result = mc.minimize(lambda c: abs(c["rate"] - 0.01) + c["layers"], space, 4, progress=False)
        >>> result.n_done, space.is_legal(result.config)
        (4, True)
    """
    check_order(objective, space, budget)
    budget, execution = Budget.of(budget), execution_of(execution)
    pruning_of(pruning)
    confirming = confirm_of(confirm, budget.amount)
    objectives = objectives_of(direction)
    check_direction(objective, objectives)
    callbacks = callbacks_of(callbacks)
    if isinstance(space, Space):  # otherwise the study raises the error
        check_objective(objective, space.parameters)
    costs = costs_by_output(objective, budget.costs, limits)
    check_objectives(objectives, costs, pruning_of(pruning), confirming)
    check_replicated(confirming, costs)
    check_paid(confirming, Spending.of_budget(budget.amount, costs))
    if execution.allowed is not None:
        pickled_objective(objective)  # before a journal is created
    display = make_progress(progress)
    with Study(
        space,
        optimizer,
        direction=direction,
        seed=seed,
        storage=storage,
        limits=limits,
        known=known,
        costs=costs,
        pruning=pruning,
        retries=execution.retries,
    ) as study:
        if study.renamed is not None:
            display.note(f"the journal that was there is {study.renamed} now")
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
    """Run ``minimize`` on an existing study, which stays open."""
    budget, execution = Budget.of(budget), execution_of(execution)
    check_objective(objective, study.space.parameters)
    check_direction(objective, study.objectives)
    check_costs(objective, study.costs)
    spending = Spending.of_budget(budget.amount, study.costs)
    confirming = confirm_of(confirm, budget.amount)
    check_paid(confirming, spending)
    check_replicated(confirming, study.costs)
    check_objectives(study.objectives, study.costs, study.pruning, confirming)
    reserve = reserve_of(confirming, budget.amount)
    callbacks, deadline = callbacks_of(callbacks), Deadline(budget.timeout)
    with _pool(objective, execution) as pool, make_progress(progress) as display:
        before, evaluated = study.record.stopped, study.n_evaluated
        study.plan(budget.evaluations, budget.timeout, objective)
        display.spending, display.limits, display.deadline = spending, study.limits, deadline.at
        display.begin(study.space.name, spending.total, study.trials)
        others = partial(await_others, study, deadline)
        pace, within = Pace(execution.workers), WithinBudget(study, spending, reserve)
        search = Search(study, within, deadline, pace)
        defects = EndAtDefect(study)
        policies: list[Policy] = [defects, Shown(study, display), pace, within, deadline, Suspects(study)]
        policies += [OptimizerStops(study), Callbacks(study, callbacks)]
        reason = Loop(study, pool, execution.workers, search, policies, display, others).run()
        again = _repeats(study, objective, confirming, reason, reserve)
        if again is not None:
            within = WithinBudget(study, spending, Reserve(), whole=True)
            policies = [defects, Shown(study, display), deadline, within, Suspects(study)]
            policies += [Callbacks(study, callbacks)]
            ended = Loop(study, pool, execution.workers, again, policies, display, others).run()
            reason = reason if ended in (CONFIRMED, BUDGET) else ended
            functions = objective.values() if isinstance(objective, Mapping) else [objective]
            if isinstance(confirming, Confirm) and not any(takes(f, "repeat") for f in functions):
                warn_of_identical(study.result.finalists)
            if isinstance(confirming, Confirm) and reason == BUDGET:
                warn_of_rest(confirming, study, budget.evaluations)
            warn_of_failed(study.result.finalists)
        elif reason == EXHAUSTED and not isinstance(confirming, Confirm) and _all_known(study):
            reason = BEST_OF_ALL
        if reason == BUDGET and before.startswith(EXHAUSTED) and study.n_evaluated == evaluated:
            reason = before  # nothing was left to do
        study.stop(reason)
        return replace(study.result, objective=objective)


def _repeats(
    study: Study, objective: Objective, confirming: Confirm | str | bool | None, reason: str, reserve: Reserve
) -> Repeats | None:
    """Return the source of the repeats that follow a search; None if there are none."""
    if not confirms(reason):
        return None
    if isinstance(confirming, Confirm):
        if not reserve.paid:
            return None
        enqueue_finalists(study, confirming, reason)
        return Repeats(study)
    return Repeats(study, chosen=True) if _is_noisy(study, objective, confirming) else None


@contextmanager
def _pool(objective: Objective, execution: Execution) -> Iterator[Inline | Pool | Processes]:
    """Yield the pool that evaluates the objective."""
    allowed, executor, workers = execution.allowed, execution.executor, execution.workers
    if allowed is not None:
        with Processes(objective, workers, allowed) as processes:
            yield processes
    elif executor is None and workers == 1:
        yield Inline(objective)
    else:
        with Pool(objective, executor, workers) as pool:
            yield pool


def _is_noisy(study: Study, objective: Objective, noisy: str | bool | None) -> bool:
    """Return True if the remaining budget goes to repeats: if ``confirm=`` says so, or by default if noise was measured."""
    if noisy is not None or study.objectives.several or study.costs:
        return noisy == REPLICATE
    if tells_variance(study.trials) or (callable(objective) and takes(objective, "repeat")):
        return True
    return measured_noise(study.table.history) > 0.0


def _all_known(study: Study) -> bool:
    """Return True if every legal trial has its loss and all constrained outputs, so that the best trial is certain.

    With decoupled evaluations, it is enough to know that no configuration is better. Return False if the optimizer recommends a
    trial that does not have the lowest loss.
    """
    found, several = study.result, study.objectives.several
    best, first = found.best, found.feasibility.best
    if best is None:
        return False
    lowest = math.nan if best.minimised is None else best.minimised
    if not several and first is not None and first.minimised is not None and not lowest <= first.minimised:
        return False  # the optimizer recommends a trial with a higher loss that is more certainly feasible
    decide = (LOSS, *(limit.output for limit in study.limits))
    legal = [t for t in study.trials if t.legal and t.at_full_fidelity and not t.repeat]
    if several or not study.costs:
        return all(t.done and t.complete and all(t.outcome[name].status == PRESENT for name in decide) for t in legal)
    reported: dict[str, Outcome] = {}
    for trial in legal:
        key = repr(trial.config)
        reported[key] = reported.get(key, Outcome()).with_part(trial.in_minimisation_form().outcome)
    limits = study.objectives.in_minimisation_form(study.limits)
    return all(_settled(outcome, limits, lowest) for outcome in reported.values())


def _settled(outcome: Outcome, limits: Sequence[Limit], best: float) -> bool:
    """Return True if a configuration cannot improve on the best loss, by what is known of it."""
    reported = ((limit, outcome[limit.output]) for limit in limits)
    known = [limit for limit, output in reported if output.status == PRESENT and output.variance is None]
    broken = any(limit.violation(outcome[limit.output].value) > 0.0 for limit in known)
    return broken or (
        outcome.loss is not None and not outcome.pruned and (len(known) == len(limits) or outcome.loss >= best)
    )
