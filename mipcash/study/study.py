"""The loop by hand: ``ask`` for a trial, evaluate it, ``tell`` its outcome.

A study is composed of a storage, a table of its trials (``mipcash.study.table``), a proposer (``mipcash.study.proposer``) and
the queue that hands trials out (``mipcash.study.queue``). Trial k is proposed with a generator derived from (seed, k), from the
history and from the optimizer's state after the previous trial. All of these are in the journal, so a resumed study proposes the
same trials as an uninterrupted one.
"""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, Self, overload

from mipcash.display import config_text, counted, table
from mipcash.errors import MipcashError, SpaceExhaustedError, StorageError, TellError
from mipcash.modelling.domains import Value
from mipcash.optimizers.outcome import LOSS
from mipcash.space.compiled import declaration_of
from mipcash.space.direction import MINIMIZE
from mipcash.space.exclusion import MinimumDistance
from mipcash.space.space import Space
from mipcash.study.arguments import check_objectives, costs_of, positive, whole_number
from mipcash.study.calls import explained
from mipcash.study.feasibility import Feasibility
from mipcash.study.method import Method, OptimizerGiven
from mipcash.study.proposer import Proposer
from mipcash.study.pruning import PruningGiven, judge_for, pruning_of
from mipcash.study.queue import Queue
from mipcash.study.reading import statement
from mipcash.study.records.directions import DirectionGiven, objectives_of
from mipcash.study.records.fingerprint import record_of
from mipcash.study.records.given import REFUSE, Known, KnownGiven, TableGiven, wanted
from mipcash.study.records.limits import LimitsGiven, limits_of
from mipcash.study.records.objective import identity_of, warn_of_another
from mipcash.study.records.tables import is_table, pairs_of
from mipcash.study.records.telling import finite, reported_costs, told
from mipcash.study.reports import Reports
from mipcash.study.result import Result
from mipcash.study.storage.memory import MemoryStorage
from mipcash.study.storage.protocol import NOTHING, StudyRecord
from mipcash.study.storage.registry import Journal, StorageGiven, make_storage, move_aside
from mipcash.study.table import TrialTable
from mipcash.study.trial import Trial
from mipcash.text import MESSAGE_LIMIT, no_attribute, shown, storable


