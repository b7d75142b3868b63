"""Suite: a set of problems with its budget, initial design, conventions and folder of results."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from benchmarks.peers.convention import CONVENTIONS
from benchmarks.peers.method import INITIAL
from benchmarks.peers.problem import Problem


@dataclass(frozen=True)
class Suite:
    """Input of the runner besides methods and seeds.

    Attributes:
        name: as on the command line.
        problems: makes the problems by name.
        folder: of the results.
        budget: evaluations of a run, the initial ones included.
        initial: number of initial configurations: legal samples, the same for all methods without their own design.
        conventions: for illegal suggestions, see :mod:`benchmarks.peers.convention`.
        named: problems that are run only if named, as they take days without a GPU.
    """

    name: str
    problems: Callable[[], Mapping[str, Problem]]
    folder: Path
    budget: int = 60
    initial: int = INITIAL
    conventions: tuple[str, ...] = CONVENTIONS
    named: tuple[str, ...] = ()

    def chosen(self, names: list[str] | None = None) -> list[Problem]:
        """Return problems by name; None selects all problems except those that must be named.

        Raises:
            ValueError: no problem has the name.
        """
        known = self.problems()
        unknown = [n for n in names or [] if n not in known]
        if unknown:
            raise ValueError(f"there is no problem {', '.join(unknown)}; there are {', '.join(known)}")
        return [known[n] for n in names or [n for n in known if n not in self.named]]
