"""Reductions turn a task into an easier one, and convert columns and bound of its answer back.

As in cvxpy, a reduction defines which tasks it accepts, and is applied to one of them. The easier task keeps the given start, if
there is one. Every legal point of the easier task, converted back, is legal for the given task, and its least value is that of the
given task, or a bound on it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Protocol

from mipcash.backends.task import Task
from mipcash.program.forms import Vector
from mipcash.program.program import BinaryProgram
from mipcash.program.recent import Recent

KEPT_PROGRAMS = 8


@dataclass(frozen=True)
class Reduced:
    """An easier task with the conversion back; by default, columns and bound stay as they are.

    Attributes:
        task: the easier task.
    """

    task: Task

    def columns(self, columns: Vector) -> Vector:
        """Convert base columns of the easier task to those of the given task: (n',) -> (n,)."""
        return columns

    def bound(self, bound: float) -> float:
        """Convert a bound on the easier task to a bound on the given task."""
        return bound


class Reduction(Protocol):
    """A reformulation of tasks."""

    def accepts(self, task: Task) -> bool:
        """Return True if the reduction applies to the task."""

    def apply(self, task: Task) -> Reduced:
        """Return the easier task with the conversion back."""


@dataclass(frozen=True)
class Composed(Reduced):
    """Several reductions, applied one after the other.

    Attributes:
        steps: the result of each.
    """

    steps: tuple[Reduced, ...]

    def columns(self, columns: Vector) -> Vector:
        for step in reversed(self.steps):
            columns = step.columns(columns)
        return columns

    def bound(self, bound: float) -> float:
        for step in reversed(self.steps):
            bound = step.bound(bound)
        return bound


def reduced(task: Task, reductions: Iterable[Reduction]) -> Composed:
    """Apply all reductions that accept the task, in order."""
    steps: list[Reduced] = []
    for reduction in reductions:
        if reduction.accepts(task):
            steps.append(reduction.apply(task))
            task = steps[-1].task
    return Composed(task, tuple(steps))


class ProgramReduction(ABC):
    """A reduction of the program alone, with the same base columns; results for recent programs are kept."""

    def __init__(self) -> None:
        self._kept: Recent[tuple[BinaryProgram, BinaryProgram]] = Recent(KEPT_PROGRAMS)

    def accepts(self, task: Task) -> bool:
        """See ``Reduction.accepts``."""
        return True

    def apply(self, task: Task) -> Reduced:
        """See ``Reduction.apply``."""
        # the program is kept beside its id, so that the id cannot be taken over by another object
        _, made = self._kept.get(id(task.program), lambda: (task.program, self.rewritten(task.program)))
        return Reduced(replace(task, program=made))

    @abstractmethod
    def rewritten(self, program: BinaryProgram) -> BinaryProgram:
        """Return the easier program."""
