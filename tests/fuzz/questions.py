"""Questions about a space, and the comparison of each answer with brute force.

A value may be off by the relative gap of 1e-6 that ``Space.optimum`` uses. If rules bind reals, it may also be off by
the effect of moving every rule by 1e-9 of its largest coefficient. A bound may be off by a further 1e-6 of the largest
coefficient. There are no other tolerances.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np

import mipcash as mc
from mipcash.errors import InfeasibleSpaceError
from tests.fuzz.clean import check_numbers
from tests.fuzz.described import Active, Drawn, Relation, Rule, Term, Value, build, expression
from tests.fuzz.extents import check_bounds, check_bounds_on_a_grid
from tests.fuzz.kinds import Case
from tests.fuzz.record import SOLVERS, Record
from tests.fuzz.shapes import distinct, linear, product, real_product, real_sum
from tests.fuzz.sketch import Sketch
from tests.fuzz.table import BROKEN_FROM, Body, Config, Table
from tests.fuzz.truth import ALLOWED, Truth

ABSOLUTE_GAP = 1e-9
"""Documented absolute gap: a difference between value and bound, or between two values, that counts as zero."""
GAP = 1.01e-6
COARSE = 1e8
"""Ratio of ranges from which a solver's tolerances may not suffice; the solver must then report this."""
WIDE = 1e6
"""Range of an objective's term over a number without levels from which its optimum is proven only to 1e-9 of that range."""
CONFIGS_ASKED = 24
"""Largest number of configurations whose legality is asked."""
ASKED = 5
"""Number of samples."""


@dataclass(frozen=True)
class Interview:
    """A built space, and the data to ask questions and compare answers."""

    case: Case
    space: mc.Space
    record: Record
    rng: np.random.Generator
    names: dict[str, Any] = field(default_factory=dict)
    """Variables of the program that declares the space."""

    @property
    def truth(self) -> Truth:
        return self.case.truth

    @property
    def drawn(self) -> Drawn:
        return self.case.drawn

    @property
    def nothing(self) -> type[Exception] | None:
        """Exception that a question for configurations raises; on a grid without legal points it may raise it."""
        return InfeasibleSpaceError if self.truth.empty else None

    @property
    def edge(self) -> Fraction:
        """Relative violation from which every rule is clearly violated."""
        bodies = [b for j in self.truth.judged for relations in j.alternatives for b in relations]
        return max((b.edge for b in bodies), default=BROKEN_FROM)

    def ask(self, question: str, solver: str, call: Callable[..., Any], *given: Any, **options: Any) -> Any:
        """Ask a question with the ``solver`` argument of this name in ``SOLVERS``."""
        raises = options.pop("raises", None)
        argument = SOLVERS[solver]
        named = {} if argument is None else {"solver": argument}
        return self.record.ask(
            question, solver, lambda: call(*given, **named, **options), raises, not self.case.gridded
        )

    def illegal(self, config: Config) -> str:
        """Return the reason why a configuration is illegal by brute force; "" if it is legal."""
        if outside := self._outside(config):
            return outside
        found = self.at(config).violation(config)
        if found is None:
            return f"no configuration of the domains and conditions: {config}"
        return f"illegal by {float(found):.3g} of the largest coefficient: {config}" if found > ALLOWED else ""

    def at(self, config: Config) -> Truth:
        """Return the truth with parameters on a grid fixed to their values in a configuration."""
        if not self.case.gridded:
            return self.truth
        drawn = self.truth.table.drawn
        held = {n: (config.get(n, self.drawn[n].low),) for n in self.case.gridded}
        parameters = tuple(replace(p, values=held.get(p.name, p.values)) for p in drawn.parameters)
        found = Truth.free(Table(replace(drawn, parameters=parameters, parts=())))
        for j in self.truth.judged:
            found = found.plus(j.part)
        return found

    def _outside(self, config: Config) -> str:
        """Return a message if the value of a parameter on a grid is outside its domain, else ""."""
        for p in [self.drawn[n] for n in self.case.gridded if n in config]:
            value, real = config[p.name], p.kind == "real"
            slack = 1e-9 * max(abs(p.low), abs(p.high)) if real else 0.0
            listed = type(value) is float if real else type(value) is int and value in p.values
            if not listed or not p.low - slack <= value <= p.high + slack:
                return f"{p.name!r} = {value!r} is outside its domain"
        return ""


def begin(case: Case, record: Record, seed: int) -> Interview | None:
    """Build the space; return None if that fails, which is a disagreement."""
    rng = np.random.default_rng([seed, case.k, 1])
    sizes = [
        size for p in case.drawn.parameters if p.numeric for size in (p.high - p.low, abs(p.low), abs(p.high)) if size
    ]
    record.coarse = max(sizes, default=1.0) >= COARSE * min([1.0, *sizes])
    names: dict[str, Any] = {}
    space = record.ask("build", "default", lambda: build(case.drawn, names))
    return None if space is None else Interview(case, space, record, rng, names)


