"""toulbar2 through pytoulbar2: the program as a cost function network (``mipcash.backends.toulbar2.cost_network``).

Notation
    q(v)     the objective;  Q(X) = sum_i F_i(X_i) + sum_ij F_ij(X_i, X_j) in integers, the rounding of ``scale * q``.
    error    sum over the functions of their largest rounding error, so that |q - Q / scale| <= error everywhere

The value of an answer is q at its point, in floating point; its bound is toulbar2's bound on Q / scale less ``error``.

toulbar2 ends when SIGVTALRM comes, for which it sets up a handler. Its own timer counts whole seconds of processor time, and
``setitimer`` counts processor time, too; on a busy machine that may be any number of seconds. On Linux a POSIX timer sends the
signal by the monotonic clock (timer_create(2)); other systems use processor time.
"""

from __future__ import annotations

import ctypes
import math
import signal
import sys
import threading
import time
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any

import numpy as np
from scipy import sparse

from mipcash.backends.certificate import certified
from mipcash.backends.profiles import OptionValue, option_value
from mipcash.backends.task import (
    FEASIBLE,
    INFEASIBLE,
    OPTIMAL,
    UNKNOWN,
    Answer,
    Cut,
    SolverSettings,
    Task,
    relative_gap,
)
from mipcash.backends.toulbar2.consistency import Consistent, Functions, extended, made_consistent
from mipcash.backends.toulbar2.cost_network import CostNetwork, make_cost_network, with_cuts
from mipcash.errors import SolverError
from mipcash.program.forms import Booleans, Vector
from mipcash.program.recent import Recent

# pytoulbar2 carries no types
tb2: Any = import_module("pytoulbar2.pytb2")

NO_LIMIT = 2**62
KEPT_NETWORKS = 16
COST_RANGE = 2.0**40
"""Range of the integer costs: 40 bits leave room for sums in toulbar2's 59, and round at 1e-12 of the range."""
COARSE_RANGE = 2.0**20
"""Range of the costs for a gap of ``COARSE_GAP`` or more. Beside linear rows, toulbar2's propagation may move costs between
functions by a few units at a time, and take a million times longer at a range a million times larger."""
COARSE_GAP = 1e-2
_PROCESS = threading.Lock()
"""toulbar2 has one set of options and one timer per process."""
LONGEST = 1e9
"""Seconds of an alarm without a limit."""
LONGER = 3600
"""Seconds by which toulbar2's own timer is later than the alarm that ends the search."""


@dataclass(frozen=True)
class _Costs:
    """The objective in integers over the remaining states (see the module's notation)."""

    scale: float
    constant: float
    error: float
    unary: dict[int, Vector]
    pairs: dict[tuple[int, int], Vector]


@dataclass(frozen=True)
class _Search:
    """Result of a search: states (None without a solution), its bound on Q, and whether a limit stopped it."""

    states: list[int] | None
    bound: float
    limited: bool


_Grown = tuple[list[Hashable], CostNetwork, Consistent | None]
"""Keys of cuts, the network with them, and its consistent form."""


class _Made:
    """The network of a program without cuts, and its network with the cuts of the last task; the next task usually adds one."""

    def __init__(self, task: Task, wanted: set[int]) -> None:
        self.program = task.program  # kept beside its id, so that the id cannot be taken over by another object
        network = make_cost_network(task.program, task.fixed, wanted)
        self._without: _Grown = ([], network, made_consistent(network))
        self._last = self._without

    def grown(self, cuts: Sequence[Cut]) -> tuple[CostNetwork, Consistent | None]:
        """Return the network with cuts, and its consistent form."""
        keys: list[Hashable] = [(c.columns.tobytes(), np.asarray(c.values).tobytes(), c.low, c.high) for c in cuts]
        known, smaller, consistent = self._last
        if keys[: len(known)] != known:
            known, smaller, consistent = self._without
        network = with_cuts(smaller, self.program, cuts[len(known) :])
        if network is not smaller and consistent is not None:
            consistent = extended(smaller, consistent, network)
        self._last = keys, network, consistent
        return network, consistent


