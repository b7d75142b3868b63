"""What a declared space does with a solver: compile, optimise, sample, decode; :class:`mipcash.Space` adds the questions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from mipcash.backends.base import Backend, SolverSettings
from mipcash.backends.registry import make_backend
from mipcash.errors import ConfigurationError, InfeasibleSpaceError, SolverError, SpaceError
from mipcash.modelling.declaration import Declaration
from mipcash.modelling.declared import Number
from mipcash.modelling.domains import Configuration, Real
from mipcash.modelling.live.adoption import adopt_model
from mipcash.modelling.live.components import honour
from mipcash.modelling.rules import Rule
from mipcash.modelling.validation import Violation, check
from mipcash.program.algebra import AlgebraicModel, algebraic_model
from mipcash.program.compile import compile_space
from mipcash.program.forms import Indices
from mipcash.program.program import BinaryProgram
from mipcash.space import conflict as explaining
from mipcash.space.conflict import told
from mipcash.space.live_model import active_rules, signature
from mipcash.space.minimiser import Oracle, Point
from mipcash.space.numbers.assembly import number_rules
from mipcash.space.numbers.legal_numbers import LegalNumbers, union_of
from mipcash.space.sampling import farthest, latin_hypercube, sample_levels

WALK_STEPS = 40
"""Hit-and-run steps for numbers that rules bind, at least."""
DRAWS = 8
"""Draws of bound numbers of which a design takes the farthest from what it has."""
QUESTION_SECONDS = 60.0


@dataclass(frozen=True)
class _Snapshot:
    """What was derived from the live model when it was last looked at."""

    signature: object
    held: tuple[object, ...]  # the expressions behind the identities in the signature
    program: BinaryProgram
    rules: tuple[Rule, ...]
    algebra: AlgebraicModel  # keeps the variables alive that only the transformed model has

    @cached_property
    def columns(self) -> Mapping[int, int]:
        """Id of a variable in rules that has a column of its own -> that column."""
        named = {v.name: i for r in self.rules for q in (r.body, *r.when) for i, v in q.variables.items()}
        return {named[name]: c for name, c in self.program.variable_columns.items() if name in named}


class SpaceCore(Declaration):
    """A search space with rules.

    Declare it with :meth:`real`, :meth:`integer`, :meth:`ordinal`, :meth:`categorical`, :meth:`module`,
    :meth:`ordering`, :meth:`auxiliary` and :meth:`rule`; ``space.model`` is the live Pyomo model behind it.
    """

    def __init__(self, name: str = "space", **options: Any) -> None:
        super().__init__(name, **options)
        self._snapshot: _Snapshot | None = None
        self._oracles: dict[str, tuple[BinaryProgram, Oracle]] = {}

    @classmethod
    def from_pyomo(cls, model: Any, *, auxiliary: Iterable[str] = (), expand_limit: int | None = None) -> Any:
        """A space whose parameters are the variables of a Pyomo model and whose rules are its constraints.

        The model is used as it is, live: later changes count. Objectives in it are ignored (the black box is the objective).

        Args:
            model: a ``ConcreteModel``; every variable bounded.
            auxiliary: names of variables that are helpers: in constraints, absent from configurations.

        Raises:
            SpaceError: see :func:`mipcash.modelling.live.adoption.adopt_model`.
        """
        options = {} if expand_limit is None else {"expand_limit": expand_limit}
        space = cls(getattr(model, "name", "space") or "space", **options)
        adopt_model(space, model, auxiliary)
        return space

    # -- legality -----------------------------------------------------------------------------------------------

    def validate(self, config: Configuration) -> list[Violation]:
        """Every reason why a configuration is illegal, by name; empty: it is legal.

        Values are compared with the domains and the rules as declared, at natural values; a rule may be missed by 1e-9 of its
        largest coefficient (:mod:`mipcash.modelling.rules`). Rules over auxiliaries, and disjunctions, hold if some values of the
        auxiliaries and indicators satisfy them.
        """
        return self._violations(config, self._current())

    def _violations(self, config: Configuration, snapshot: _Snapshot) -> list[Violation]:
        verdict = check(self, config, snapshot.rules)
        violations = list(verdict.violations)
        if not violations and verdict.undecided:
            violations += self._ask_solver(config, verdict.undecided)
        return violations

    def is_legal(self, config: Configuration) -> bool:
        """Whether a configuration is legal; :meth:`validate` says why not."""
        return not self.validate(config)

    def active_rules(self) -> list[Rule]:
        """Declared rules whose constraint is active, and what was put on ``model`` directly."""
        return active_rules(self)

    def _ask_solver(self, config: Configuration, undecided: Sequence[str]) -> list[Violation]:
        """Feasibility with the configuration fixed; the rules to blame are an irreducible conflict."""
        program, backend = self._latest().program, self.oracle().backend
        fixed = dict(zip((program.starts + program.encode(config)).tolist(), [1.0] * len(program.groups), strict=True))
        for number in program.numbers:
            if number.label in config:
                fixed[number.column] = float(config[number.label])
        settings = SolverSettings(time_limit=QUESTION_SECONDS)
        if not explaining.is_empty(program, backend, settings, fixed):
            return []
        culprits = list(explaining.conflicting(program, backend, settings, fixed))
        if not culprits:
            culprits = list(undecided) or ["the structure of the space"]
        names = ", ".join(map(repr, culprits))
        return [
            Violation(
                culprits[0], f"{'rule' if len(culprits) == 1 else 'rules'} {names} cannot hold for this configuration"
            )
        ]

    # -- the compiled program -----------------------------------------------------------------------------------

    @property
    def program(self) -> BinaryProgram:
        """The compiled space; compiled again when the live model has changed."""
        return self._current().program

    def _current(self) -> _Snapshot:
        """The snapshot of the live model as it is now."""
        now, held = signature(self)
        if self._snapshot is None or self._snapshot.signature != now:
            honour(self)  # refuses what cannot be obeyed, and may write rules for what is no constraint
            now, held = signature(self)
            algebra = algebraic_model(self)
            rules = (*self.active_rules(), *algebra.logic)
            self._snapshot = _Snapshot(now, held, compile_space(self, algebra=algebra), rules, algebra)
        return self._snapshot

    def _latest(self) -> _Snapshot:
        """The latest snapshot, without a look at the model: for work inside one question."""
        return self._snapshot or self._current()

    def oracle(self, solver: str | Backend = "auto") -> Oracle:
        """The exact oracle of this space with a solver (kept between calls)."""
        program = self.program
        name = solver if isinstance(solver, str) else solver.name
        kept = self._oracles.get(name)
        if kept is None or kept[0] is not program or (not isinstance(solver, str) and kept[1].backend is not solver):
            backend = make_backend(solver) if isinstance(solver, str) else solver
            self._oracles[name] = (program, Oracle(program, backend))
        return self._oracles[name][1]

    def sizes(self) -> dict[str, int]:
        """Size of the space and of its program, for reports."""
        program = self.program
        return {
            "parameters": len(self.parameters),
            "discrete": sum(1 for l in self.parameters if any(g.parameter == l for g in program.groups)),
            "numbers": sum(1 for n in self.numbers if n.tuned),
            "auxiliaries": len(self.auxiliaries),
            "rules": len(self._latest().rules),
            "groups": len(program.groups),
            "binaries": program.n_z,
            "columns": program.n_columns,
            "products": sum(p.size for p in program.products),
            "rows": program.matrix.shape[0],
            "nonzeros": program.matrix.nnz,
        }

    # -- exact questions ----------------------------------------------------------------------------------------

    def sample(self, n: int = 1, seed: int | np.random.Generator = 0) -> list[Configuration]:
        """n legal, well-spread configurations.

        Raises:
            InfeasibleSpaceError: the space is empty; the message names the rules in conflict.
            SpaceError: n is negative.
        """
        if n < 0:
            raise SpaceError(f"the number of samples must not be negative, got {n}")
        rng = seed if isinstance(seed, np.random.Generator) else np.random.default_rng(seed)
        settings = SolverSettings(time_limit=QUESTION_SECONDS, gap=0.05)
        samples = sample_levels(self.oracle(), n, settings, rng)
        if n and not samples:
            told(self.oracle().last, settings)
            raise InfeasibleSpaceError(self.why_empty())
        units = latin_hypercube(max(1, n), sum(x.tuned for x in self.numbers), rng)
        return [self._finish(s.levels, s.point, units[k], rng) for k, s in enumerate(samples)]

    def why_empty(self, solver: str | Backend = "auto") -> str:
        """Why the space is empty, or that it is not; see :meth:`mipcash.Space.explain`."""
        raise NotImplementedError

    @staticmethod
    def _units(configs: Sequence[Configuration], tuned: Sequence[Number]) -> np.ndarray[Any, Any]:
        values = [[x.domain.to_unit(c[x.label]) if x.label in c else np.nan for x in tuned] for c in configs]
        return np.array(values, dtype=float).reshape(len(configs), len(tuned))

    # -- points to configurations -------------------------------------------------------------------------------

    def configuration(
        self, point: Point, numbers: Mapping[str, float] | None = None, rng: np.random.Generator | None = None
    ) -> Configuration:
        """Decode a point; numbers that no rule mentions come from ``numbers``, else the middle of their range.

        Raises:
            SolverError: the decoded configuration breaks a rule (a defect, reported loudly instead of proposed).
        """
        program, given = self._latest().program, dict(numbers or {})
        values: dict[str, float] = {}
        columns = {n.label: n.column for n in program.numbers}
        z = program.one_hot(point.levels)
        for number in self.numbers:
            if not number.tuned or not all(bool(c.holds(z)) for c in program.conditions.get(number.label, ())):
                continue
            if number.label in given:
                values[number.label] = given[number.label]
            elif number.label in columns:
                values[number.label] = float(point.columns[columns[number.label]])
            else:
                values[number.label] = number.domain.from_unit(0.5 if rng is None else rng.random())
        return self._decoded(point, values)

    def _decoded(self, point: Point, values: dict[str, float], legal: LegalNumbers | None = None) -> Configuration:
        """A configuration of levels and numbers, cleaned and checked."""
        program = self._latest().program
        reals = {n.label: n.domain for n in self.numbers if isinstance(n.domain, Real)}
        bound = {n.label for n in program.numbers}
        values = {l: reals[l].snapped(v) if l in reals and l not in bound else v for l, v in values.items()}
        if program.numbers:
            legal = self.legal_numbers(point) if legal is None else legal
            if legal is not None and legal.labels:
                clean = legal.clean(np.array([values[label] for label in legal.labels]))
                if clean is not None:
                    values = {**values, **dict(zip(legal.labels, clean.tolist(), strict=True))}
        return self.checked(program.decode(point.levels, values))

    def checked(self, config: Configuration) -> Configuration:
        """The configuration itself, if it is legal.

        Raises:
            SolverError: it is not.
        """
        violations = self._violations(config, self._latest())
        if violations:
            raise SolverError(
                "a solver's answer breaks the rules as declared: " + "; ".join(map(str, violations)) + f" in {config}. "
                "This is a defect of mipcash or of the solver's tolerances; please report it with the space"
            )
        return config

    def require(self, config: Configuration) -> Configuration:
        """The configuration itself, if it is legal.

        Raises:
            ConfigurationError: it is not; the message lists every problem.
        """
        violations = self.validate(config)
        if violations:
            raise ConfigurationError("illegal configuration: " + "; ".join(map(str, violations)))
        return config

    def legal_numbers(self, point: Point) -> LegalNumbers | None:
        """What the rules leave for the numbers in them at a point's levels; None where only the program can tell."""
        program, z = self._latest().program, self._latest().program.one_hot(point.levels)
        assignment: dict[int, float] = {}
        for spec, start in zip(self.groups, program.starts, strict=True):
            for l, variable in enumerate(spec.variables):
                assignment[id(variable)] = z[start + l]
        active = []
        columns = {n.label for n in program.numbers}
        for number in self.numbers:
            on = all(bool(c.holds(z)) for c in program.conditions.get(number.label, ()))
            if number.tuned and on and number.label in columns:
                active.append(number)
            elif number.tuned:
                assignment[id(number.variable)] = 0.0
        for link in self.links:
            if link.value.ids <= assignment.keys():
                assignment[id(link.variable)] = link.value.value(assignment)
        for label in self.conditions:
            block = self.model.parameters[label]
            if block.component("conjunction") is not None:
                assignment[id(block.on)] = float(all(bool(c.holds(z)) for c in program.conditions[label]))
        hint = {i: float(point.columns[c]) for i, c in self._latest().columns.items()}
        return union_of(list(number_rules(self._latest().rules, assignment, active, hint)))

    def _finish(
        self, levels: Indices, point: Point | None, units: Any, rng: np.random.Generator, before: Any = None
    ) -> Configuration:
        """A sampled configuration: levels, numbers drawn over their legal set where rules bind them, stratified ones elsewhere.

        Args:
            before: unit values of earlier configurations, (t, D): of some draws, the farthest from them is taken.
        """
        tuned = [n for n in self.numbers if n.tuned]
        numbers = {n.label: float(n.domain.from_unit(u)) for n, u in zip(tuned, units, strict=True)}
        if point is None:
            return self.checked(self._latest().program.decode(levels, self._only_active(levels, numbers)))
        for bound in self._latest().program.numbers:
            numbers[bound.label] = float(point.columns[bound.column])
        legal = self.legal_numbers(point)
        if legal is not None and legal.labels:
            start = legal.clean(np.array([numbers[label] for label in legal.labels]))
            if start is not None:
                drawn = [legal.spread(start, WALK_STEPS, rng) for _ in range(1 if before is None else DRAWS)]
                position = {n.label: d for d, n in enumerate(tuned)}
                at = [position[label] for label in legal.labels]
                scaled = [[tuned[d].domain.to_unit(v) for d, v in zip(at, x, strict=True)] for x in drawn]
                chosen = 0 if before is None else farthest(np.array(scaled), before[:, at])
                numbers.update(zip(legal.labels, drawn[chosen].tolist(), strict=True))
        return self._decoded(point, self._only_active(levels, numbers), legal)

    def _only_active(self, levels: Indices, numbers: Mapping[str, float]) -> dict[str, float]:
        z = self._latest().program.one_hot(levels)
        conditions = self._latest().program.conditions
        return {l: v for l, v in numbers.items() if all(bool(c.holds(z)) for c in conditions.get(l, ()))}
