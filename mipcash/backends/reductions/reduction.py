"""What a reduction is: a task becomes an easier one, and what is found there finds its way back.

As in cvxpy, a reduction says which tasks it accepts and applies itself to one of them. The easier task has the start of the
given one, where there is one; its columns and its bound are taken back by what came of the reduction. A point that is legal
there is legal here, and the least value there is the least here, or a bound on it.
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
    """An easier task, and the way back: the same columns and the same bound where nothing else is said.

    Attributes:
        task: the easier one.
    """

    task: Task

    def columns(self, columns: Vector) -> Vector:
        """Base columns of the given task from those of the easier one: (n',) -> (n,)."""
        return columns

    def bound(self, bound: float) -> float:
        """A bound on the given task from one on the easier one."""
        return bound


class Reduction(Protocol):
    """One reformulation of tasks."""

    def accepts(self, task: Task) -> bool:
        """Whether it is meant for such a task."""

    def apply(self, task: Task) -> Reduced:
        """The easier task, and the way back."""


@dataclass(frozen=True)
class InTurn(Reduced):
    """Several reductions, one after the other.

    Attributes:
        steps: what came of each.
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


def reduced(task: Task, reductions: Iterable[Reduction]) -> InTurn:
    """The task after all reductions that accept it."""
    steps: list[Reduced] = []
    for reduction in reductions:
        if reduction.accepts(task):
            steps.append(reduction.apply(task))
            task = steps[-1].task
    return InTurn(task, tuple(steps))


class ProgramReduction(ABC):
    """A reduction of the program alone, with the same base columns; what it made of recent programs is kept."""

    def __init__(self) -> None:
        self._kept: Recent[tuple[BinaryProgram, BinaryProgram]] = Recent(KEPT_PROGRAMS)

    def accepts(self, task: Task) -> bool:
        """See :meth:`Reduction.accepts`."""
        return True

    def apply(self, task: Task) -> Reduced:
        """See :meth:`Reduction.apply`."""
        # the program is kept beside its id, so that the id cannot be taken over by another object
        _, made = self._kept.get(id(task.program), lambda: (task.program, self.rewritten(task.program)))
        return Reduced(replace(task, program=made))

    @abstractmethod
    def rewritten(self, program: BinaryProgram) -> BinaryProgram:
        """The easier program."""
