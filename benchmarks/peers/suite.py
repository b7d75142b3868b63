"""Suites: sets of problems with their budget, initial design, conventions and folder of results."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from benchmarks.peers.convention import CONVENTIONS
from benchmarks.peers.history import RESULTS
from benchmarks.peers.method import INITIAL
from benchmarks.peers.problem import Problem, chosen, problems

PEERS = "peers"


@dataclass(frozen=True)
class Suite:
    """What the runner needs beside methods and seeds.

    Attributes:
        name: as on the command line.
        problems: makes the problems by name.
        folder: of the results.
        budget: evaluations of a run, the initial ones included.
        initial: configurations that a run starts from: legal samples, the same for all methods without a design of their own.
        conventions: for illegal suggestions, see :mod:`benchmarks.peers.convention`.
        named: problems that are run only where they are named: they take days without a GPU.
    """

    name: str
    problems: Callable[[], Mapping[str, Problem]]
    folder: Path
    budget: int = 60
    initial: int = INITIAL
    conventions: tuple[str, ...] = CONVENTIONS
    named: tuple[str, ...] = ()

    def chosen(self, names: list[str] | None = None) -> list[Problem]:
        """Problems by name; None: all but those that have to be named.

        Raises:
            ValueError: a name that no problem has.
        """
        return chosen(names or [name for name in self.problems() if name not in self.named], self.problems())


@cache
def suites() -> dict[str, Suite]:
    """All suites by name."""
    from benchmarks.paper.suites import SUITES

    return {PEERS: Suite(PEERS, problems, RESULTS)} | {s.name: s for s in SUITES}


def suite(name: str = PEERS) -> Suite:
    """A suite by name.

    Raises:
        ValueError: there is none of that name.
    """
    if name == PEERS:  # without a look at the others
        return Suite(PEERS, problems, RESULTS)
    known = suites()
    if name not in known:
        raise ValueError(f"there is no suite {name!r}; there are {', '.join(known)}")
    return known[name]
