"""The continuous step: legal numerical values at fixed levels, by descent or random walk.

Notation
    z (n_z,) binaries, fixed;   u (D,) numerical parameters on the unit scale;   f(z, .) a section of the function
    x (n_active,)    the active numerical parameters
    v (n_bound,)     natural values of the numerical parameters in rules, integers relaxed

If no rule contains an active numerical parameter, L-BFGS-B runs on the unit box from the current point and from random points. If
rules do, SLSQP runs under them from the current point alone, block by block if there are many numerical parameters. Its end point
is moved back towards the start until it is legal. Integers are rounded before a step is taken, so f never increases, and the reals
of an end to ``ENDS`` places of the unit scale. When the deadline of the domain passes, a descent ends at its current point.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain

import numpy as np
from scipy.optimize import minimize

from mipcash.deadline import Deadline
from mipcash.program.forms import Booleans, Indices, Vector
from mipcash.program.points import Point
from mipcash.program.unit_scale import INACTIVE, UnitScale
from mipcash.space.domain import Domain
from mipcash.space.numbers.part import NumberRules
from mipcash.surrogates.maximum import steady
from mipcash.surrogates.protocols import Section, Sectioned

ENDS = 9
"""Decimal places of reals on the unit scale at the end of a descent, unless the rules need more."""
BACKTRACKS = 25
ITERATIONS = 60
"""Iterations of SLSQP."""
MANY = 400
"""Number of rules above which SLSQP is given only the rules violated by its end points so far."""
TAKEN = 1
"""Violated rules added at a time, per number."""
TAKINGS = 8
"""Number of times that rules are added before the end point is moved back."""
BLOCK = 60
"""Numbers that SLSQP moves together. The time of its iterations grows with the cube of this number."""
WALK_STEPS = 6
"""Hit-and-run steps of ``ContinuousStep.perturbed``."""
SPREAD = 0.15
"""Standard deviation, on the unit scale, of the random steps in ``ContinuousStep.perturbed`` of numbers that are in no rule."""
NEARER = 3.0
"""Orders of magnitude by which a random move is shortened at most."""


class ContinuousStep:
    """Optimises or perturbs the numerical parameters of points.

    Args:
        domain: domain of the points.
        starts: random starts of L-BFGS-B besides the current point.
        tolerance: relative decrease of the function below which L-BFGS-B stops.
    """

    def __init__(self, domain: Domain, starts: int, tolerance: float) -> None:
        self.domain, self.scale = domain, domain.scale
        self.starts, self.tolerance = starts, tolerance
        self._held = {n.label: self.scale.place[n.label] for n in domain.program.numbers}

    def minimise(
        self,
        f: Sectioned,
        point: Point,
        rng: np.random.Generator,
        starts: int | None = None,
        tolerance: float | None = None,
        columns: Vector | None = None,
    ) -> Vector:
        """Minimise f(z, .) over the active numerical parameters under the rules that contain them.

        Args:
            point: legal.
            starts, tolerance: None for those of the constructor.
            columns: base columns of a solver's answer with these levels, shape (n,); None to compute them from the point.

        Returns:
            Legal unit values u at the same levels, (D,), never worse than those of ``point``.
        """
        z = point.one_hot(self.domain.program)
        active = np.flatnonzero(self.scale.active_at(self.domain.program, point.levels[None])[0] > 0)
        current = point.units.copy()
        current[np.setdiff1d(np.arange(len(current)), active)] = INACTIVE
        if not len(active) or self.domain.deadline.passed:
            return current
        section = f.section(z)
        if self._held:
            here = self._rules_at(point, columns)
            if here is not None and np.any(pinned := _pinned(here)):
                # equations of one number, as of a fidelity, are not left to SLSQP, which converges badly at them
                fixed = [self._held[here.labels[k]] for k in np.nonzero(here.linear[pinned])[1]]
                active, here = active[~np.isin(active, fixed)], here.part(np.flatnonzero(~pinned))
                if not len(active):
                    return current
            if here is not None and len(here.row_low):
                for block in _blocks(active, rng):
                    current = self._bound_step(section, _BoundNumbers(here, self.scale, current, block))
                return current
            # if only a solver can check the rules, the numerical parameters in rules keep the MIP's values
            if here is None:
                active = active[~np.isin(active, list(self._held.values()))]
                if not len(active):
                    return current
        random = rng.random((self.starts if starts is None else starts, len(active)))
        tolerance = self.tolerance if tolerance is None else tolerance
        return self._free_step(section, current, active, [current[active], *random], tolerance)

    def _rules_at(self, point: Point, columns: Vector | None = None) -> NumberRules | None:
        """Return the rules on the numerical parameters at the levels of a point; None if only the program can check them."""
        legal = self.domain.legal_numbers(point.levels, self.domain.columns(point) if columns is None else columns)
        if legal is None:
            return None
        return legal.part_at(self.natural(point.units, legal.labels))

    def repaired(self, f: Sectioned, point: Point, rng: np.random.Generator, tolerance: float) -> Vector | None:
        """Minimise f(z, .) from numerical values that may violate rules at these levels.

        Args:
            point: its levels satisfy the rules on levels alone.

        Returns:
            Unit values that satisfy the rules on numerical parameters, (D,); None if none are found.
        """
        legal = self.domain.legal_numbers(point.levels, self.domain.columns(point)) if self._held else None
        if self._held and legal is None:
            return None
        units = point.units.copy()
        if legal is not None and legal.labels:
            moved = legal.clean(self.natural(units, legal.labels))
            if moved is None:
                return None
            self.put(units, legal.labels, moved)
        return self.minimise(f, Point(point.levels, self.scale.rounded(units)), rng, 0, tolerance)

    def natural(self, units: Vector, labels: Sequence[str]) -> Vector:
        """Return the natural values of some numbers, in the order of their labels, from unit values, (D,)."""
        natural = self.scale.natural(units, labels)
        return np.array([natural[label] for label in labels])

    def put(self, units: Vector, labels: Sequence[str], natural: Vector) -> None:
        """Write natural values of some numbers into unit values, (D,)."""
        for label, value in zip(labels, natural.tolist(), strict=True):
            d = self._held[label]
            units[d] = self.scale.domains[d].to_unit(value)

    def perturbed(self, point: Point, rng: np.random.Generator) -> Vector:
        """Return perturbed legal unit values at the same levels, (D,).

        Numerical parameters in rules make a hit-and-run walk, the other ones a normal step.

        Every second move is shortened, by up to ``NEARER`` orders of magnitude.
        """
        share = 10.0 ** -rng.uniform(0.0, NEARER) if rng.random() < 0.5 else 1.0
        moved = np.clip(point.units + share * SPREAD * rng.normal(size=len(point.units)), 0.0, 1.0)
        held = list(self._held.values())
        moved[held] = point.units[held]
        rules = self.domain.legal_numbers(point.levels, self.domain.columns(point))
        if rules is not None and rules.labels:
            here = self.natural(point.units, rules.labels)
            walked = rules.walk(here, WALK_STEPS, rng)
            nearer = rules.clean(here + share * (walked - here)) if share < 1.0 else None
            self.put(moved, rules.labels, walked if nearer is None else nearer)
        return self.scale.rounded(moved)

    def beside(self, point: Point, rng: np.random.Generator) -> Vector | None:
        """Return unit values in another part of the legal set of the numerical parameters at the same levels, near the point's.

        Returns:
            Shape (D,); None if there is no other part.
        """
        rules = self.domain.legal_numbers(point.levels, self.domain.columns(point)) if self._held else None
        if rules is None or len(rules.parts) == 1:
            return None
        found, units = rules.beside(self.natural(point.units, rules.labels), rng), point.units.copy()
        if found is None:
            return None
        self.put(units, rules.labels, found)
        return self.scale.rounded(units)

    def _free_step(
        self, section: Section, current: Vector, active: Indices, starts: Sequence[Vector], tolerance: float
    ) -> Vector:
        """Return the best of ``current`` and of L-BFGS-B from several starts, (n_active,) each."""
        section = _remembered(section)
        best, best_value = current, section(self.scale.rounded(current))[0]
        for start in starts:
            if self.domain.deadline.passed:
                break
            found = minimize(
                _over_active(section, current, active, self.domain.deadline),
                start,
                jac=True,
                method="L-BFGS-B",
                bounds=[(0.0, 1.0)] * len(active),
                options={"ftol": tolerance},
            )
            trial = self.scale.rounded(_inserted(current, active, np.clip(found.x, 0.0, 1.0)), ENDS)
            value = section(trial)[0]
            if value < best_value:
                best, best_value = trial, value
        return best

    def _bound_step(self, section: Section, numbers: _BoundNumbers) -> Vector:
        """Return the end point of SLSQP under the rules, moved back towards the legal start until it is legal and not worse."""
        current, active = numbers.current, numbers.active
        start = current[active]
        deadline = self.domain.deadline
        few = len(numbers.rules.row_low) <= MANY
        end = _descended(section, numbers, deadline) if few else _under_few(section, numbers, deadline)
        value_at_start = section(current)[0]
        steps = (_inserted(current, active, start + 0.5**k * (end - start)) for k in range(BACKTRACKS))
        for trial in chain([self.scale.rounded(_inserted(current, active, end), ENDS)], map(self.scale.rounded, steps)):
            if numbers.legal(trial[active]) and section(trial)[0] <= value_at_start:
                return trial
        return current


def _pinned(rules: NumberRules) -> Booleans:
    """Return True for equations of a single number: (m,)."""
    return np.asarray(rules.equal & ~rules.curved & (np.count_nonzero(rules.linear, axis=1) == 1))


def _descended(section: Section, numbers: _BoundNumbers, deadline: Deadline) -> Vector:
    """Return the end point x of SLSQP under the rules, inside the unit box."""
    start, objective = numbers.current[numbers.active], _over_active(section, numbers.current, numbers.active, deadline)
    # the first step of SLSQP is as long as the gradient: where that leaves the box, most evaluations would shorten it
    steepest = max(1.0, float(np.abs(objective(start)[1]).max()))
    found = minimize(
        lambda x: tuple(part / steepest for part in objective(x)),
        start,
        jac=True,
        method="SLSQP",
        bounds=[(0.0, 1.0)] * len(start),
        constraints=numbers.constraints(),
        options={"maxiter": ITERATIONS},
    )
    return np.clip(found.x, 0.0, 1.0) if np.all(np.isfinite(found.x)) else start


def _under_few(section: Section, numbers: _BoundNumbers, deadline: Deadline) -> Vector:
    """Return the end point x of SLSQP under equations and curved rules, and further rules as they are violated, in rounds.

    The time of SLSQP grows with the square of the number of rules.
    """
    taken = numbers.rules.equal | numbers.rules.curved
    for _ in range(TAKINGS):
        end = _descended(section, numbers.under(np.flatnonzero(taken)), deadline)
        missed = np.where(taken, 0.0, numbers.missed(end))
        broken = np.flatnonzero(missed > 0.0)
        if not len(broken) or deadline.passed:
            break
        taken[broken[np.argsort(-missed[broken], kind="stable")][: TAKEN * len(end)]] = True
    return end


class _BoundNumbers:
    """The rules over the active numerical parameters of one point, as functions of x (see the module's notation).

    Args:
        rules: the rules on the numerical parameters.
        scale: scale of the numerical parameters.
        current: u, shape (D,).
        active: the numerical parameters that move, shape (n_active,).
    """

    def __init__(self, rules: NumberRules, scale: UnitScale, current: Vector, active: Indices) -> None:
        self.rules, self.scale, self.current, self.active = rules, scale, current, active
        self._bound = np.array([scale.place[label] for label in rules.labels], dtype=np.int64)
        position = {int(d): k for k, d in enumerate(active)}
        self._moving = np.array([k for k, d in enumerate(self._bound) if int(d) in position], dtype=np.int64)
        self._columns = [position[int(d)] for d in self._bound[self._moving]]

    def legal(self, x: Vector) -> bool:
        """Return True if the rules hold with integers rounded."""
        units = _inserted(self.current, self.active, x)[self._bound]
        natural = [self.scale.domains[d].from_unit(v) for d, v in zip(self._bound, units, strict=True)]
        return self.rules.legal(np.array(natural), tolerance=0.5)

    def under(self, rows: Indices) -> _BoundNumbers:
        """Return the same problem with only some of the rules."""
        return _BoundNumbers(self.rules.part(rows), self.scale, self.current, self.active)

    def missed(self, x: Vector) -> Vector:
        """Return the violation of each rule beyond its slack, relative to its largest coefficient: (m,); integers are relaxed."""
        rules, body = self.rules, self._body(x)
        missed = np.maximum(rules.row_low - body, body - rules.row_high) - rules.slack
        return np.asarray(missed / np.maximum(np.abs(rules.linear).max(axis=1, initial=0.0), 1e-300))

    def constraints(self) -> list[Mapping[str, object]]:
        """Return the rules in SLSQP's format: equations, then one-sided rows."""
        rules, equal, found = self.rules, self.rules.equal, list[Mapping[str, object]]()
        low, high = np.isfinite(rules.row_low) & ~equal, np.isfinite(rules.row_high) & ~equal

        def room(x: Vector) -> Vector:
            body = self._body(x)
            return np.concatenate([(body - rules.row_low)[low], (rules.row_high - body)[high]])

        def slopes(x: Vector) -> Vector:
            gradient = self._gradient(x)
            return np.concatenate([gradient[low], -gradient[high]])

        if np.any(equal):
            missed, slope = lambda x: (self._body(x) - rules.row_low)[equal], lambda x: self._gradient(x)[equal]
            found.append({"type": "eq", "fun": missed, "jac": slope})
        if np.any(low | high):
            found.append({"type": "ineq", "fun": room, "jac": slopes})
        return found

    def _body(self, x: Vector) -> Vector:
        return self.rules.body(self._relaxed(x)[0])

    def _relaxed(self, x: Vector) -> tuple[Vector, Vector]:
        """Return v and its derivatives with respect to the unit values: (n_bound,), (n_bound,)."""
        return self.scale.relaxed(self._bound, _inserted(self.current, self.active, x)[self._bound])

    def _gradient(self, x: Vector) -> Vector:
        """Return the derivatives of the rows with respect to x: (m, n_active)."""
        values, slopes = self._relaxed(x)
        jacobian = np.zeros((len(self.rules.row_low), len(self.active)))
        jacobian[:, self._columns] = (self.rules.gradient(values) * slopes)[:, self._moving]
        return jacobian


def _blocks(active: Indices, rng: np.random.Generator) -> list[Indices]:
    """Return the sets of numerical parameters that move together: one set, or random sets of at most BLOCK if there are more."""
    if len(active) <= BLOCK:
        return [active]
    return np.array_split(rng.permutation(active), -(-len(active) // BLOCK))


def _remembered(section: Section) -> Section:
    """Return a section that is evaluated once at each point, since SciPy and its callers ask for starts and ends again."""
    known: dict[bytes, tuple[float, Vector]] = {}

    def evaluated(u: Vector) -> tuple[float, Vector]:
        if (key := u.tobytes()) not in known:
            known[key] = section(u)
        return known[key]

    return evaluated


def _over_active(section: Section, current: Vector, active: Indices, deadline: Deadline) -> Section:
    """Return a section as a function of the active numerical parameters alone, constant after the deadline."""

    def objective(x: Vector) -> tuple[float, Vector]:
        value, gradient = section(_inserted(current, active, x))
        return value, gradient[active]

    return steady(objective, deadline)


def _inserted(current: Vector, active: Indices, x: Vector) -> Vector:
    """Return u with the active numerical parameters replaced by x: (D,)."""
    trial = current.copy()
    trial[active] = x
    return trial