class Study:
    """Propose configurations and record their outcomes, step by step: ``ask``, evaluate, ``tell``.

    Methods are thread-safe; while one thread is in ``ask``, other threads may call ``tell``. A study holds its journal
    until ``close()`` or the end of its ``with`` block.

    Args:
        space: the space to search.
        optimizer: a name of ``mipcash.optimizers.registry``, a [`mipcash.Method`][mipcash.study.method.Method] with its
            settings and solver, or an [`Optimizer`][mipcash.optimizers.optimizer.Optimizer].
        direction: ``minimize`` the loss or ``maximize`` it. Trials, results, limits and the journal keep the objective's own sign.
            Several objectives: their names, or directions by name, ``{"accuracy": "maximize", "latency_ms": "minimize"}``.
            Proposals then minimise random weightings of them, and ``result.front`` is the Pareto front.
        limits: outcome constraints, by output: an upper limit, or (low, high) with None for no limit. An optimizer that does not
            model outcome constraints raises an error.
        seed: an integer >= 0; the same seed gives the same proposals for the same outcomes.
        storage: file of the journal, accessible to its owner only (0600); an existing one is resumed. An address,
            ``postgresql://user@host/database`` or ``sqlite:///run.db``, lets several processes share the study, see
            ``mipcash.study.storage.address``. None keeps the journal in memory; a
            ``Storage`` is used as it is. With ``mc.Journal(path, fresh=True)`` an existing
            journal is renamed in its folder, and ``study.renamed`` is its new path.
        known: evaluations made outside this study, as for [`add_missing`][mipcash.study.study.Study.add_missing].
        pruning: rule for ``should_stop()`` of a trial that reports, as in
            [`mipcash.minimize`][mipcash.study.minimize.minimize]: ``"halving"`` for epochs, True for folds. It may change when
            a journal is resumed.
        costs: cost of one evaluation of each output, by name, in any one unit, for decoupled evaluation; the loss and all
            constrained outputs must be included. The optimizer may then request only some outputs (``trial.evaluate``), and propose
            a configuration again for the rest. None: each evaluation gives all outputs. It may change when a journal is resumed.
        retries: further attempts at a trial whose worker died during the run, after which it has failed. With 0, evaluations that
            ran beside the one that broke a pool fail with it. An attempt that ended because the whole run was killed costs no
            retry.
        model, options: needed by ``mipcash resume`` to load the space and the objective again.

    Raises:
        StorageError: the journal is in use, damaged, or belongs to another space, seed, optimizer, solver, settings or limits.
        MipcashError: the optimizer does not support outcome constraints.
        TypeError: ``space`` is no [`mipcash.Space`][mipcash.space.space.Space].

    Examples:
        >>> import mipcash as mc
        >>> space = mc.Space("box")
        >>> a, b = space.integer("a", 0, 9), space.integer("b", 0, 9)
        >>> rule = space.rule("sum", a + b >= 5)
        >>> with mc.Study(space, "random", seed=1) as study:
        ...     for _ in range(3):
        ...         trial = study.ask()
        ...         _ = study.tell(trial, trial.config["a"] + 2 * trial.config["b"])
        >>> study.n_evaluated, space.is_legal(study.result.config)
        (3, True)
    """

    @explained
    def __init__(
        self,
        space: Space,
        optimizer: OptimizerGiven = "hybrid",
        *,
        direction: DirectionGiven = MINIMIZE,
        limits: LimitsGiven = None,
        seed: int = 0,
        storage: StorageGiven = None,
        known: KnownGiven = (),
        pruning: PruningGiven = False,
        costs: Mapping[str, float] | None = None,
        retries: int = 2,
        model: str | None = None,
        options: Mapping[str, str] | None = None,
    ) -> None:
        if not isinstance(space, Space):
            raise TypeError(f"space must be a mipcash.Space, got {shown(space)}")
        self.space = space
        self.seed = whole_number("seed", seed, 0)
        method, place = Method.of(optimizer), Journal.of(storage)
        self.optimizer = method.made(space)
        self.limits = limits_of(limits)
        self.objectives = replace(objectives_of(direction), fidelity=declaration_of(space).fidelity)
        self.optimizer.check_limits(self.limits)
        self.pruning = pruning_of(pruning)
        check_objectives(self.objectives, costs or {}, self.pruning, limits=self.limits)
        self.costs = costs_of(costs, self.limits)
        record = record_of(space, self.optimizer, method, self.seed, self.limits, model, options, self.objectives)
        retries = whole_number("retries", retries, 0)
        others = (*(limit.output for limit in self.limits), *self.costs)
        known = pairs_of(known, space, self.objectives, others)  # perhaps of the journal that is moved aside
        self.renamed = move_aside(place.storage) if place.fresh else None
        self._storage = make_storage(place.storage)
        # Closed at the end of the process, too, so that unfinished trials count as given back and not as killed.
        weakref.finalize(self, self._storage.close)
        try:
            self.table = TrialTable(space, self._storage, record, retries)
            seen = self.objectives.in_minimisation_form(self.limits)
            self.proposer = Proposer(space, self.optimizer, self.seed, seen, self.costs, self.objectives)
            self.add_missing(known)
        except BaseException:
            self._storage.close()
            raise
        self.queue = Queue(self.table, self.proposer, method.seconds)

    # -- the loop -----------------------------------------------------------------------------------------------

    @overload
    def ask(self, *, seconds: float | None = None, fixed: Mapping[str, Value] | None = None) -> Trial: ...

    @overload
    def ask(
        self, n: int, *, distance: int = 0, seconds: float | None = None, fixed: Mapping[str, Value] | None = None
    ) -> list[Trial]: ...

    def ask(
        self,
        n: int | None = None,
        *,
        distance: int = 0,
        seconds: float | None = None,
        fixed: Mapping[str, Value] | None = None,
    ) -> Trial | list[Trial]:
        """Return the next trial, or a list of n distinct ones to be evaluated together. They are journaled first.

        Trials that a killed run left without an outcome come first, with their number and configuration. Trials of this study
        without an outcome are pending, and the optimizer takes them into account.

        Args:
            n: None: one trial. A number: a list of that many; fewer only if the space is exhausted.
            distance: minimum Hamming distance between the new trials of a batch: the number of one-hot groups (discrete parameters;
                each module of an ordering counts, and so does being inactive) in which any two differ. 0: they must only be new;
                the optimizer's predictions for pending trials then diversify the batch.
            seconds: limit for each proposal, if lower than ``seconds_per_proposal``.
            fixed: values that the proposals have, by parameter; of a module, its algorithm. The rest is chosen by the model of all
                trials, once a trial with these values has a loss. Trials that wait, such as enqueued ones, wait on.

        Returns:
            The pending trial, or the list of them.

        Raises:
            SpaceExhaustedError: every legal configuration has been proposed, or none is far enough from the batch.
            UndecidedError: the time was too short to find a legal configuration.
            InfeasibleSpaceError: no legal configuration has the fixed values; the message names the conflicting rules.
            SpaceError: a fixed parameter does not exist, or its value is outside its domain.
            MipcashError: the optimizer cannot search with fixed values.
            IllegalProposalError: the optimizer proposed an illegal configuration (a bug; nothing is recorded).
            ValueError: n is below 1, the distance negative, or ``seconds`` not above 0.
        """
        limit = positive("seconds", seconds)
        if not (fixed is None or isinstance(fixed, Mapping)):
            raise TypeError(f"fixed= takes a dict of parameters and values, got {shown(fixed)}")
        if n is None:
            return self._ask(None, limit, fixed)
        if not (isinstance(n, Integral) and isinstance(distance, Integral)) or n < 1 or distance < 0:
            raise ValueError(
                f"ask(n, distance) needs whole numbers, n >= 1 and distance >= 0, got {shown(n)} and {shown(distance)}"
            )
        batch: list[Trial] = []
        for _ in range(n):
            try:
                batch.append(self._ask(MinimumDistance(tuple(t.config for t in batch), distance), limit, fixed))
            except BaseException as error:
                if isinstance(error, SpaceExhaustedError) and batch and distance <= 1:
                    break
                for trial in batch:  # they stay pending in the journal and are handed out again
                    with suppress(TellError, StorageError):
                        self.give_back(trial)
                raise
        return batch

    def _ask(
        self, min_distance: MinimumDistance | None, seconds: float | None, fixed: Mapping[str, Value] | None
    ) -> Trial:
        trial = self.queue.next(min_distance, seconds, fixed=fixed)
        assert trial is not None
        judge = None if self.pruning is None else judge_for(self.pruning, trial, self.trials, self.limits)
        return replace(trial, reports=Reports(judge))

    def tell(
        self,
        trial: Trial,
        outcome: Any,
        seconds: float | None = None,
        *,
        partial: bool | None = None,
        cost: float | Mapping[str, float] | None = None,
        worker: str = "",
    ) -> Trial:
        """Record the outcome of a trial, or a part of it, and return the trial with all that is known of it.

        Args:
            trial: a trial that ``ask`` returned and that has no outcome yet.
            outcome: a finite number; a dict with ``"loss"`` and further named numbers; or
                [`Failed`][mipcash.study.trial.Failed], which may also stand for a single output in the dict; nan and inf are
                failures. Reports of the trial are stored with it. If its evaluation ended because of ``trial.should_stop()``,
                None is allowed, and an estimate for the complete evaluation is recorded.
            seconds: duration of the evaluation; None: the time since ``ask``.
            partial: True if more outputs will follow; the trial is pending until then. None: if the trial names its outputs
                (``trial.evaluate``), it stays pending after a dict until all of them are known; otherwise the outcome is complete.
                An output that is recorded again replaces the earlier one.
            cost: cost of the evaluation, or of each output, by name; None: its seconds.
            worker: name of the worker that evaluated it; empty: this process.

        Returns:
            The updated trial.

        Raises:
            TellError: the trial belongs to another study, or already has an outcome; or None, a text or a dict without a known
                name is given, in which case the trial stays pending. ``LateError``: another worker sharing the storage took this
                worker for dead and recorded the outcome.
            ValueError: ``seconds`` or ``cost`` is no finite number; nothing is recorded, and ``tell`` can be called again.
        """
        return record_returned(self, trial, outcome, seconds, partial, cost, worker, refuse=True)

    def lose(self, trial: Trial, cause: str) -> Trial:
        """Record that the worker of a trial died, and return the updated trial.

        A later ``ask`` hands it out again. After more than ``retries`` lost attempts it has failed, with the cause as message.

        Args:
            trial: a trial that ``ask`` returned and that has no outcome yet.
            cause: the evidence that the worker died.

        Returns:
            The updated trial.

        Raises:
            TellError: as for [`tell`][mipcash.study.study.Study.tell].
        """
        wording = storable(cause, MESSAGE_LIMIT)
        return self.table.agreed(lambda: self.table.lose(self.table.mine(trial).number, wording)).copy()

    def give_back(self, trial: Trial) -> None:
        """Return a trial to the study without an outcome; a later ``ask`` hands it out again.

        Args:
            trial: a trial that ``ask`` returned and that has no outcome yet.

        Raises:
            TellError: as for [`tell`][mipcash.study.study.Study.tell].
        """
        self.table.agreed(lambda: self.table.give_back(self.table.mine(trial).number))

    def reopen(self, trial: Trial) -> Trial:
        """Discard the outcome of a trial, for instance after a defect; a later ``ask`` hands the trial out again.

        Args:
            trial: a trial with an outcome.

        Returns:
            The pending trial.

        Raises:
            TellError: the trial belongs to another study, has no outcome, or was evaluated outside the study.
        """
        return self.table.agreed(lambda: self.table.reopen(self.table.mine(trial, discarded=True).number)).copy()

    # -- known evaluations, enqueued configurations, repeats ----------------------------------------------------

    @overload
    def add(self, config: Mapping[str, Value], outcome: Any, *, illegal: str = REFUSE) -> Trial: ...

    @overload
    def add(self, config: TableGiven) -> list[Trial]: ...

    def add(
        self, config: Mapping[str, Value] | TableGiven, outcome: Any = None, *, illegal: str = REFUSE
    ) -> Trial | list[Trial]:
        """Add an evaluation made outside the study, as a new trial of origin ``known``. It does not count in any budget.

        Args:
            config: the evaluated configuration. If it is in the study already, the outcome counts as another measurement of it.
                Or a table without ``outcome``, of which each row is added, see [`mipcash.read_trials`][mipcash.read_trials].
            outcome: a number, a dict with ``"loss"`` or [`Failed`][mipcash.study.trial.Failed], as for
                [`tell`][mipcash.study.study.Study.tell].
            illegal: ``refuse`` a configuration that violates rules, or ``learn`` from it: the model uses it, and it is never
                recommended.

        Returns:
            The new trial; of a table, the list of them.

        Raises:
            ConfigurationError: unknown, missing or inactive parameters, values outside their domains, or violated rules.
            ValueError: the outcome is invalid (None, a text, a dict without the loss ...), or ``illegal`` has another value.
            SpaceError: the space was changed after the study was made.
        """
        if outcome is None and is_table(config):
            if illegal != REFUSE:
                raise ValueError(
                    "illegal= is for one configuration; read the table by mipcash.read_trials, and add its pairs"
                )
            known = self._known(config)
        else:
            self.proposer.check_space()
            known = [Known.of(self.proposer, config, outcome, illegal)]
        added = [trial.copy() for trial in self.table.agreed(lambda: self.table.know(self.table.written(known)))]
        return added[0] if isinstance(config, Mapping) else added

    def add_missing(self, known: KnownGiven) -> None:
        """Add those pairs of a configuration and its outcome that are missing in the study.

        Each pair is added as [`add`][mipcash.study.study.Study.add] does. A pair that is given twice is added twice. All
        pairs are checked before the first is added.

        Args:
            known: pairs of a configuration and its outcome, or a table, see [`mipcash.read_trials`][mipcash.read_trials].

        Raises:
            ConfigurationError, ValueError: as for [`add`][mipcash.study.study.Study.add], with the pair's index.
            SpaceError: the space was changed after the study was made.
            TypeError: the argument is no list of pairs, and no table.
        """
        if listed := self._known(known):
            self.table.agreed(lambda: self.table.know(self.table.unknown(listed)))

    def _known(self, given: KnownGiven) -> list[Known]:
        self.proposer.check_space()
        others = (*(limit.output for limit in self.limits), *self.costs)
        pairs = pairs_of(given, self.space, self.objectives, others)
        return Known.listed(self.proposer, pairs)

    def enqueue(self, config: Mapping[str, Value]) -> Trial:
        """Enqueue a configuration: ``ask`` hands out enqueued ones, in order, before it calls the optimizer.

        Args:
            config: a legal configuration.

        Returns:
            The pending trial. If the configuration was proposed before or is known, its existing trial; nothing is evaluated twice.

        Raises:
            ConfigurationError: the configuration is illegal; the message has the violated rules and the nearest legal
                configuration.
        """
        self.proposer.check_space()
        plain = wanted(self.space, config)
        return self.table.agreed(lambda: self.table.enqueue(plain, tuple(self.costs))).copy()

    def repeat(self, trial: Trial, number: int = 1) -> Trial:
        """Enqueue another evaluation of a trial's configuration; ``ask`` hands it out before it calls the optimizer.

        Args:
            trial: a trial of this study.
            number: of the repeat, from 1. It becomes ``trial.repeat``, from which an objective derives other folds or seeds.

        Returns:
            The pending trial; if this repeat of the configuration exists, that trial.

        Raises:
            TellError: the trial belongs to another study, or violates rules.
            ValueError: ``number`` is no integer of at least 1.
        """
        number = whole_number("the number of a repeat", number, 1)
        return self.table.agreed(lambda: self.table.repeat(trial, number, tuple(self.costs))).copy()

    # -- trials and results -------------------------------------------------------------------------------------

    @property
    def trials(self) -> tuple[Trial, ...]:
        """All trials by number, pending ones included."""
        with self.table.lock:
            return tuple(t.copy() for t in self.table.trials)

    @property
    def result(self) -> Result:
        """Result of the study so far."""
        with self.proposer.lock, self.table.lock:
            found = self.proposer.recommended(self.table.history)
            best = NOTHING if found is None else found
            objectives = self.record.objectives
            return Result(
                self.trials, self.space.name, self.record.stopped, best, self.limits, self.space, directions=objectives
            )

    @property
    def n_evaluated(self) -> int:
        """Number of evaluated trials, including those of other workers on the same storage, but not ``known`` ones."""
        with self.table.lock:
            return self.table.n_evaluated

    def plan(self, budget: int | None, timeout: float | None, objective: Any = None) -> None:
        """Note the settings of a run in the journal, so that ``mipcash resume`` can continue it.

        Args:
            budget: number of evaluations; None: the budget is in steps or costs.
            timeout: seconds after which no evaluation starts; None: no limit.
            objective: objective of the run. A warning is issued if the finished trials were evaluated by another one.
        """
        timeout = None if timeout is None else float(timeout)
        now = None if objective is None or isinstance(self._storage, MemoryStorage) else identity_of(objective)
        if now is not None:
            self.table.look()  # another worker may have noted its objective since
        with self.table.lock:
            then = self.record.objective
            if then is not None and now is not None and self.table.n_evaluated:
                warn_of_another(self.table.title, then, now)
            noted = then if now is None else now
            self.table.note(budget=budget, timeout=timeout, stopped="", recommended=None, objective=noted)

    def stop(self, reason: str) -> None:
        """Note in the journal why a run ended; it becomes ``result.stopped``.

        Args:
            reason: the text.
        """
        with self.proposer.lock, self.table.lock:
            found = self.proposer.recommended(self.table.history)
            self.table.note(stopped=storable(reason), recommended=NOTHING if found is None else found)

    def finalists(self, count: int) -> list[Trial]:
        """Return the best trials of the search according to the optimizer, best first, each of a different configuration.

        Args:
            count: largest number of trials.

        Returns:
            The trials.

        Raises:
            MipcashError: there are several objectives.
        """
        if self.objectives.several:
            raise MipcashError("finalists are the best by one loss; with several objectives take result.front")
        with self.proposer.lock, self.table.lock:
            numbers = self.proposer.finalists(self.table.history, whole_number("count", count, 1))
            return [self.table.trials[k].copy() for k in numbers]

    # -- the journal --------------------------------------------------------------------------------------------

    @property
    def storage(self) -> Path | None:
        """File of the journal; None in memory, and in a database that is no file."""
        return self._storage.path

    @property
    def record(self) -> StudyRecord:
        """Row of this study in the storage."""
        return self._storage.record

    def close(self) -> None:
        """Close the journal. Trials without an outcome stay in it and are handed out again when it is resumed."""
        with self.proposer.lock, self.table.lock:
            self._storage.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError(
            "a study holds its journal and cannot be copied or pickled; take study.result or study.trials, or let another "
            "process resume the journal's file (storage=)"
        )

    if not TYPE_CHECKING:  # type checkers report unknown attributes themselves

        def __getattr__(self, name: str) -> Any:
            raise no_attribute(self, name)

    def __repr__(self) -> str:
        return f"<{self._summary()}>"

    def _summary(self) -> str:
        held = counted(len(self.table.trials), "trial")
        best = Feasibility.of(self.table.trials, self.limits).best
        found = "" if best is None else f", best {best.loss:.6g}"
        return f"study of {self.space.name!r}: {self.optimizer.name}, seed {self.seed}, {held} in {self.table.title}{found}"

    def _repr_html_(self) -> str:
        rows = [(str(t.number), t._status_text(), config_text(t.config)) for t in reversed(self.trials)]
        return table(self._summary(), ("trial", "outcome", "configuration") if rows else (), rows)


