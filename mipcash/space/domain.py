"""The search domain of optimizers: a compiled space with a solver, and the conversion between configurations and points.

Everything that searches or learns takes a ``Domain``. It represents the space at the time when the domain was made. After
changes on the live model, make a new one.

A sub-space contains the configurations in which some parameters are active and have a given value. A fixed parameter is a rule
like any other, over the binary of its level or over its variable. Checking, compiling, sampling and walks under rules therefore
stay inside, and the points of a sub-space have the same levels and units as those of the whole space.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from mipcash.backends.heuristics.local_search import KICKS
from mipcash.backends.registry import DEFAULT
from mipcash.backends.task import Answer, Backend, SolverSettings
from mipcash.deadline import Deadline
from mipcash.display import counted
from mipcash.errors import InfeasibleSpaceError, SolverError, SpaceError, UndecidedError
from mipcash.modelling.declaration import Declaration
from mipcash.modelling.domains import Configuration, Value
from mipcash.modelling.quadratic import Quadratic, Variable
from mipcash.modelling.rules import Rule
from mipcash.program.algebra import AlgebraicModel, AlgebraicRow
from mipcash.program.compile import compile_space
from mipcash.program.forms import Indices, QuadraticForm, Vector
from mipcash.program.legality import Legality
from mipcash.program.points import Point, Points
from mipcash.program.program import BinaryProgram, is_wide
from mipcash.program.recent import Recent
from mipcash.program.unit_scale import UnitScale, decoded
from mipcash.space.compiled import CompiledSpace, PublicSpace, compiled, minimiser_of
from mipcash.space.conflict import conflicting, decided, emptiness
from mipcash.space.design import design
from mipcash.space.exclusion import Exclusion, MinimumDistance
from mipcash.space.minimiser import RESTARTS, Minimiser
from mipcash.space.nearest import nearest
from mipcash.space.novelty import exclusions, repeats
from mipcash.space.numbers.legal_numbers import LegalNumbers
from mipcash.space.sampling import pins_numbers, sample
from mipcash.space.solution import Solution


def restricted(space: CompiledSpace, fixed: Mapping[str, Value], backend: Backend) -> CompiledSpace:
    """Return the sub-space in which every parameter in ``fixed`` is active and has its value.

    Args:
        fixed: label -> value; of a module, its algorithm.
        backend: solver that decides whether any configuration is left.

    Raises:
        SpaceError: no such parameter, or a value outside its domain.
        InfeasibleSpaceError: no legal configuration has these values; the message names the conflicting rules.
        SolverError: a limit was reached before this was known.
    """
    values = {label: _checked(space, label, value) for label, value in fixed.items()}
    rules = [rule for label, value in values.items() for rule in _rules(space, label, value)]
    rows = tuple(_row(space.algebra, rule) for rule in rules)
    algebra = replace(space.algebra, rows=(*space.algebra.rows, *rows))
    program = compile_space(space.declaration, space.in_rules, algebra)
    sub = CompiledSpace(space.declaration, program, (*space.rules, *rules), algebra, {**space.fixed, **values})
    if decided(emptiness(program, backend)).columns is None:
        raise InfeasibleSpaceError(_why_empty(sub, backend))
    return sub


def _checked(space: CompiledSpace, label: str, value: Value) -> Value:
    """Return the value in the form that configurations use.

    Raises:
        SpaceError: no such parameter, or a value outside its domain.
    """
    parameter = space.declaration.parameters.get(label)
    if parameter is None:
        raise SpaceError(
            f"space {space.name!r} has no parameter {label!r} to fix; it has {list(space.declaration.parameters)}"
        )
    problem = parameter.domain.problem(value)
    if problem is not None:
        raise SpaceError(f"parameter {label!r} cannot be fixed: {problem}")
    return parameter.domain.canonical(value)


def _rules(space: CompiledSpace, label: str, value: Value) -> Iterator[Rule]:
    """Yield the rules that make a parameter active with the given value."""
    name = _name(label, value)
    for spec in space.declaration.groups:
        if spec.parameter == label:
            yield _equals(name, spec.variables[spec.level(value)], 1.0)
    for number in space.declaration.numbers:
        if number.label == label:
            yield _equals(name, number.variable, float(value))
            if number.on is not None:
                body = replace(number.on, constant=0.0)
                yield Rule(name, body, 1.0 - number.on.constant, 1.0 - number.on.constant)


def _name(label: str, value: Value) -> str:
    return f"{label} held at {value!r}"


def _equals(name: str, variable: Variable, value: float) -> Rule:
    return Rule(name, Quadratic(0.0, {id(variable): 1.0}, {}, {id(variable): variable}), value, value)


def _row(algebra: AlgebraicModel, rule: Rule) -> AlgebraicRow:
    """Return a rule over declared variables as a row over the variables that represent them in the transformed model."""
    image = {i: algebra.image[i] for i in rule.body.variables}
    linear = {id(image[i]): c for i, c in rule.body.linear.items()}
    body = Quadratic(0.0, linear, {}, {id(v): v for v in image.values()})
    return AlgebraicRow(rule.name, "", body, rule.lower, rule.upper, rule.slack)


def _why_empty(sub: CompiledSpace, backend: Backend) -> str:
    ours = {_name(label, value) for label, value in sub.fixed.items()}
    rules = [name for name in conflicting(sub.program, backend) if name not in ours]
    against = ", ".join(map(repr, rules))
    cause = f"rule{'s' * (len(rules) > 1)} {against} cannot hold there" if rules else "its conditions do not admit them"
    return f"no legal configuration of space {sub.name!r} has {sub.held()}: {cause}"


ENCODED = 4096
"""Number of configurations whose points are cached."""


@dataclass(frozen=True, eq=False, repr=False)
class Domain:
    """A space to search, with its solver. Make one with ``of``.

    Attributes:
        space: the compiled space.
        minimiser: minimises forms over its program.
        scale: the numerical parameters on the unit scale.
    """

    space: CompiledSpace
    minimiser: Minimiser
    scale: UnitScale

    def __repr__(self) -> str:
        parameters = counted(len(self.declaration.parameters), "parameter")
        return f"<domain of {self.space.name!r}: {parameters}, solver {self.backend.name}>"

    @classmethod
    def of(cls, space: PublicSpace, backend: str | Backend = DEFAULT) -> Domain:
        """Return the domain of a declared space.

        Args:
            space: a ``mipcash.Space``.
            backend: a solver, or its name.

        Raises:
            SpaceError: the space cannot be compiled.
            SolverError: the solver is not installed.
        """
        minimiser = minimiser_of(space, backend)
        return cls._with(compiled(space), minimiser)

    @classmethod
    def _with(cls, space: CompiledSpace, minimiser: Minimiser) -> Domain:
        return cls(space, minimiser, UnitScale(space.declaration, space.program))

    def restricted(self, fixed: Mapping[str, Value]) -> Domain:
        """Return the sub-space in which every parameter in ``fixed`` is active and has its value.

        Its points have the same levels and units as those of the whole space. Its program has additional columns for fixed
        numerical parameters that no rule mentions.

        Args:
            fixed: label -> value; of a module, its algorithm.

        Raises:
            SpaceError: no such parameter, or a value outside its domain.
            InfeasibleSpaceError: no legal configuration has these values.
            SolverError: a limit was reached before this was known.
        """
        space = restricted(self.space, fixed, self.backend)
        return Domain._with(space, Minimiser(space.program, self.backend))

    def until(self, deadline: Deadline) -> Domain:
        """Return the same domain with a deadline, after which its solver and searches over it stop."""
        return replace(self, space=self.space.until(deadline), minimiser=self.minimiser.until(deadline))

    @property
    def deadline(self) -> Deadline:
        """The time when searches stop; never in a new domain."""
        return self.minimiser.deadline

    @property
    def fixed(self) -> Mapping[str, Value]:
        """Parameters that a sub-space fixes, by name; empty for a whole space."""
        return self.space.fixed

    @property
    def declaration(self) -> Declaration:
        """The parameters as declared."""
        return self.space.declaration

    @property
    def program(self) -> BinaryProgram:
        """The compiled space."""
        return self.minimiser.program

    @property
    def wide(self) -> bool:
        """True if there are too many levels or parameters to form anything over pairs of them."""
        return is_wide(self.program.n_z, len(self.program.groups) + len(self.scale))

    @property
    def pinned(self) -> bool:
        """True if rules tie numerical parameters to integer auxiliary variables of many values, at which these cannot move."""
        return pins_numbers(self.program, reals=False)

    @property
    def backend(self) -> Backend:
        """The solver."""
        return self.minimiser.backend

    # -- configurations and points ------------------------------------------------------------------------------

    def encode(self, configs: Sequence[Configuration]) -> Points:
        """Return the points of B configurations: levels, and numerical parameters on the unit scale (0.5 if inactive)."""
        points = [self._encoded(c) for c in configs]
        return Points.of(points, len(self.program.groups), len(self.scale))

    def _encoded(self, config: Configuration) -> Point:
        """Return the point of one configuration, cached because an optimizer encodes its whole history for every proposal."""
        kept: Recent[Point] = self.program.derived.setdefault("encoded", Recent(ENCODED))

        def made() -> Point:
            return Point(self.program.encode(config), self.scale.units([config])[0])

        try:
            return kept.get((*config, *config.values(), *map(type, config.values())), made)
        except TypeError:  # an unhashable value
            return made()

    def decode(self, point: Point) -> Configuration:
        """Return the configuration of a point, with numerical values rounded and cleaned, checked against the rules as declared.

        Raises:
            SolverError: the configuration is illegal.
        """
        natural = self.scale.natural(point.units)
        return self.space.configuration(point.levels, self.minimiser.columns(point.levels, natural), natural)

    def raw(self, point: Point) -> Configuration:
        """Return the configuration of a point without corrections; it may be illegal."""
        return decoded(self.program, self.scale, point.levels, point.units)

    def is_legal(self, point: Point) -> bool:
        """Return True if a point is known to be legal without corrections, by the declared rules or the solver."""
        try:
            return self.space.is_legal(self.raw(point))
        except SolverError:  # the solver could not decide in time
            return False

    def columns(self, point: Point) -> Vector:
        """Return the base columns of a point, shape (n,); nan for auxiliary variables, which a point does not determine."""
        return self.minimiser.columns(point.levels, self.in_rules(point.units))

    def in_rules(self, units: Vector) -> dict[str, float]:
        """Return natural values of the numerical parameters that have columns, from unit values, (D,)."""
        return self.scale.natural(units, [n.label for n in self.program.numbers])

    def legal_numbers(self, levels: Indices, columns: Vector | None = None) -> LegalNumbers | None:
        """Return the legal set of the active numerical parameters in rules at levels (G,); None if only a solver can decide it.

        Args:
            columns: base columns of a point with these levels, shape (n,). The values of auxiliary variables are used if there are
                too many to enumerate.
        """
        hint = np.full(self.program.n, np.nan) if columns is None else columns
        return self.space.legal_numbers(levels, hint)

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
        """Minimise a form over the base columns: first an incumbent, then the proof of optimality.

        Args:
            form: folded or not. In a sub-space it may be a form over the binaries of the whole space, such as a surrogate that was
                fitted there.
            units: unit values, (D,), at which the numerical parameters in rules are fixed; None leaves them free.
            excluded: levels that may not be returned.
            starts: levels to start local search from.
            rng: randomness of local search; None disables it.
            restarts: number of descents of local search.

        Returns:
            The answer. ``columns`` is None if nothing is legal (``infeasible``) or a limit was reached before anything was found.
            ``program.levels_of(answer.columns)`` are its levels.
        """
        numbers = None if units is None else self.in_rules(units)
        return self.minimiser.minimise(
            self._whole(form), settings, numbers=numbers, excluded=excluded, starts=starts, rng=rng, restarts=restarts
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
        """Run local search alone. Return legal levels and their value, or None if it finds none or cannot decide legality."""
        numbers = None if units is None else self.in_rules(units)
        folded = self.program.folded(self._whole(form))
        return self.minimiser.incumbent(folded, numbers, excluded, starts, rng, restarts, kicks)

    def _whole(self, form: QuadraticForm) -> QuadraticForm:
        """Return a form over all base columns. A form over fewer columns is padded with zeros: binaries are the first columns."""
        missing = self.program.n - form.n
        return replace(form, linear=np.pad(form.linear, (0, missing))) if missing else form

    def legality(self, units: Vector) -> Legality | None:
        """Return the legality of levels at given unit values, (D,), or None if only a solver can decide it."""
        # a rule that relates a numerical parameter to an auxiliary variable is not decided by levels and numerical values alone
        return self.minimiser.legality(self.in_rules(units)) if self.minimiser.separable else None

    @property
    def free_legality(self) -> Legality:
        """Legality of levels for any numerical values; complete only if no rule contains a numerical parameter."""
        return self.minimiser.free_legality

    # -- samples and designs ------------------------------------------------------------------------------------

    def sample(self, n: int, rng: np.random.Generator) -> list[Configuration]:
        """Return n legal, well-spread configurations.

        Raises:
            InfeasibleSpaceError: nothing is legal.
        """
        return sample(self.space, self.minimiser, n, rng)

    def legal_samples(self, n: int) -> Points:
        """Return n legal samples, the same at each call; fewer if the deadline passes."""
        kept: Points | None = self.program.derived.get("legal samples")
        if kept is not None:
            return kept
        try:
            found = self.encode(self.sample(n, np.random.default_rng(0)))
        except UndecidedError:
            found = self.encode([])
        if not self.deadline.passed:
            self.program.derived["legal samples"] = found
        return found

    def design(
        self,
        rng: np.random.Generator,
        before: Sequence[Configuration] = (),
        min_distance: MinimumDistance | None = None,
    ) -> tuple[Configuration, Solution]:
        """Return the next point of an initial design with its solution.

        Args:
            before: earlier configurations, whose values count as covered; none of them is returned again.
            min_distance: configurations to keep a distance from.

        Raises:
            InfeasibleSpaceError: nothing is legal.
            SpaceExhaustedError: ``before`` holds every legal configuration.
            SolverError: a limit was reached before anything was found or proven.
        """
        return design(self.space, self.minimiser, rng, before, min_distance)

    def nearest(self, config: Configuration) -> Configuration:
        """Return the legal configuration nearest to a given one; see ``mipcash.Space.nearest``."""
        return nearest(self.space, config)

    # -- new and repeated configurations ------------------------------------------------------------------------

    def exclusions(
        self, configs: Iterable[Configuration], min_distance: MinimumDistance | None = None
    ) -> list[Exclusion]:
        """Return the exclusions that a new proposal must respect.

        A configuration without active numerical parameters is identified by its levels, which are excluded exactly. A configuration
        with active numerical parameters is not excluded, since its levels may be proposed again with other values. Each
        configuration of ``min_distance`` excludes all levels within the minimum distance.
        """
        return exclusions(self.space, lambda config: self._encoded(config).levels, configs, min_distance)

    def repeats(self, config: Configuration, before: Iterable[Configuration]) -> bool:
        """Return True if a configuration is in ``before``, up to differences of 1e-6 on the unit scale in numerical parameters."""
        return repeats(self.space, config, before)
