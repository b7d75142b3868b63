"""Record of one space: the number of questions and refusals per solver, and the disagreements."""

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

from mipcash.backends.spatial import ImpreciseError
from mipcash.errors import SolverError, UndecidedError

Said = TypeVar("Said")

SECONDS = 20
"""CPU seconds after which a question counts as a hang; they do not depend on the load of the machine."""
HANGS = 2
"""Number of hangs after which no more questions about a space are asked."""
MEGABYTES = 1024
"""Peak memory of a process with one space above which it counts as too much."""
SOLVERS: dict[str, str | None] = {
    "default": None,
    "highs": "highs",
    "scip": "scip",
    "toulbar2": "toulbar2",
    "gurobi": "gurobi",
    "cplex": "cplex",
}
"""Name in the table -> the ``solver`` argument; None: no argument, the default of the library."""
COMPARED = ("default", "highs", "scip", "toulbar2")


class NoAnswerError(Exception):
    """Raised if a question takes longer than SECONDS."""


@dataclass(frozen=True)
class Disagreement:
    """Answer of the library that differs from brute force.

    Attributes:
        k, kind: number and kind of the space.
        question, solver: the question, and the solver that answered it.
        expected: answer by brute force in exact fractions.
        ``said``: answer of the library.
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
    """Questions about one space, and their disagreements.

    Attributes:
        left: number of legal configurations of the parameters except reals.
        hidden: whether the space is empty although no two parts contradict each other.
        knives: number of rules that were redrawn.
        features: constructs that occur in the space and in its runs.
        hangs: number of questions without an answer in time.
        megabytes: peak memory of the process and its children; 0 if an earlier space has the peak.
        asked, refused: number of questions per solver.
        unproven: number of optima per solver whose status admits that the proof is missing.
        coarse: whether ranges or steps are so wide or so narrow that the default may refuse too, or lack a proof.
        seconds: time to draw and decide the space, and time for the questions.
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
    """Called with every question before it is asked."""

    def to_json(self) -> str:
        """Return one line of a file from which a run resumes."""
        fields = {**vars(self), "note": None, "disagreements": [vars(d) for d in self.disagreements]}
        return json.dumps(fields, default=lambda number: number.item())

    @classmethod
    def from_json(cls, line: str) -> Record:
        """Read a line of :meth:`to_json`."""
        fields = json.loads(line)
        del fields["note"]
        for name in ("asked", "refused", "unproven"):
            fields[name] = Counter(fields[name])
        for name in ("features", "seconds"):
            fields[name] = tuple(fields[name])
        return cls(**{**fields, "disagreements": [Disagreement(**d) for d in fields["disagreements"]]})

    def wrong(self, question: str, solver: str, expected: object, said: object) -> None:
        """Add a disagreement."""
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
        """Return the answer of the library; None if the solver refuses, raises or hangs.

        Exceptions and hangs are disagreements. After ``HANGS`` hangs no question is asked.

        Args:
            raises: the expected exception, if any; an answer is then a disagreement.
            known: whether the expected exception is certain; if not, an answer is accepted too.
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
    """Return True if a solver reports that its tolerances or its time do not suffice."""
    return isinstance(error, (ImpreciseError, UndecidedError))


def refuses(solver: str, error: Exception) -> bool:
    """Return True if a solver or ConfigSpace refuses a space.

    Solvers refuse continuous columns, programs beyond a free licence, or programs beyond their tolerances.
    """
    text = str(error)
    if type(error).__module__.startswith("ConfigSpace."):  # ConfigSpace cannot make the space to import
        return True
    limit = text.startswith(("toulbar2 cannot take", "the free licence of solver"))
    own = isinstance(error, ImpreciseError) and text.startswith(f"solver {solver!r}")
    return solver != "default" and isinstance(error, SolverError) and (limit or own)


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Raise :class:`NoAnswerError` after so many CPU seconds; only the main thread has this limit."""
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