def record_returned(
    study: Study,
    trial: Trial,
    returned: Any,
    seconds: float | None,
    partial: bool | None,
    cost: float | Mapping[str, float] | None,
    worker: str,
    refuse: bool = False,
) -> Trial:
    """Record whatever an objective returned, as ``Study.tell`` does.

    Args:
        trial, seconds, partial, cost, worker: as for ``Study.tell``.
        returned: any object.
        refuse: whether what is no outcome is refused; otherwise it is recorded as failed.

    Returns:
        The updated trial.

    Raises:
        TellError: as for ``Study.tell``.
    """
    worker = storable(worker) if worker else ""
    wording = "seconds must be a finite number of at least 0, how long the evaluation took"
    taken = None if seconds is None else finite(seconds, wording, low=0.0)

    def reported() -> Trial:
        mine = study.table.mine(trial)
        duration = study.table.seconds(mine.number) if taken is None else taken
        whole = _with_reports(trial, mine, returned)
        if refuse:
            _check_outcome(study, trial, mine, returned, whole, partial)
        given = duration if cost is None else reported_costs(cost)
        return study.table.tell(mine.number, *told(mine, whole, partial, given, study.limits), worker, duration)

    after = study.table.agreed(reported).copy()
    if trial.reports is not None:
        trial.reports.ended = not after.pending
    return after


