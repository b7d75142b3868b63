"""Runner of the harness: it tests spaces, here or in workers. A worker that hangs or dies is a disagreement."""

from __future__ import annotations

import multiprocessing
import resource
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection, wait

from tests.fuzz.described import Active, Choice, Clause, Condition, Join, Rule
from tests.fuzz.kinds import HARD, Case, draw, unrelated
from tests.fuzz.questions import begin, interview
from tests.fuzz.record import COMPARED, MEGABYTES, SECONDS, Record
from tests.fuzz.runs import check_run

SILENCE = 15 * SECONDS
"""Wall-clock seconds without a message after which a worker is ended; far more than CPU seconds on busy machines."""
MOST = 3 * MEGABYTES
"""Megabytes of data that a worker may allocate; a question that needs more ends with a ``MemoryError``."""

IMPORTED = (
    "mipcash.study.minimize",
    "mipcash.backends.pyomo.backend",
    "mipcash.backends.toulbar2.backend",
    "pyscipopt",
)
"""Modules that the library imports lazily; here they are imported before the workers start."""


@dataclass(frozen=True)
class Plan:
    """Spaces to draw and solvers to ask.

    Attributes:
        kinds: kinds of spaces to draw; empty: any kind.
    """

    seed: int = 0
    kinds: tuple[str, ...] = ()
    solvers: tuple[str, ...] = COMPARED
    runs: bool = True


def examine(plan: Plan, k: int, note: Callable[[str], object] = lambda text: None) -> Record:
    """Draw space k, decide it by brute force, ask the library and compare the answers."""
    began = time.perf_counter()
    record, before = Record(k, "?", note=note), _peak()
    try:
        note("the drawing")
        case = draw(plan.seed, k, plan.kinds)
        record.kind, record.knives = case.kind, case.knives
        record.left, record.hidden = int(case.truth.legal_configs.sum()), unrelated(case.truth)
        record.features = tuple(name for name, there in features(case).items() if there)
        drawn = time.perf_counter() - began
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            asked = begin(case, record, plan.seed)
            if asked is not None:
                interview(asked, plan.solvers)
                if plan.runs:
                    check_run(asked)
        record.seconds = (drawn, time.perf_counter() - began - drawn)
    except Exception:
        record.wrong("harness", "-", "no exception of the harness itself", traceback.format_exc())
    record.megabytes = peak if (peak := _peak()) > before else 0
    return record


def _peak() -> int:
    """Return the peak memory of this process or a child of it so far, in megabytes."""
    return max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)) // 1024


def features(case: Case) -> dict[str, bool]:
    """Return the constructs that occur in a space, for the table."""
    drawn, table = case.drawn, case.truth.table
    relations = [r.relation for r in drawn.rules]
    relations += [r for p in drawn.parts if isinstance(p, Choice) for d in p.disjuncts for r in d]
    conditions = [r for r in drawn.rules if r.when]
    listed = [w for p in drawn.parameters for w in p.when] + [w for r in conditions for w in r.when]
    formulas = [w for w in listed if isinstance(w, Join)]
    joins = [j for w in formulas for j in _joins(w)]
    alternatives = [j for j in joins if j.kind == "|"]
    activity = {a.name for p in drawn.parameters for w in p.when for a in _leaves(w) if isinstance(a, Active)}
    widths = [p.high - p.low for p in drawn.parameters if p.kind in ("real", "integer")]
    labels = {repr(v) for p in drawn.parameters if p.kind in ("categorical", "ordinal") for v in p.values}
    choices = [p for p in drawn.choices if p.fixed]
    return {
        "when: alternatives": bool(alternatives),
        "when: eight alternatives": any(len(j.parts) >= 8 for j in alternatives),
        "when: repeated": any(len(set(j.parts)) < len(j.parts) for j in joins),
        "when: negated formula": any(j.kind == "~" and isinstance(j.parts[0], Join) for j in joins),
        "when: three levels": any(_depth(w) >= 3 for w in formulas),
        "when: is_active": bool(activity),
        "when: is_active of a number": any(drawn.without_levels(drawn[n]) for n in activity),
        "when: is_active of several conditions": any(len(drawn[n].when) > 1 for n in activity),
        "never active": any(not on.any() for on in table.on.values()),
        "expand_limit 0 to 3": drawn.expand_limit <= 3,
        "ranges below 1e-5": any(0 < width < 1e-5 for width in widths),
        "ranges above 1e8": any(width > 1e8 for width in widths),
        "single points": any(p.kind == "integer" and p.low == p.high for p in drawn.parameters),
        "products of two reals": bool(case.gridded),
        "hard labels": bool(labels & set(map(repr, HARD))),
        "fixed indicators": any(f is not None for p in choices for f in p.fixed),
        "free indicators": any(f is None for p in choices for f in p.fixed),
        "implied indicators": any(p.implied for p in choices),
        "numbers": bool(drawn.reals),
        "wide integers": any(map(drawn.wide, drawn.parameters)),
        "helpers": bool(drawn.auxiliaries),
        "logic": any(isinstance(p, Clause) for p in drawn.parts),
        "disjunctions": any(isinstance(p, Choice) for p in drawn.parts),
        "conditional parameters": any(p.when or p.owner for p in drawn.parameters),
        "conditional rules": bool(conditions),
        "orderings": any(p.kind == "ordering" for p in drawn.parameters),
        "equalities": any(r.sense == "==" for r in relations),
        "products": any(len(t.factors) > 1 for r in relations for t in r.terms),
        "constraints": any(isinstance(p, Rule) and p.direct for p in drawn.parts),
    }