class Toulbar2Backend:
    """Solves tasks with toulbar2; keeps the networks of recent programs, builds a solver for each task.

    The time limit counts seconds of wall-clock time (on systems other than Linux, processor time during the search). Threads and
    gap are not used: the search is sequential and ends with the optimum.

    Args:
        options: toulbar2's own options by the names of its Python interface (``vac``, ``hbfs``, ``elimDegree`` ...).

    Raises:
        SolverError: an option that toulbar2 does not have.
    """

    name = "toulbar2"

    def __init__(self, options: Mapping[str, str] | None = None) -> None:
        self._given: dict[str, OptionValue] = {key: option_value(text) for key, text in (options or {}).items()}
        for key in self._given:
            if not hasattr(tb2.option, key):
                raise SolverError(
                    f"toulbar2 has no option {key!r}; its Python interface lists them in pytoulbar2.pytb2.option"
                )
        self._networks: Recent[_Made] = Recent(KEPT_NETWORKS)

    def solve(self, task: Task, settings: SolverSettings) -> Answer:
        """See ``mipcash.backends.task.Backend.solve``.

        Raises:
            SolverError: a column that is continuous and not fixed, or has too many values.
        """
        return certified(task, settings, self._unchecked, self.name)

    def _unchecked(self, task: Task, settings: SolverSettings) -> Answer:
        began = time.perf_counter()
        network, consistent = self._network(task)
        if consistent is None:
            return Answer(INFEASIBLE, None, math.nan, math.inf, time.perf_counter() - began, self.name)
        costs = _costs(
            consistent, _functions(network, task), COARSE_RANGE if settings.gap >= COARSE_GAP else COST_RANGE
        )
        start = _start(network, consistent, task, costs)
        with _PROCESS:
            found = self._search(consistent, costs, settings, start, began)
            if found.states is None and not found.limited and start is not None:
                # the start was not legal, so its cost was not a valid upper bound
                found = self._search(consistent, costs, settings, None, began)
        return _answer(found, network, task, costs, settings, time.perf_counter() - began)

    def _network(self, task: Task) -> tuple[CostNetwork, Consistent | None]:
        """Return the task's network and its consistent form."""
        form = task.form
        wanted = {int(c) for cut in task.cuts for c in cut.columns} | set(np.flatnonzero(form.linear).tolist())
        wanted |= set(form.rows.tolist()) | set(form.cols.tolist())
        wanted = {c for c in wanted if c >= task.program.n_z}
        key = (id(task.program), tuple(sorted(task.fixed.items())), frozenset(wanted))
        return self._networks.get(key, lambda: _Made(task, wanted)).grown(task.cuts)

    def _search(
        self,
        consistent: Consistent,
        costs: _Costs,
        settings: SolverSettings,
        start: tuple[float, list[int]] | None,
        began: float,
    ) -> _Search:
        """Search until ``settings.time_limit`` seconds after ``began``, a time before the network was built."""
        settled = [int(left[0]) for left in consistent.states]
        if not consistent.live:
            return _Search(settled, 0.0, False)
        solver = self._solver(settings)
        problem = solver.wcsp
        try:
            _post(problem, consistent, costs)
            if start is not None:
                # solutions are strictly below the upper bound; the start itself must remain a solution
                problem.updateDUb(start[0] + 1.0)
                for k, state in enumerate(start[1]):
                    if state >= 0:
                        problem.setBestValue(k, state)
            problem.sortConstraints()
            left = settings.time_limit - (time.perf_counter() - began)
            if left <= 0.0:
                return _Search(None, -math.inf, True)
            # toulbar2's timer counts whole seconds of processor time, and sets up the handler of the signal that ends a search
            solver.timer(math.ceil(min(left, LONGEST)) + LONGER)
            with alarm(left):
                solver.solve()
        except tb2.Contradiction:
            problem.whenContradiction()
            return _Search(None, math.inf, False)
        except tb2.SolverOut:
            tb2.option.limited = True
        finally:
            solver.timerStop()
        limited = bool(tb2.option.limited)
        # a search that ran to its end does not always raise its global bound to the optimum it has proven
        bound = float(solver.getDDualBound() if limited else problem.getDPrimalBound())
        if not len(solver.solutions()):
            return _Search(None, bound, limited)
        for i, state in zip(consistent.live, solver.solution(), strict=False):
            settled[i] = int(consistent.states[i][state])
        return _Search(settled, bound, limited)

    def _solver(self, settings: SolverSettings) -> Any:
        """Return a new solver. toulbar2's options are reset and set before, because some determine what it allocates."""
        tb2.reinit()
        options: dict[str, OptionValue] = {
            "decimalPoint": 0,
            "verbose": -1,
            "seed": int(settings.seed) % 2**30 + 1,
            # defaults of the Python interface, which differ from those of the command line
            "vac": 0,
            "FullEAC": False,
            "VACthreshold": False,
            "useRASPS": 0,
            "weightedTightness": 0,
        }
        # reinit does not reset the limit, nor the flag that a limit was reached
        options["backtrackLimit"] = NO_LIMIT if settings.node_limit is None else int(settings.node_limit)
        options["limited"] = False
        for key, value in {**options, **self._given}.items():
            try:
                setattr(tb2.option, key, value)
            except TypeError as error:
                raise SolverError(f"toulbar2 does not take {value!r} for its option {key!r}: {error}") from error
        tb2.check()
        return tb2.Solver()


