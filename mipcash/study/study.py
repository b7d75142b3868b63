"""The loop by hand: ``ask`` for a trial, evaluate it, ``tell`` its outcome.

Trial k is proposed with a generator derived from (seed, k), from the history and from the state that the optimizer
left with the latest trial. All three are in the journal, so a resumed study goes on as if it had never stopped.

The row of a study that is opened: what its proposals depend on.
"""

from __future__ import annotations

import threading
import uuid
import weakref
from collections.abc import Mapping, Sequence
from numbers import Integral
from typing import TYPE_CHECKING, Any, TypeVar, overload

from mipcash.errors import SpaceExhaustedError
from mipcash.modelling.domains import Value
from mipcash.optimizers.goals import MINIMISED, Goals
from mipcash.optimizers.optimizer import Limit, Optimizer
from mipcash.space.direction import MINIMIZE
from mipcash.space.exclusion import Apart
from mipcash.space.space import Space
from mipcash.study.arguments import check_goals, costs_of, retries_of, seed_of
from mipcash.study.asking import Asking
from mipcash.study.calls import explained
from mipcash.study.method import Method, OptimizerGiven
from mipcash.study.proposing import Proposing
from mipcash.study.pruning import PruningGiven, pruning_of
from mipcash.study.records.encoding import plain
from mipcash.study.records.fingerprint import fingerprint, listing
from mipcash.study.records.given import REFUSE, Known, KnownGiven, wanted
from mipcash.study.records.goals import DirectionGiven, goals_of
from mipcash.study.records.ledger import Ledger
from mipcash.study.records.limits import LimitsGiven, limits_of, stored_limits
from mipcash.study.records.objective import identity_of, warn_of_another
from mipcash.study.records.telling import Telling, finite, told_costs
from mipcash.study.repeating import copy_of
from mipcash.study.reporting import outcome_of
from mipcash.study.result import Result
from mipcash.study.storage.memory import MemoryStorage
from mipcash.study.storage.protocol import GOALS, NOTHING, StudyRecord, title_of
from mipcash.study.storage.registry import Journal, StorageGiven, make_storage, move_aside
from mipcash.study.text import MESSAGE_LIMIT, shown, storable
from mipcash.study.trial import Trial

if TYPE_CHECKING:
    from mipcash.space.space import Space


def record_of(
    space: Space,
    optimizer: Optimizer,
    method: Method,
    seed: int,
    limits: Sequence[Limit],
    model: str | None,
    options: Mapping[str, str] | None,
    goals: Goals = MINIMISED,
) -> StudyRecord:
    """Arguments as of :class:`mipcash.Study`, with the optimizer that its method made."""
    entries = listing(space)
    # The effective settings, not those given: a default that changes between versions changes the proposals.
    effective = plain(getattr(optimizer, "settings", method.settings))
    stored = effective if effective is None or isinstance(effective, dict) else {"settings": effective}
    if goals != MINIMISED:
        stored = {**(stored or {}), GOALS: [[goal.output, goal.direction] for goal in goals.goals]}
    return StudyRecord(
        id=uuid.uuid4().hex,
        space=space.name,
        fingerprint=fingerprint(entries),
        listing=entries,
        seed=seed,
        optimizer=method.name,
        solver=method.solver if isinstance(method.solver, str) else method.solver.name,
        settings=stored,
        limits=stored_limits(limits),
        model=model,
        options=dict(options or {}),
    )


T = TypeVar("T")


