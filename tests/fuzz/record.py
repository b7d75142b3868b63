"""What is asked, by whom, and what came back: the record of one space."""

from __future__ import annotations

import json
import signal
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType
from typing import Any, TypeVar

from mipcash.errors import SolverError

Said = TypeVar("Said")

SECONDS = 20
"""CPU seconds of this process for one question, which the load of the machine does not change; then it hangs."""
HANGS = 2
"""Hangs after which a space is asked nothing more."""
MEGABYTES = 1024
"""Peak memory of a process with one space that counts as too much."""
SOLVERS: dict[str, str | None] = {
    "default": None,
    "highs": "highs",
    "scip": "scip",
    "toulbar2": "toulbar2",
    "gurobi": "gurobi",
    "cplex": "cplex",
}
"""Name in the table -> the ``solver`` argument; None: no argument, the path of a user who says nothing."""
COMPARED = ("default", "highs", "scip", "toulbar2")


class NoAnswerError(Exception):
    """A question took longer than SECONDS."""


@dataclass(frozen=True)
class Disagreement:
    """One answer that is not what brute force says.

    Attributes:
        k, kind: the space.
        question, solver: what was asked of whom.
        expected: by brute force in exact fractions.
        said: by the library.
    """

    k: int
    kind: str
    question: str
    solver: str
    expected: str
    said: str

    def __str__(self) -> str:
        return (
            f"{self.k:>6} {self.kind:14} {self.question:12} {self.solver:9} expected {self.expected}; got {self.said}"
        )


@dataclass
class Record:
    """One space: what it is, what was asked and what went wrong.

    Attributes:
        left: legal configurations of everything but reals.
        hidden: empty, though no two parts contradict each other.
        knives: rules redrawn.
        features: what occurs in it, and in its runs.
        hangs: questions without an answer in time.
        megabytes: peak memory of the process and its children; 0: it is that of an earlier space.
        asked, refused: number of questions per solver.
        unproven: optima that are given with a status that admits that the proof is missing.
        coarse: whether ranges or steps are so wide or so narrow that the default may refuse too, or lack a proof.
        seconds: to draw and decide it, and to ask.
    """

    k: int
    kind: str
    left: int = 0
    hidden: bool = False
    knives: int = 0
    hangs: int = 0
    megabytes: int = 0
    features: tuple[str, ...] = ()
    asked: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    unproven: Counter[str] = field(default_factory=Counter)
    coarse: bool = False
    disagreements: list[Disagreement] = field(default_factory=list)
    seconds: tuple[float, float] = (0.0, 0.0)
    note: Callable[[str], object] = field(default=lambda text: None, repr=False)
    """Told of every question before it is asked."""

    def to_json(self) -> str:
        """One line of a file that a run resumes from."""
        fields = {**vars(self), "note": None, "disagreements": [vars(d) for d in self.disagreements]}
        return json.dumps(fields, default=lambda number: number.item())

    @classmethod
    def from_json(cls, line: str) -> Record:
        """Read what :meth:`to_json` wrote."""
        fields = json.loads(line)
        del fields["note"]
        for name in ("asked", "refused", "unproven"):
            fields[name] = Counter(fields[name])
        for name in ("features", "seconds"):
            fields[name] = tuple(fields[name])
        return cls(**{**fields, "disagreements": [Disagreement(**d) for d in fields["disagreements"]]})

    def wrong(self, question: str, solver: str, expected: object, said: object) -> None:
        """Note a disagreement."""
        texts = (" ".join(str(t).split()) for t in (expected, said))
        short = [t if len(t) <= 600 else f"{t[:600]} ..." for t in texts]
        self.disagreements.append(Disagreement(self.k, self.kind, question, solver, *short))

    def ask(
        self,
        question: str,
        solver: str,
        call: Callable[[], Said],
        raises: type[Exception] | None = None,
        known: bool = True,
    ) -> Said | None:
        """The answer; None where the solver refuses or raises (a disagreement, unless ``raises`` says so), and after ``HANGS``.

        Args:
            raises: what the right answer is an exception of; then an answer is the disagreement,
            known: unless it is not known that no other answer is right.
        """
        if self.hangs >= HANGS:
            return None
        self.asked[solver] += 1
        self.note(f"{question} of {solver}")
        try:
            with limited(SECONDS):
                said = call()
        except NoAnswerError:
            self.hangs += 1
            self.wrong(question, solver, "an answer", f"no answer within {SECONDS} s")
        except Exception as error:
            if raises is not None and isinstance(error, raises):
                return None
            if refuses(solver, error) or (self.coarse and imprecise(error)):
                self.refused[solver] += 1
            else:
                self.wrong(
                    question, solver, raises.__name__ if raises else "an answer", f"{type(error).__name__}: {error}"
                )
        else:
            if raises is None or not known:
                return said
            self.wrong(question, solver, raises.__name__, said)
        return None


def imprecise(error: Exception) -> bool:
    """Whether a solver says that its tolerances, or its time, do not suffice."""
    text = str(error)
    words = ("returns points that break", "the solver could not tell in the time it was given")
    return isinstance(error, SolverError) and any(w in text for w in words)


def refuses(solver: str, error: Exception) -> bool:
    """Whether a solver does not take such programs (continuous columns, a free licence, its tolerances), or ConfigSpace a space."""
    text = str(error)
    if type(error).__module__.startswith("ConfigSpace."):  # the space that is imported cannot be made
        return True
    limits = ("toulbar2 cannot take", "the free licence of solver", f"solver {solver!r} returns points that break")
    return isinstance(error, SolverError) and solver != "default" and any(text.startswith(l) for l in limits)


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Raise :class:`NoAnswerError` after so many CPU seconds (in the main thread; elsewhere there is no limit)."""
    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "setitimer"):
        yield
        return

    def late(_: int, __: FrameType | None) -> None:
        raise NoAnswerError

    before: Any = signal.signal(signal.SIGPROF, late)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