def _costs(consistent: Consistent, functions: Functions, reach: float) -> _Costs:
    constant, unary, pairs = consistent.functions(functions)
    given = [*unary.values(), *pairs.values()]
    if not given:
        return _Costs(1.0, constant, 0.0, {}, {})
    # all functions in one array: pairs of bits are many and small
    flat, ends = np.concatenate([f.ravel() for f in given]), np.cumsum([f.size for f in given])
    first = np.concatenate([[0], ends[:-1]])
    least = np.minimum.reduceat(flat, first)
    spread = float((np.maximum.reduceat(flat, first) - least).sum())
    flat = flat - np.repeat(least, np.diff(np.concatenate([[0], ends])))  # constant functions become zero
    scale = reach / spread if spread > 0 else 1.0
    whole = np.round(flat * scale)
    error = float(np.maximum.reduceat(np.abs(flat - whole / scale), first).sum())
    rounded = [w.reshape(f.shape) for w, f in zip(np.split(whole, ends[:-1]), given, strict=True)]
    n = len(unary)
    return _Costs(
        scale,
        constant + float(least.sum()),
        error,
        dict(zip(unary, rounded[:n], strict=True)),
        dict(zip(pairs, rounded[n:], strict=True)),
    )


def _functions(network: CostNetwork, task: Task) -> Functions:
    """Return the objective as functions of one and of two variables: pairs of groups as blocks, the rest term by term."""
    program, form = task.program, task.form
    both = (form.rows < program.n_z) & (form.cols < program.n_z)
    rest = replace(form, rows=form.rows[~both], cols=form.cols[~both], values=form.values[~both])
    parts = network.states.split(rest)
    constant, unary, pairs = parts.constant, parts.unary, parts.pairs
    if np.any(both):
        matrix = sparse.csr_array(
            (form.values[both], (form.rows[both], form.cols[both])), shape=(program.n_z, program.n_z)
        ).toarray()
        matrix = matrix + matrix.T
        couples = np.sort(program.group_of[np.stack([form.rows[both], form.cols[both]], axis=1)], axis=1)
        for g, h in np.unique(couples, axis=0).tolist():
            left, right = program.groups[g], program.groups[h]
            pairs[g, h] = matrix[left.start : left.stop, right.start : right.stop]
    return constant, unary, pairs


def _start(network: CostNetwork, consistent: Consistent, task: Task, costs: _Costs) -> tuple[float, list[int]] | None:
    """Return Q at the start and the state of each live variable among the remaining ones (-1: unknown).

    Return None if there is no start, if it is not legal, or if Q is unknown.
    """
    if task.start is None:
        return None
    chosen: dict[int, int] = {}
    for i in consistent.live:
        # product variables were added later and have no columns
        known = i < len(network.states.columns)
        values = task.start[network.states.columns[i]] if known else np.zeros(0)
        if len(values) and np.all(np.isfinite(values)):
            distance = np.abs(network.states.profiles[i] - values[:, None]).max(axis=0)[consistent.states[i]]
            if distance.min() > 1e-6:
                return None
            chosen[i] = int(np.argmin(distance))
    if any(i not in chosen for i in (*costs.unary, *(k for pair in costs.pairs for k in pair))):
        return None
    total = sum(float(f[chosen[i]]) for i, f in costs.unary.items())
    total += sum(float(f[chosen[i], chosen[j]]) for (i, j), f in costs.pairs.items())
    return total, [chosen.get(i, -1) for i in consistent.live]