class Study(Proposing):
    """Proposes configurations and records their outcomes.

    Args:
        space: the space to search.
        optimizer: a name of ``mipcash.optimizers.registry``, a :class:`mipcash.Method` with its settings and solver, or an
            :class:`~mipcash.optimizers.optimizer.Optimizer`.
        direction: ``minimize`` the loss or ``maximize`` it. Trials, results, limits and the journal have it as it is told. Several
            objectives: their names, or directions by name, ``{"accuracy": "maximize", "latency_ms": "minimize"}``: proposals
            minimise random weightings of them, and ``result.front`` is the Pareto front.
        limits: outcome constraints, by output: an upper limit, or (low, high) with None for no limit.
            An optimizer that does not learn from them refuses them.
        seed: a whole number >= 0; the same seed gives the same proposals for the same outcomes.
        storage: file of the journal, for its owner alone (0600); one that exists is resumed. An address,
            ``postgresql://user@host/database`` or ``sqlite:///run.db``: several processes may hold the study at a time, see
            :mod:`mipcash.study.storage.address`. None keeps it in memory; a :class:`~mipcash.study.storage.protocol.Storage` is
            used as it is. With ``mc.Journal(path, fresh=True)`` a journal that exists is renamed beside itself, and
            ``study.renamed`` is its path.
        pruning: when ``should_stop()`` of a trial that reports is True, as of :func:`mipcash.minimize`: ``"halving"``, for epochs;
            True, for folds. It may be another when a journal is resumed.
        costs: what one evaluation of each output costs, by name, in any one unit, where outputs may be evaluated apart; the loss
            and all limited outputs are among them. The optimizer may then want some of them only (``trial.evaluate``), and
            propose a configuration again for the others. None: an evaluation gives all. May be another when a journal is resumed.
        retries: further attempts at a trial whose worker died while the run went on, after which it has failed. With 0, what ran
            beside the one that killed a pool has failed with it. An attempt that ended because the whole run was killed costs
            no retry.
        model, options: what ``mipcash resume`` needs to load the space and the objective again.

    Methods may be called from several threads; while one asks, others may tell. A study holds its journal until ``close()`` or
    the end of its ``with`` block.

    Raises:
        StorageError: the journal is in use, damaged, or belongs to another space, seed, optimizer, solver, settings or
            limits.
        MipcashError: limits that the optimizer would ignore.
        TypeError: ``space`` is no :class:`mipcash.Space`.
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
        pruning: PruningGiven = False,
        costs: Mapping[str, float] | None = None,
        retries: int = 2,
        model: str | None = None,
        options: Mapping[str, str] | None = None,
    ) -> None:
        if not isinstance(space, Space):
            raise TypeError(f"space must be a mipcash.Space, got {shown(space)}")
        self.space = space
        self.seed = seed_of(seed)
        method, place = Method.of(optimizer), Journal.of(storage)
        self.optimizer = method.made(space)
        # Around what is known; held for moments. Around calls of the optimizer, which keeps one thread busy for seconds and
        # need not bear two; whoever takes both takes this one first.
        self._lock, self._asking = threading.RLock(), threading.RLock()
        self.limits, self.goals = limits_of(limits), goals_of(direction)
        self.optimizer.check_limits(self.limits)
        self.costs = costs_of(costs, self.limits)
        self.pruning = pruning_of(pruning)
        check_goals(self.goals, self.costs, self.pruning)
        seen = self.goals.turned(self.limits)
        self._questions = Asking(space, self.optimizer, self.seed, seen, self.costs, self.goals)
        record = record_of(space, self.optimizer, method, self.seed, self.limits, model, options, self.goals)
        retries = retries_of(retries)
        self._seconds = method.seconds
        self.renamed = move_aside(place.storage) if place.fresh else None
        self._storage = make_storage(place.storage)
        # At the end of the process too, so that what was not told counts as given back and not as killed.
        weakref.finalize(self, self._storage.close)
        try:
            self._ledger = Ledger(space, self._storage, record, retries)
        except BaseException:
            self.close()
            raise

    # -- the loop -----------------------------------------------------------------------------------------------

    @overload
    def ask(self, *, seconds: float | None = None) -> Trial: ...

    @overload
    def ask(self, n: int, *, distance: int = 0, seconds: float | None = None) -> list[Trial]: ...

    def ask(self, n: int | None = None, *, distance: int = 0, seconds: float | None = None) -> Trial | list[Trial]:
        """The next trial, or a list of n distinct ones to be evaluated together; journaled before they are returned.

        Trials that a killed run left without an outcome come first, with the number and configuration they had. Trials
        of this study that are not told yet are pending: the optimizer knows of them.

        Args:
            n: None: one trial. A number: a list of that many; fewer only where the space is exhausted.
            distance: least Hamming distance between the new trials of a batch: the number of one-hot groups (discrete
                parameters; each module of an ordering counts, and so does being inactive) in which any two differ. 0: none
                beyond being new; what the optimizer expects of those pending keeps a batch apart.
            seconds: what each proposal may take at most, where that is less than ``seconds_per_proposal``.

        Raises:
            SpaceExhaustedError: every legal configuration has been proposed, or none is far enough from the batch.
            IllegalProposalError: the optimizer proposed an illegal configuration (a bug; nothing is recorded).
            ValueError: n below 1, a negative distance, or seconds that are not above 0.
        """
        limit = self._limit(seconds)
        if n is None:
            return self._ask(None, limit)
        if not (isinstance(n, Integral) and isinstance(distance, Integral)) or n < 1 or distance < 0:
            raise ValueError(
                f"ask(n, distance) needs whole numbers, n >= 1 and distance >= 0, got {shown(n)} and {shown(distance)}"
            )
        batch: list[Trial] = []
        for _ in range(n):
            try:
                batch.append(self._ask(Apart(tuple(t.config for t in batch), distance), limit))
            except SpaceExhaustedError:
                if not batch or distance > 1:
                    # what was asked for stays in the journal as pending; it is handed out again
                    for trial in batch:
                        self.give_back(trial)
                    raise
                break
        return batch

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
        """Record the outcome of a trial, or a part of it, and return the trial with what is known of it.

        Args:
            trial: one that ``ask`` returned and that has not been told.
            outcome: a finite number; a dict with ``"loss"`` and further named numbers; or :class:`Failed`, which may also
                stand for a single output in the dict. Anything else (nan, inf, None, a string ...) is recorded as failed,
                with a message that says so. What the trial reported is kept beside it; where its evaluation ended because
                ``trial.should_stop()`` said so, None will do, and what counts is an estimate of the whole.
            seconds: how long the evaluation took, where the caller knows better than the time since ``ask``.
            partial: whether more outputs will be told, until when the trial is pending. None: where the trial names the
                outputs to evaluate (``trial.evaluate``), as long as one of them is missing after a dict; else the outcome is
                told at once. An output that is told again replaces what was told before.
            cost: what the evaluation cost, or what each output cost, by name; None: its seconds.
            worker: who evaluated it; empty: this process.

        Raises:
            TellError: the trial belongs to another study, or its outcome is known already; :class:`LateError`: others who share
                the storage took this worker for gone, and told it.
            ValueError: seconds or cost is no finite number; nothing is recorded, tell again.
        """
        said = "seconds must be a finite number, how long the evaluation took"
        taken = None if seconds is None else finite(seconds, said)

        def told() -> Trial:
            mine = self._ledger.mine(trial)
            duration = self._ledger.seconds(mine.number) if taken is None else taken
            whole = outcome_of(trial, mine, outcome)
            telling = Telling.of(mine, whole, partial, duration if cost is None else told_costs(cost), self.limits)
            return self._ledger.tell(mine.number, telling, worker, duration)

        return copy_of(self._agreed(told))

    def lose(self, trial: Trial, cause: str) -> Trial:
        """Record that the worker that evaluated a trial died, and return the trial with what became of it.

        It is handed out again by a later ``ask``; after more than ``retries`` lost attempts it has failed, with the cause.

        Args:
            cause: how it is known.

        Raises:
            TellError: as for :meth:`tell`.
        """
        said = storable(cause, MESSAGE_LIMIT)
        return copy_of(self._agreed(lambda: self._ledger.lose(self._ledger.mine(trial).number, said)))

    def give_back(self, trial: Trial) -> None:
        """Leave a trial for later: it stays without an outcome, and a later ``ask`` hands it out again.

        Raises:
            TellError: as for :meth:`tell`.
        """
        self._agreed(lambda: self._ledger.give_back(self._ledger.mine(trial).number))

    def reopen(self, trial: Trial) -> Trial:
        """Take the outcome of a trial back: it says nothing of its configuration, which a later ``ask`` hands out again.

        Raises:
            TellError: the trial belongs to another study, has no outcome, or was evaluated elsewhere.
        """
        return copy_of(self._agreed(lambda: self._ledger.reopen(self._ledger.mine(trial, told=True).number)))

    # -- what a user brings -------------------------------------------------------------------------------------

    def add(self, config: Mapping[str, Value], outcome: Any, *, illegal: str = REFUSE) -> Trial:
        """Learn from an evaluation that was made elsewhere: a trial of its own, of origin ``known``, which counts for no budget.

        Args:
            config: its configuration. One that is there already is another measurement of it.
            outcome: a number, a dict with ``"loss"`` or :class:`Failed`, as for :meth:`tell`.
            illegal: ``refuse`` a configuration that breaks rules, or ``learn`` from it: the model knows it, and it is never the
                answer.

        Raises:
            ConfigurationError: unknown, missing or inactive parameters, values outside their domains; or broken rules.
            ValueError: no outcome (None, a text, a dict without the loss ...), or another word for ``illegal``.
        """
        known = Known.of(
            self.space, config, outcome, illegal, apart=tuple(self.costs), limits=self.limits, goals=self.goals
        )
        return copy_of(self._agreed(lambda: self._ledger.know([known])[0]))

    def add_missing(self, known: KnownGiven) -> None:
        """:meth:`add` those of several pairs of a configuration and its outcome that are not there yet.

        A pair that is given twice is there twice. All are checked before the first is added.

        Raises:
            ConfigurationError, ValueError: as for :meth:`add`, with the pair's index.
            TypeError: no pairs.
        """
        listed = Known.listed(self.space, known, tuple(self.costs), self.limits, self.goals)
        self._agreed(lambda: self._ledger.know(self._ledger.unknown(listed)))

    def enqueue(self, config: Mapping[str, Value]) -> Trial:
        """Propose a configuration next: ``ask`` hands it out before it asks the optimizer; several in the order they came.

        Returns:
            The trial, pending. Nothing is evaluated twice: of a configuration that was proposed or is known, the trial that
            there is.

        Raises:
            ConfigurationError: it is illegal; the message has the broken rules and the nearest legal configuration.
        """
        plain = wanted(self.space, config)
        return copy_of(self._agreed(lambda: self._ledger.enqueue(plain, tuple(self.costs))))

    # -- what is known ------------------------------------------------------------------------------------------

    @property
    def trials(self) -> tuple[Trial, ...]:
        """All trials by number, pending ones included."""
        with self._lock:
            return tuple(copy_of(t) for t in self._ledger.trials)

    @property
    def result(self) -> Result:
        """What has been found so far."""
        with self._asking, self._lock:
            found = self._recommended()
            return Result(self.trials, self.space.name, self.record.stopped, found, self.limits, self.space)

    @property
    def n_told(self) -> int:
        """How many trials were evaluated, here or by others who share the storage; what is known from elsewhere does not count."""
        with self._lock:
            return self._ledger.n_told

    @property
    def wish(self) -> str:
        """Why the optimizer wishes no further proposal; empty while it does not, or while a trial is left to evaluate."""
        with self._lock:
            return self._ledger.trials[-1].stop if self._ledger.trials and not self._ledger.waiting else ""

    @property
    def suspects(self) -> bool:
        """Whether a trial waits that lost a worker, and that is best evaluated alone."""
        with self._lock:
            return self._ledger.suspects

    def plan(self, budget: int | None, timeout: float | None, objective: Any = None) -> None:
        """Note in the journal what a run intends, so that ``mipcash resume`` can go on with it.

        Args:
            objective: what the run evaluates; it is warned of where the finished trials are of another one.
        """
        timeout = None if timeout is None else float(timeout)
        now = None if objective is None or isinstance(self._storage, MemoryStorage) else identity_of(objective)
        if now is not None:
            self.look()  # another worker may have noted its objective since
        with self._lock:
            then = self.record.objective
            if then is not None and now is not None and self._ledger.n_told:
                warn_of_another(title_of(self._storage), then, now)
            noted = then if now is None else now
            self._ledger.note(budget=budget, timeout=timeout, stopped="", recommended=None, objective=noted)

    def stop(self, reason: str) -> None:
        """Note in the journal why a run ended; it becomes ``result.stopped``."""
        with self._asking, self._lock:
            found = self._recommended()
            self._ledger.note(stopped=storable(reason), recommended=NOTHING if found is None else found)
