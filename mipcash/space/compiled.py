"""A compiled space: its program and its rules at the time when the live model was last inspected.

Use ``compiled`` to compile a space. ``mipcash.space.domain.Domain`` adds a solver and the unit scale.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Protocol

import numpy as np

from mipcash.backends.registry import DEFAULT, make_backend
from mipcash.backends.task import Backend
from mipcash.backends.timed import timed
from mipcash.deadline import NEVER, Deadline
from mipcash.errors import SolverError
from mipcash.modelling.declaration import Declaration
from mipcash.modelling.declared import Number
from mipcash.modelling.domains import Configuration, Value
from mipcash.modelling.live.components import check_live_model
from mipcash.modelling.rules import Rule
from mipcash.modelling.validation import Slot, Violation, check, slots
from mipcash.program.algebra import AlgebraicModel, algebraic_model
from mipcash.program.compile import compile_space
from mipcash.program.forms import Indices, Vector
from mipcash.program.program import BinaryProgram
from mipcash.program.recent import Recent
from mipcash.space.conflict import QUESTION as QUESTION
from mipcash.space.conflict import conflicting, decided, emptiness
from mipcash.space.forced import Forced, warn_of_forced
from mipcash.space.live_model import active_rules, signature
from mipcash.space.minimiser import Minimiser
from mipcash.space.numbers.assembly import number_rules
from mipcash.space.numbers.legal_numbers import LegalNumbers
from mipcash.space.numbers.part import NumberRules

KEPT = 256
"""Number of level vectors whose legal numerical values are cached."""
COMPLETED = 1024
"""Number of configurations that are remembered as legal or not after the solver was asked."""
DECIDING = 0.5
"""Least number of seconds that a solver gets to decide about one configuration. It needs milliseconds, and a point that was
already found should not be lost to the deadline."""


@dataclass(frozen=True, eq=False)
class CompiledSpace:
    """A space as it was when it was compiled.

    Attributes:
        declaration: the declaration at that time.
        program: the program for solvers.
        rules: the rules that plain Python checks: active declared rules and constraints of the live model.
        algebra: the rows behind the program. It keeps alive the variables that exist only in the transformed model.
        fixed: parameters that a sub-space fixes at a value (``mipcash.space.domain``).
        deadline: time until which the solver may be used.
    """

    declaration: Declaration
    program: BinaryProgram
    rules: tuple[Rule, ...]
    algebra: AlgebraicModel
    fixed: Mapping[str, Value] = field(default_factory=dict)
    deadline: Deadline = NEVER

    @property
    def name(self) -> str:
        """Title of the space."""
        return self.declaration.name

    def held(self, before: str = "") -> str:
        """Return the fixed parameters as text after another text; empty if there are none."""
        return before + ", ".join(f"{label} = {value!r}" for label, value in self.fixed.items()) if self.fixed else ""

    @cached_property
    def tuned(self) -> tuple[Number, ...]:
        """The tuned numerical parameters without one-hot levels, in the order of declaration."""
        return tuple(n for n in self.declaration.numbers if n.tuned)

    @cached_property
    def in_rules(self) -> frozenset[str]:
        """Labels of the numerical parameters that have columns in the program."""
        return frozenset(n.label for n in self.program.numbers)

    @cached_property
    def columns(self) -> Mapping[int, int]:
        """Map from the id of a variable in rules to its column, for variables with a column of their own."""
        variables = {i: v for r in self.rules for q in (r.body, *r.when) for i, v in q.variables.items()}
        named = {v.name: i for i, v in variables.items()}
        return {named[name]: c for name, c in self.program.variable_columns.items() if name in named}

    @cached_property
    def _slots(self) -> tuple[Slot, ...]:
        return slots(self.declaration)

    @cached_property
    def backend(self) -> Backend:
        """The default solver."""
        return make_backend(DEFAULT)

    def until(self, deadline: Deadline) -> CompiledSpace:
        """Return the same space with a deadline for its solver."""
        twin = replace(self, deadline=deadline)
        _ = self._slots  # cached in the original, since the copy lives for one proposal only
        if self.in_rules:
            _ = self._auxiliaries
        # cached values remain valid
        twin.__dict__.update({k: v for k, v in self.__dict__.items() if k not in twin.__dict__})
        twin.__dict__["backend"] = timed(self.backend, deadline)
        return twin

    def wider(self, labels: Collection[str]) -> CompiledSpace:
        """Return the same space with columns for these numerical parameters too, even if no rule mentions them."""
        return replace(self, program=compile_space(self.declaration, labels, self.algebra))

    # -- legality -----------------------------------------------------------------------------------------------

    def violations(self, config: Configuration) -> list[Violation]:
        """Return every reason why a configuration is illegal; see ``mipcash.Space.validate``.

        Raises:
            SolverError: the decision needs the solver, and it reached its limit.
        """
        verdict = check(self.declaration, config, self.rules, self._slots, least=True)
        violations = list(verdict.violations)
        if not violations and verdict.undecided and not self._is_completed(config):
            violations.append(self._contradicted(config, verdict.undecided))
        return violations

    def is_legal(self, config: Configuration) -> bool:
        """Return True if there are no ``violations``; their rules, which take the solver long to find, are not searched for."""
        verdict = check(self.declaration, config, self.rules, self._slots)
        return not verdict.violations and (not verdict.undecided or self._is_completed(config))

    def _is_completed(self, config: Configuration) -> bool:
        """Return True if the solver finds auxiliary values with which a configuration satisfies all rules.

        Answers are cached, since searches come to the same configurations again and again.
        """
        kept: Recent[bool] = self.program.derived.setdefault("completed", Recent(COMPLETED))

        def solved() -> bool:
            backend = timed(self.backend, self.deadline.later(DECIDING))
            return decided(emptiness(self.program, backend, self._held_at(config))).columns is not None

        return kept.get(repr(sorted(config.items())), solved)

    def _held_at(self, config: Configuration) -> dict[int, float]:
        """Return the columns that a configuration fixes, and their values."""
        program = self.program
        held = dict(zip((program.starts + program.encode(config)).tolist(), [1.0] * len(program.groups), strict=True))
        for number in program.numbers:
            if number.label in config:
                held[number.column] = float(config[number.label])
        return held

    def _contradicted(self, config: Configuration, undecided: Sequence[str]) -> Violation:
        """Return the violation of an irreducible conflict of rules that a configuration does not satisfy."""
        backend, culprits = timed(self.backend, self.deadline.later(DECIDING)), list[str]()
        with suppress(SolverError):  # the configuration is proven to be infeasible in any case
            culprits += conflicting(self.program, backend, self._held_at(config))
        if not culprits:
            culprits = list(undecided) or ["the structure of the space"]
        names = ", ".join(map(repr, culprits))
        return Violation(
            culprits[0], f"{'rule' if len(culprits) == 1 else 'rules'} {names} cannot hold for this configuration"
        )

    def checked(self, config: Configuration) -> Configuration:
        """Return the configuration if it is legal.

        Raises:
            SolverError: the configuration is illegal.
        """
        violations = self.violations(config)
        if violations:
            raise SolverError(
                "a solver's answer violates the rules as declared: "
                + "; ".join(map(str, violations))
                + f" in {config}. "
                "This is a defect of mipcash or of the solver's tolerances; please report it with the space"
            )
        return config

    # -- levels and columns to configurations -------------------------------------------------------------------

    def configuration(
        self, levels: Indices, columns: Vector, numbers: Mapping[str, float] | None = None
    ) -> Configuration:
        """Return the configuration of levels, (G,), and base columns, (n,), completed and checked.

        Args:
            numbers: label -> natural value. Numerical parameters not given take their value from the columns if they occur in
                rules, otherwise from the middle of their range.

        Raises:
            SolverError: the configuration violates a rule. This is a defect, reported instead of a wrong proposal.
        """
        given, at = numbers or {}, {n.label: n.column for n in self.program.numbers}
        values: dict[str, float] = {}
        for number in self.tuned:
            label = number.label
            if label in given:
                values[label] = given[label]
            else:
                values[label] = float(columns[at[label]]) if label in at else number.domain.from_unit(0.5)
        return self.decoded(levels, columns, self.active(levels, values))

    def decoded(
        self, levels: Indices, columns: Vector, values: Mapping[str, float], legal: LegalNumbers | None = None
    ) -> Configuration:
        """Return the configuration of levels and of natural values of the active numerical parameters, cleaned and checked.

        Args:
            columns: base columns, shape (n,); nan where unknown.
            legal: the legal set of the numbers at these levels, if the caller has it.
        """
        reals = {n.label: n.domain for n in self.declaration.numbers if n.domain.step is None}
        free = reals.keys() - self.in_rules
        values = {l: reals[l].snapped(v) if l in free else v for l, v in values.items()}
        if self.program.numbers:
            legal = self.legal_numbers(levels, columns) if legal is None else legal
            if legal is not None and legal.labels:
                clean = legal.clean(np.array([values[label] for label in legal.labels]))
                if clean is not None:
                    values = {**values, **dict(zip(legal.labels, clean.tolist(), strict=True))}
        held = {label: float(self.fixed[label]) for label in self.fixed.keys() & values.keys()}
        return self.checked(self.program.decode(levels, {**values, **held}))

    def active(self, levels: Indices, values: Mapping[str, float]) -> dict[str, float]:
        """Return the entries of ``values`` whose numerical parameters are active at these levels."""
        z, conditions = self.program.one_hot(levels), self.program.conditions
        return {l: v for l, v in values.items() if all(bool(c.holds(z)) for c in conditions.get(l, ()))}

    def legal_numbers(self, levels: Indices, columns: Vector) -> LegalNumbers | None:
        """Return the legal set of the active numerical parameters in rules at these levels; None if only a solver can decide it.

        Args:
            columns: base columns, shape (n,). The values of auxiliary variables are used if there are too many to enumerate.
        """
        kept: Recent[LegalNumbers | None] = self.program.derived.setdefault("legal numbers", Recent(KEPT))
        # of the columns, only those of auxiliary variables matter: numerical parameters are free, or 0 if inactive
        key = (levels.tobytes(), columns[self._auxiliaries].tobytes())
        return kept.get(key, lambda: self._legal_numbers(levels, columns))

    @cached_property
    def _auxiliaries(self) -> Indices:
        """Columns of the variables in rules that are neither levels nor numerical parameters."""
        numbers = {c for n in self.program.numbers for c in (n.column, n.latent)}
        return np.array([c for c in self.columns.values() if c not in numbers], dtype=np.int64)

    def _legal_numbers(self, levels: Indices, columns: Vector) -> LegalNumbers | None:
        """Compute ``legal_numbers`` without the cache."""
        program, z = self.program, self.program.one_hot(levels)
        assignment: dict[int, float] = {}
        for spec, start in zip(self.declaration.groups, program.starts, strict=True):
            for l, variable in enumerate(spec.variables):
                assignment[id(variable)] = z[start + l]
        found = []
        for number in self.tuned:
            on = all(bool(c.holds(z)) for c in program.conditions.get(number.label, ()))
            if on and number.label in self.in_rules:
                found.append(number)
            else:
                assignment[id(number.variable)] = 0.0
        for link in self.declaration.links:
            if link.value.ids <= assignment.keys():
                assignment[id(link.variable)] = link.value.value(assignment)
        for label in self.declaration.conditions:
            block = self.declaration.model.parameters[label]
            if block.component("activity") is not None:
                assignment[id(block.on)] = float(all(bool(c.holds(z)) for c in program.conditions[label]))
        hint = {i: float(columns[c]) for i, c in self.columns.items()}
        # level vectors with equal rules on the numerical parameters share a part, with the results cached in it
        parts: Recent[NumberRules] = program.derived.setdefault("parts", Recent(KEPT))
        made = number_rules(self.rules, assignment, found, hint)
        return LegalNumbers(tuple(parts.shared(part.key, part) for part in made)) if made else None


class LiveSpace:
    """A declaration with its compiled space, which is compiled again when the live model changes."""

    def __init__(self, declaration: Declaration, warned: Iterable[Forced] = ()) -> None:
        self.declaration = declaration
        self.warned = set(warned)
        self._known: tuple[object, tuple[object, ...], CompiledSpace] | None = None
        self._minimisers: dict[str, Minimiser] = {}
        self._looked_at: BinaryProgram | None = None

    def now(self) -> CompiledSpace:
        """Return the space as it is now, compiled again if the live model has changed."""
        seen, held = signature(self.declaration)
        if self._known is None or self._known[0] != seen:
            check_live_model(
                self.declaration
            )  # refuses components that are not supported, and may write rules for others
            seen, held = signature(self.declaration)
            algebra = algebraic_model(self.declaration)
            rules = (*active_rules(self.declaration), *algebra.logic)
            program = compile_space(self.declaration, algebra=algebra)
            declared = self.declaration.copied()  # later declarations do not belong to this space
            # the expressions behind the identities in the signature are kept alive, so that no new object reuses an identity
            self._known = (seen, held, CompiledSpace(declared, program, rules, algebra))
        return self._known[2]

    def minimiser(self, solver: str | Backend = DEFAULT) -> Minimiser:
        """Return the minimiser of the space as it is now, with a solver; it is cached between calls."""
        space = self.now()
        program = space.program
        if self._looked_at is not program:
            self._looked_at = program
            warn_of_forced(space.declaration, space.rules, program, space.backend, self.warned)
        name = solver if isinstance(solver, str) else getattr(solver, "name", None)
        if name is None or isinstance(solver, type) or not (isinstance(solver, str) or hasattr(solver, "solve")):
            raise TypeError(f"solver must be a name such as 'auto' or 'highs', or a Backend; got {solver!r}")
        kept = self._minimisers.get(name)
        if kept is None or kept.program is not program or not (isinstance(solver, str) or kept.backend is solver):
            backend = make_backend(solver) if isinstance(solver, str) else solver
            kept = self._minimisers[name] = Minimiser(program, backend)
        return kept


class PublicSpace(Protocol):
    """A declared space (``mipcash.Space``)."""

    @property
    def _live(self) -> LiveSpace:
        """The space's declaration and compiled form."""


def declaration_of(space: PublicSpace) -> Declaration:
    """Return the declaration of a space: groups, numbers, conditions, and the parts of the live model."""
    return space._live.declaration


def compiled(space: PublicSpace) -> CompiledSpace:
    """Return a declared space compiled as it is now.

    Raises:
        SpaceError: nothing to tune, or a component of the live model is not supported.
        RuleError: a constraint of degree above two.
    """
    return space._live.now()


def minimiser_of(space: PublicSpace, solver: str | Backend = DEFAULT) -> Minimiser:
    """Return the minimiser of a declared space as it is now, with a solver.

    Raises:
        SolverError: the solver is not installed.
    """
    return space._live.minimiser(solver)