def _post(problem: Any, consistent: Consistent, costs: _Costs) -> None:
    """Post variables over the remaining states, costs with the tables of their scopes, other tables, linear rows."""
    at = {i: k for k, i in enumerate(consistent.live)}
    for i in consistent.live:
        problem.makeEnumeratedVariable(f"x{i}", 0, len(consistent.states[i]) - 1)
    for i, f in costs.unary.items():
        problem.postUnaryConstraint(at[i], f.tolist(), False)
    tables = dict(consistent.tables)
    for (i, j), f in costs.pairs.items():
        legal = tables.pop((i, j), None)
        flat = (f if legal is None else np.where(legal, f, math.inf)).ravel().tolist()
        problem.postBinaryConstraint(at[i], at[j], flat, False)
    for variables, legal in tables.items():
        scope = [at[i] for i in variables]
        flat = np.where(legal, 0.0, math.inf).ravel().tolist()
        if len(scope) == 2:
            problem.postBinaryConstraint(*scope, flat, False)
        elif len(scope) == 3:
            problem.postTernaryConstraint(*scope, flat, False)
        else:
            _post_tuples(problem, scope, legal)
    for row in consistent.rows:
        scope = [at[i] for i in row.scope]
        for text in row.texts:
            problem.postKnapsackConstraint(scope, text, kp=True)


def _post_tuples(problem: Any, scope: list[int], legal: Booleans) -> None:
    """Post a table over four variables or more by its legal or its illegal tuples, whichever are fewer."""
    rare = bool(2 * np.count_nonzero(legal) < legal.size)
    tuples = np.argwhere(legal == rare).tolist()
    forbidden = int(tb2.MAX_COST)
    table = problem.postNaryConstraintBegin(scope, forbidden if rare else 0, len(tuples))
    for values in tuples:
        problem.postNaryConstraintTuple(table, values, 0 if rare else forbidden)
    problem.postNaryConstraintEnd(table)


def _answer(
    found: _Search, network: CostNetwork, task: Task, costs: _Costs, settings: SolverSettings, seconds: float
) -> Answer:
    bound = found.bound / costs.scale + costs.constant - costs.error
    if found.states is None:
        if not found.limited:
            return Answer(INFEASIBLE, None, math.nan, math.inf, seconds, Toulbar2Backend.name)
        if task.start is None or not np.all(np.isfinite(task.start)):
            return Answer(UNKNOWN, None, math.nan, bound, seconds, Toulbar2Backend.name)
        columns = np.array(task.start, dtype=float)
    else:
        columns = np.array([f[0 if i < 0 else found.states[i]] for i, f in network.profiles])
    value = task.form.value(columns)
    bound = min(bound, value)
    proven = not found.limited or relative_gap(value, bound) <= settings.gap
    return Answer(OPTIMAL if proven else FEASIBLE, columns, value, bound, seconds, Toulbar2Backend.name)


CLOCK_MONOTONIC, SIGEV_SIGNAL = 1, 0
LEAST = 1e-3
"""Shortest alarm in seconds: an immediate one would come before the search starts."""


class _Event(ctypes.Structure):
    """struct sigevent, the notification at the end of a timer; 64 bytes."""

    _fields_ = (
        ("value", ctypes.c_void_p),
        ("signo", ctypes.c_int),
        ("notify", ctypes.c_int),
        ("rest", ctypes.c_byte * 48),
    )


class _Spec(ctypes.Structure):
    """struct itimerspec: interval and first expiry, each in seconds and nanoseconds."""

    _fields_ = tuple((name, ctypes.c_long) for name in ("every", "every_ns", "first", "first_ns"))


@contextmanager
def alarm(seconds: float) -> Iterator[None]:
    """Send SIGVTALRM once, ``seconds`` from now, unless the block ends before; the caller has set up its handler."""
    library = _library()
    if library is None:
        with _processor_alarm(seconds):
            yield
        return
    timer = ctypes.c_void_p()
    event = _Event(None, signal.SIGVTALRM, SIGEV_SIGNAL)
    if library.timer_create(CLOCK_MONOTONIC, ctypes.byref(event), ctypes.byref(timer)) != 0:
        with _processor_alarm(seconds):
            yield
        return
    whole, part = divmod(max(LEAST, min(seconds, LONGEST)), 1.0)
    library.timer_settime(timer, 0, ctypes.byref(_Spec(0, 0, int(whole), int(part * 1e9))), None)
    try:
        yield
    finally:
        library.timer_delete(timer)


@contextmanager
def _processor_alarm(seconds: float) -> Iterator[None]:
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_VIRTUAL, max(LEAST, min(seconds, LONGEST)))
    try:
        yield
    finally:
        if hasattr(signal, "setitimer"):
            signal.setitimer(signal.ITIMER_VIRTUAL, 0.0)


def _library() -> Any | None:
    """Return the C library if it has POSIX timers, else None."""
    if not sys.platform.startswith("linux"):
        return None
    library = ctypes.CDLL(None, use_errno=True)
    return library if hasattr(library, "timer_create") else None