def interview(asked: Interview, solvers: Sequence[str]) -> None:
    """Ask every question except runs."""
    objectives = [objective(asked.case, asked.rng, quadratic=False)]
    if asked.rng.random() < 0.4:
        objectives.append(objective(asked.case, asked.rng, quadratic=True))
    for solver in solvers:
        for terms in objectives:
            if terms:
                check_optimum(asked, solver, terms)
        check_conflict(asked, solver)
        found = asked.ask("bounds", solver, asked.space.bounds, raises=asked.nothing)
        if found is not None and asked.case.gridded:
            check_bounds_on_a_grid(asked.drawn, asked.truth, asked.record, solver, found)
        elif found is not None:
            check_bounds(asked.truth, asked.record, solver, found)
    check_explain(asked)
    check_count(asked)
    check_legality(asked)
    check_sample(asked)
    check_nearest(asked)
    if asked.drawn.origin == "configspace":
        check_configspace(asked)


def objective(case: Case, rng: np.random.Generator, quadratic: bool) -> tuple[Term, ...]:
    """Return a random expression over the parameters; a product has at most one real or wide integer."""
    drawn = case.drawn
    sketch = Sketch(rng, drawn.expand_limit, parameters=list(drawn.parameters), truth=case.truth)
    shapes = [product] if quadratic else [linear]
    if drawn.reals:
        shapes += [real_product] if quadratic else [real_sum, real_sum]
    numbers = {p.name for p in drawn.parameters if drawn.without_levels(p)}
    for _ in range(10):
        terms = distinct(sketch.one(shapes)(sketch))
        within = all(sum(isinstance(f, (Value, Active)) and f.name in numbers for f in t.factors) < 2 for t in terms)
        if terms and within:
            return terms
    return ()


# -- optimum --------------------------------------------------------------------------------------------------------


def check_optimum(asked: Interview, solver: str, terms: tuple[Term, ...]) -> None:
    """Check status, value, bound and configuration of the minimum and the maximum."""
    wanted = expression(asked.drawn, terms, asked.space)
    ends = (Fraction(0), Fraction(0)) if asked.truth.empty else asked.truth.extremes(terms)
    for sense, end in zip(("min", "max"), ends, strict=True):
        solution = asked.ask(f"optimum {sense}", solver, asked.space.optimum, wanted, sense)
        if solution is None:
            continue
        said = f"{solution.status}, value {solution.value!r}, bound {solution.bound!r} at {solution.config}"
        status = "infeasible" if asked.truth.empty else "optimal"
        admitted = solver != "default" or asked.record.coarse or _wide(asked, terms)
        problem = "" if solution.status == status else f"{status}, {float(end)!r}"
        if asked.case.gridded:
            asked.record.unproven[solver] += solution.status not in ("optimal", "infeasible")
            problem = _judge_on_a_grid(asked, terms, sense, end, solution)
        elif admitted and solution.status == "feasible" and not asked.truth.empty:
            asked.record.unproven[solver] += 1
            problem = _judge_unproven(asked, terms, sense, end, solution)
        elif not problem and not asked.truth.empty:
            problem = _judge_solution(asked, terms, sense, end, solution)
        if problem:
            asked.record.wrong(f"optimum {sense}", solver, problem, said)


def _wide(asked: Interview, terms: tuple[Term, ...]) -> bool:
    """Return True if a term varies by more than ``WIDE`` over a number without levels."""
    # an inactive number counts as 0
    numbers = [p for p in asked.drawn.parameters if asked.drawn.without_levels(p)]
    widths = {p.name: max(p.high, 0.0) - min(p.low, 0.0) for p in numbers}
    ranges = [
        math.prod([widths.get(getattr(f, "name", ""), 1.0) for f in t.factors], start=abs(t.coefficient)) for t in terms
    ]
    return max(ranges, default=0.0) > WIDE


def _judge_configuration(asked: Interview, terms: tuple[Term, ...], solution: Any) -> str:
    """Return an error in the configuration of a solution or in its value, else ""."""
    if reason := asked.illegal(solution.config):
        return reason
    at = float(value_at(asked.at(solution.config), terms, solution.config))
    slack = GAP * abs(at) + 1e-9 * max(abs(t.coefficient) for t in terms) + ABSOLUTE_GAP
    return "" if abs(at - solution.value) <= slack else f"the value at the configuration, {at!r}"


