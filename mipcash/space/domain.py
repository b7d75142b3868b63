"""Where we search: one compiled space with a solver, and the way between its configurations and points.

Everything that searches or learns takes a :class:`Domain`. It stands for the space as it was when the domain was made: later
changes on the live model do not count, ``Domain.of`` again takes them in.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from mipcash.backends.base import Answer, Backend, SolverSettings
from mipcash.backends.heuristics.local_search import KICKS, LocalSearch
from mipcash.backends.solution import Solution
from mipcash.modelling.declaration import Declaration
from mipcash.modelling.domains import Configuration
from mipcash.program.forms import Indices, QuadraticForm, Vector
from mipcash.program.legality import Legality
from mipcash.program.points import Point, Points
from mipcash.program.program import BinaryProgram
from mipcash.program.unit_scale import UnitScale, decoded
from mipcash.space.exclusion import Apart, Exclusion
from mipcash.space.minimiser import RESTARTS, Oracle
from mipcash.space.minimiser import Point as Solved
from mipcash.space.numbers.legal_numbers import LegalNumbers
from mipcash.space.space import Space


@dataclass(frozen=True, eq=False)
class Domain:
    """A space to search, with the solver that answers for it.

    Attributes:
        scale: the tuned numbers on the unit scale.
    """

    _space: Space
    _minimiser: Oracle
    scale: UnitScale

    @classmethod
    def of(cls, space: Space, backend: str | Backend = "highs") -> Domain:
        """The domain of a declared space.

        Args:
            backend: a solver, or its name.

        Raises:
            SpaceError: the space cannot be compiled.
            SolverError: the solver is not installed.
        """
        minimiser = space.oracle(backend)
        return cls(space, minimiser, UnitScale.of(space, minimiser.program))

    @property
    def declaration(self) -> Declaration:
        """The parameters as declared."""
        return self._space

    @property
    def program(self) -> BinaryProgram:
        """The compiled space."""
        return self._minimiser.program

    @property
    def backend(self) -> Backend:
        """The solver."""
        return self._minimiser.backend

    # -- configurations and points ------------------------------------------------------------------------------

    def encode(self, configs: Sequence[Configuration]) -> Points:
        """Points of B configurations: their levels, and their numbers on the unit scale (0.5 where inactive)."""
        levels = np.array([self.program.encode(c) for c in configs], dtype=np.int64)
        return Points(levels.reshape(len(configs), len(self.program.groups)), self.scale.units(configs))

    def decode(self, point: Point) -> Configuration:
        """The configuration of a point: its numbers rounded and cleaned, checked against the rules as declared.

        Raises:
            SolverError: the configuration is illegal.
        """
        natural = self.scale.natural(point.units)
        return self._space.configuration(self._minimiser.unproven(point.levels, natural, math.nan), natural)

    def raw(self, point: Point) -> Configuration:
        """The configuration that a point spells, as it is; it may be illegal."""
        return decoded(self.program, self.scale, point.levels, point.units)

    def is_legal(self, point: Point) -> bool:
        """Whether a point is legal as it is; the solver is asked where the rules as declared leave it open."""
        return self._space.is_legal(self.raw(point))

    def columns(self, point: Point) -> Vector:
        """Base columns of a point, shape (n,); nan for helpers, which it does not tell."""
        return self._minimiser.unproven(point.levels, self.scale.natural(point.units), math.nan).columns

    def legal_numbers(self, levels: Indices, columns: Vector | None = None) -> LegalNumbers | None:
        """What rules leave for the active numbers in them beside some levels, (G,); None where only the program can tell.

        Args:
            columns: base columns of a point with these levels, shape (n,), whose helpers' values are used where there are too
                many to try.
        """
        hint = np.full(self.program.n, np.nan) if columns is None else columns
        return self._space.legal_numbers(Solved(levels, hint, Answer("unknown", hint, math.nan, -math.inf, 0.0)))

    # -- minimisation -------------------------------------------------------------------------------------------

    def minimise(
        self,
        form: QuadraticForm,
        settings: SolverSettings,
        *,
        units: Vector | None = None,
        excluded: Sequence[Exclusion] = (),
        starts: Sequence[Indices] = (),
        rng: np.random.Generator | None = None,
        restarts: int = RESTARTS,
    ) -> Answer:
        """Minimise a form over the base columns, incumbent first, proof second.

        Args:
            form: not necessarily folded.
            units: unit values, (D,), at which the numbers in rules are held; None leaves them free.
            excluded: what may not be returned.
            starts: levels to start local search from.
            rng: randomness of local search; None: no local search.
            restarts: its descents.

        Returns:
            The answer; ``columns`` is None where nothing is legal (``infeasible``) or a limit came before anything was found.
            ``program.levels_of(answer.columns)`` are its levels.
        """
        numbers = None if units is None else self.scale.natural(units)
        return self._minimiser.answered(
            form, settings, numbers=numbers, excluded=excluded, starts=starts, rng=rng, restarts=restarts
        )

    def incumbent(
        self,
        form: QuadraticForm,
        units: Vector | None,
        excluded: Sequence[Exclusion],
        starts: Sequence[Indices],
        rng: np.random.Generator | None,
        restarts: int = RESTARTS,
        kicks: int = KICKS,
    ) -> tuple[Indices, float] | None:
        """Local search alone: legal levels and their value; None where it finds none or cannot tell what is legal."""
        numbers = None if units is None else self.scale.natural(units)
        folded = self.program.folded(form)
        return self._minimiser.incumbent(folded, numbers, excluded, starts, rng, restarts, kicks)

    def local_search(self, units: Vector | None = None) -> LocalSearch | None:
        """Local search over the levels beside numbers, (D,), or at any; None where only a solver tells what is legal."""
        return self._minimiser.search(None if units is None else self.scale.natural(units))

    @property
    def separable(self) -> bool:
        """Whether no rule relates a tuned number to a helper, so that levels and numbers suffice to check the numbers."""
        return self._minimiser.separable

    @property
    def free_legality(self) -> Legality:
        """Legality of levels whatever the numbers; complete only if no rule mixes the two."""
        return self._minimiser.free_legality

    # -- configurations that are made ---------------------------------------------------------------------------

    def sample(self, n: int, rng: np.random.Generator) -> list[Configuration]:
        """n legal, well-spread configurations.

        Raises:
            InfeasibleSpaceError: nothing is legal.
        """
        return self._space.sample(n, rng)

    def design(
        self,
        n: int,
        rng: np.random.Generator,
        before: Sequence[Configuration] = (),
        apart: Apart | None = None,
    ) -> list[tuple[Configuration, Solution]]:
        """n further points of an initial design, each with the solution that made it.

        Args:
            before: earlier configurations, whose values count as covered; none is made again.
            apart: configurations to keep a distance from.

        Raises:
            InfeasibleSpaceError: nothing is legal.
            SpaceExhaustedError: ``before`` holds every legal configuration.
            SolverError: a limit was reached before anything was found or proven.
        """
        return self._space.design(n, rng, self.backend, before, apart)

    def nearest(self, config: Configuration) -> Configuration:
        """The legal configuration nearest to one from elsewhere; see :meth:`mipcash.Space.nearest`."""
        return self._space.nearest(config)

    # -- what is new --------------------------------------------------------------------------------------------

    def exclusions(self, configs: Iterable[Configuration], apart: Apart | None = None) -> list[Exclusion]:
        """What a new proposal must differ from: earlier configurations without an active number (their levels say it all),
        and, at a distance, those it must keep apart from."""
        return self._space.exclusions(configs, apart)

    def repeats(self, config: Configuration, before: Iterable[Configuration]) -> bool:
        """Whether a configuration is one of ``before``: the same but for 1e-6 of a number on the unit scale."""
        return self._space.repeats(config, before)