def _check_outcome(study: Study, trial: Trial, mine: Trial, given: Any, whole: Any, partial: bool | None) -> None:
    """Refuse what is no outcome.

    Args:
        trial: the trial with its reports.
        mine: the trial with its earlier outcome; a dict may complete it by any output.
        whole: what was given, combined with the reports of the trial.
        partial: as for ``Study.tell``; a dict may have any output if it is not None.

    Raises:
        TellError: it is none.
    """
    objectives, names = study.objectives, (LOSS, *(limit.output for limit in study.limits), *mine.evaluate)
    of_parts = isinstance(given, Mapping) and (partial is not None or bool(mine.evaluate and mine.outcome.outputs))
    unfinished = trial.reports is not None and trial.reports.missing_return(given)
    wanted = [mine.evaluate or (name,) for name in objectives.names] if objectives.several else [names]
    if isinstance(whole, Mapping) and not mine.evaluate:  # earlier parts count
        whole = {**{n: o.value for n, o in mine.outcome.outputs.items()}, **whole}
    if not of_parts and (unfinished or not all(statement(whole, each, objectives.several) for each in wanted)):
        named = " and ".join(map(repr, objectives.names)) if objectives.several else f"{LOSS!r}"
        number = "" if objectives.several else "a finite number, "
        raise TellError(
            f"tell() got {shown(given)}, which is no outcome; give {number}a dict with {named}, or "
            f"mc.Failed('why'). Trial {mine.number} is still pending"
        )


def _with_reports(trial: Trial, known: Trial, outcome: Any) -> Any:
    """Return an outcome combined with the reports of its trial. Reports give the loss, so they are left out if it is known.

    Args:
        known: the trial with its earlier outcome.
    """
    if trial.reports is None or known.outcome.missing((LOSS,)) == ():
        return outcome
    return trial.reports.outcome(outcome)