def _judge_solution(asked: Interview, terms: tuple[Term, ...], sense: str, end: Fraction, solution: Any) -> str:
    """Return an error in a proven solution, else ""."""
    best, sign = float(end), 1.0 if sense == "min" else -1.0
    size = max(abs(t.coefficient) for t in terms)
    slack = GAP * max(abs(best), abs(solution.value)) + 1e-9 * size + ABSOLUTE_GAP
    if problem := _judge_configuration(asked, terms, solution):
        return problem
    loosened = sign * best
    if asked.truth.cells and sign * solution.value < sign * best - slack:
        loosened = min(loosened, sign * float(asked.truth.extremes(terms, ALLOWED)[0 if sense == "min" else 1]))
    if not loosened - slack <= sign * solution.value <= sign * best + slack:
        return f"value {best!r}"
    if sign * solution.bound > min(sign * best + _beside(asked, best, size), sign * solution.value + 1e-12):
        return f"a bound that holds for {best!r}"
    return "a tight bound" if sign * (solution.value - solution.bound) > slack + GAP * size else ""


def _judge_unproven(asked: Interview, terms: tuple[Term, ...], sense: str, end: Fraction, solution: Any) -> str:
    """Return an error in a solution without proof: its legality, its value, or the side of its bound."""
    best, sign = float(end), 1.0 if sense == "min" else -1.0
    size = max(abs(t.coefficient) for t in terms)
    if problem := _judge_configuration(asked, terms, solution):
        return problem
    right = sign * solution.bound <= sign * best + _beside(asked, best, size)
    return "" if right else f"a bound that holds for {best!r}"


def _judge_on_a_grid(asked: Interview, terms: tuple[Term, ...], sense: str, end: Fraction, solution: Any) -> str:
    """Return an error in a solution if only a grid is known: a grid point beats its optimum or its bound."""
    best, sign = float(end), 1.0 if sense == "min" else -1.0
    size = max(abs(t.coefficient) for t in terms)
    if solution.config is not None and (problem := _judge_configuration(asked, terms, solution)):
        return problem
    if asked.truth.empty:
        return ""
    if solution.status == "infeasible":
        return "not empty: a point of the grid is legal"
    reached = sign * best + GAP * abs(best) + 1e-9 * size + ABSOLUTE_GAP
    if solution.status == "optimal" and sign * solution.value > reached:
        return f"{best!r} at a point of the grid, or better"
    return f"a bound that holds for {best!r}" if sign * solution.bound > reached else ""


def _beside(asked: Interview, best: float, size: float) -> float:
    """Return how far a bound may pass the optimum: by rounding and, with reals, by the tolerance of rules."""
    return (1e-8 if asked.truth.cells else 1e-9) * (abs(best) + size) + ABSOLUTE_GAP


def value_at(truth: Truth, terms: tuple[Term, ...], config: Config) -> Fraction:
    """Return a sum of terms (without auxiliary variables) at a configuration."""
    c = truth.table.find(config)
    assert c is not None
    constant, slopes = Body(truth.table, Relation(terms, "<=", 0.0)).exact(c * truth.table.repeats)
    return sum((s * Fraction(config[n]) for n, s in slopes.items()), constant)


# -- emptiness ------------------------------------------------------------------------------------------------------


def check_conflict(asked: Interview, solver: str) -> None:
    """Check that a conflict is an irreducible infeasible set of rules, or empty if the space is not empty."""
    found = asked.ask("conflict", solver, asked.space.conflict)
    if found is None:
        return
    wrong = asked.record.wrong
    if not asked.truth.empty:
        if found.rules or found.relaxations:
            wrong("conflict", solver, "none: the space is not empty", found)
        return
    if asked.case.gridded:
        return
    known = {j.part.name for j in asked.truth.judged if isinstance(j.part, Rule)}
    logic = {j.part.name for j in asked.truth.judged} - known
    named = set(found.rules) & known
    beyond = bool(set(found.rules) - known)
    rest = asked.truth.only(named | (logic if beyond else set()))
    if rest.knife:
        return
    if not rest.empty:
        wrong("conflict", solver, "rules that cannot hold together", found)
    if not beyond:
        for name in sorted(named):
            less = asked.truth.only(named - {name})
            if less.empty and not less.knife:
                wrong("conflict", solver, f"no conflict without {name!r}", found)
    check_relaxations(asked, solver, named, found.relaxations)


def check_relaxations(asked: Interview, solver: str, named: set[str], relaxations: Sequence[Any]) -> None:
    """Check, for each rule of the conflict, the least relaxation that makes the space non-empty."""
    if asked.drawn.reals:
        return
    said = {r.rule: float(r.by) for r in relaxations}
    # each rule may be violated by 1e-9 of its scale
    loose = 1e-9 * float(sum(b.scale for j in asked.truth.judged for bodies in j.alternatives for b in bodies))
    for name in sorted(named):
        if name in asked.space.rules and asked.space.rules[name].parts:
            continue  # a rule with logic has no single bound to relax
        least = asked.truth.relaxation(name)
        if least is None and name in said:
            asked.record.wrong("relaxation", solver, f"none for {name!r}", said)
        elif least is not None and (name not in said or abs(said[name] - least) > 1e-6 * least + loose):
            asked.record.wrong("relaxation", solver, f"{name!r} by {least!r}", said)