def _joins(condition: Condition) -> list[Join]:
    return [condition, *(j for part in condition.parts for j in _joins(part))] if isinstance(condition, Join) else []


def _leaves(condition: Condition) -> list[Condition]:
    return [l for part in condition.parts for l in _leaves(part)] if isinstance(condition, Join) else [condition]


def _depth(condition: Condition) -> int:
    return 1 + max(map(_depth, condition.parts)) if isinstance(condition, Join) else 0


# -- many spaces ----------------------------------------------------------------------------------------------------


def examine_all(plan: Plan, numbers: Sequence[int], processes: int, deadline: float | None) -> Iterator[Record]:
    """Yield records in the order in which spaces are finished. If ``processes`` is 0, test them in this process.

    Args:
        deadline: ``time.monotonic()`` after which no new space is started.
    """
    left, workers = list(reversed(numbers)), list[_Worker]()
    try:
        while True:
            while left and len(workers) < max(1, processes) and (deadline is None or time.monotonic() < deadline):
                if processes:
                    workers.append(_Worker(plan, left.pop()))
                else:
                    yield examine(plan, left.pop())
            if not workers:
                return
            ready = wait([w.pipe for w in workers], timeout=1.0)
            for worker in list(workers):
                record = worker.hear() if worker.pipe in ready else worker.watch()
                if record is not None:
                    worker.end()
                    workers.remove(worker)
                    yield record
    finally:
        for worker in workers:
            worker.end()


def _work(pipe: Connection, plan: Plan, k: int) -> None:
    """Send the name of every question before it is asked, and the record at the end."""
    resource.setrlimit(resource.RLIMIT_DATA, (MOST << 20, MOST << 20))
    pipe.send(replace(examine(plan, k, pipe.send), note=print))  # ``pipe.send`` cannot be pickled


class _Worker:
    """Process that tests one space and then ends."""

    def __init__(self, plan: Plan, k: int) -> None:
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload([__name__, *IMPORTED])
        self.pipe, theirs = context.Pipe(duplex=False)
        self._process = context.Process(target=_work, args=(theirs, plan, k), daemon=True)
        self._process.start()
        theirs.close()
        self._plan, self._k, self._heard, self._question = plan, k, time.monotonic(), "its start"

    def hear(self) -> Record | None:
        """Return the record, or a disagreement if the process died; None if the record is still to come."""
        try:
            said: str | Record = self.pipe.recv()
        except (EOFError, OSError):
            self._process.join(5)
            return self._lost(f"the process died, exit code {self._process.exitcode}")
        self._heard = time.monotonic()
        if isinstance(said, Record):
            return said
        self._question = said
        return None

    def watch(self) -> Record | None:
        """Return a disagreement after a long silence, else None."""
        late = time.monotonic() - self._heard > SILENCE
        return self._lost(f"no answer within {SILENCE} s", hangs=1) if late else None

    def end(self) -> None:
        self._process.kill()
        self._process.join()

    def _lost(self, why: str, hangs: int = 0) -> Record:
        case = draw(self._plan.seed, self._k, self._plan.kinds)
        record = Record(self._k, case.kind, int(case.truth.legal_configs.sum()), hangs=hangs)
        record.wrong(self._question, "?", "an answer", why)
        return record