def check_explain(asked: Interview) -> None:
    """Check that the explanation is right about whether the space is empty."""
    text = asked.ask("explain", "default", asked.space.explain)
    if asked.case.gridded and asked.truth.empty:
        return
    if text is not None and ("is not empty" in text) == asked.truth.empty:
        asked.record.wrong("explain", "default", "empty" if asked.truth.empty else "not empty", text)


# -- configurations -------------------------------------------------------------------------------------------------


def check_count(asked: Interview) -> None:
    """Check the number of legal settings of parameters except reals and wide integers; a grid gives a lower bound."""
    found, drawn = asked.ask("count", "default", asked.space.count), asked.drawn
    least = asked.truth.settings([p.name for p in drawn.parameters if not drawn.without_levels(p)])
    if found is None:
        return
    few = found.exact and found.number < least
    if few if asked.case.gridded else (found.number, found.exact) != (least, True):
        asked.record.wrong("count", "default", least, found)


def random_config(asked: Interview, c: int) -> Config:
    """Return configuration c with random reals, some at an end of their range."""
    config = asked.truth.table.config(c)
    for p in asked.truth.table.active_reals(c):
        u = asked.rng.random()
        config[p.name] = p.low if u < 0.1 else p.high if u > 0.9 else float(asked.rng.uniform(p.low, p.high))
    return config


def check_legality(asked: Interview) -> None:
    """Check ``is_legal`` on random legal and illegal configurations."""
    legal = asked.truth.legal_configs
    order = asked.rng.permutation(len(legal))
    order = order[np.argsort(~legal[order], kind="stable")]
    half = CONFIGS_ASKED // 2
    chosen = order if len(order) <= CONFIGS_ASKED else [*order[:half], *order[-half:]]
    for c in chosen:
        config = random_config(asked, int(c))
        found = asked.at(config).violation(config)
        assert found is not None
        if Fraction(1, 10**11) < found < asked.edge:
            continue
        expected = found <= ALLOWED
        said = asked.ask("is_legal", "default", asked.space.is_legal, config)
        if said is not None and said != expected:
            asked.record.wrong("is_legal", "default", f"{expected} at {config}", said)


def check_sample(asked: Interview) -> None:
    """Check that samples are legal and that their numbers are clean."""
    found = asked.ask("sample", "default", asked.space.sample, ASKED, raises=asked.nothing)
    if found is None:
        return
    if len(found) != ASKED:
        asked.record.wrong("sample", "default", f"{ASKED} configurations", len(found))
    for config in found:
        if reason := asked.illegal(config):
            asked.record.wrong("sample", "default", "legal samples", reason)
        elif not asked.case.gridded:
            check_numbers(asked.truth, asked.record, "sample", config)


def check_nearest(asked: Interview) -> None:
    """Check that ``nearest`` returns a legal configuration for an illegal one and for an unknown parameter."""
    illegal = np.flatnonzero(~asked.truth.legal_configs)
    given: list[Config] = [{"stranger": 1}]
    if len(illegal):
        given.append(random_config(asked, int(asked.rng.choice(illegal))))
    for config in given:
        found = asked.ask("nearest", "default", asked.space.nearest, config, raises=asked.nothing)
        if found is None:
            continue
        if reason := asked.illegal(found):
            asked.record.wrong("nearest", "default", f"a legal one for {config}", reason)
        elif not asked.case.gridded:
            check_numbers(asked.truth, asked.record, "nearest", found)


def check_configspace(asked: Interview) -> None:
    """Check that ConfigSpace accepts the same configurations, except for rules that were added after the import."""
    import ConfigSpace

    theirs, truth = asked.names["theirs"], asked.truth
    imported = truth.only({j.part.name for j in truth.judged if not isinstance(j.part, Rule)})
    given = [random_config(asked, c) for c in range(truth.table.configs)]
    given += [{n: v for n, v in config.items() if n != dropped} for config in given[:5] for dropped in config]
    given += [config | {p.name: p.values[0]} for config in given[:5] for p in asked.drawn.parameters if p.values]
    given += [
        {n: getattr(v, "item", lambda v=v: v)() for n, v in c.items()} for c in theirs.sample_configuration(ASKED)
    ]
    for config in given:
        found = imported.violation(config)
        try:
            ConfigSpace.Configuration(theirs, values=config).check_valid_configuration()
            valid = True
        except ValueError:
            valid = False
        if valid != (found is not None and found <= ALLOWED):
            asked.record.wrong("ConfigSpace", "-", f"valid: {valid}", config)
