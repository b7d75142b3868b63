"""The public space: a declaration, what a solver makes of it, and the questions that only a solver answers."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from mipcash.backends.base import Backend, SolverSettings
from mipcash.backends.registry import make_backend
from mipcash.backends.solution import INFEASIBLE
from mipcash.errors import ConfigurationError, InfeasibleSpaceError, SolverError
from mipcash.modelling.domains import Configuration, Integer, Permutation, Real
from mipcash.modelling.rules import number_text
from mipcash.program.compile import compile_space
from mipcash.program.program import BinaryProgram
from mipcash.program.rewriting import without_margins
from mipcash.space import bounds as extent
from mipcash.space import conflict as explaining
from mipcash.space.bounds import Extent
from mipcash.space.compiled import QUESTION_SECONDS
from mipcash.space.conflict import Conflict
from mipcash.space.counting import Count, count
from mipcash.space.design import SpaceDesign
from mipcash.space.minimiser import Point


class Space(SpaceDesign):
    """A search space with rules.

    Declare it with :meth:`real`, :meth:`integer`, :meth:`ordinal`, :meth:`categorical`, :meth:`module`,
    :meth:`ordering`, :meth:`auxiliary` and :meth:`rule`; ``space.model`` is the live Pyomo model behind it.
    """

    def conflict(self, solver: str | Backend = "auto") -> Conflict:
        """The smallest conflict found among the named rules, and the least relaxations that resolve it.

        Returns:
            An empty conflict where the space is not empty.
        """
        program, backend, settings = self.program, self.oracle(solver).backend, self._limits()
        names = explaining.conflicting(program, backend, settings)
        relaxations = []
        listed = [rule.name for rule in self._latest().rules]
        logic = {rule.name for rule in self._latest().algebra.logic}
        for rule in self._latest().rules:
            # what several rows say together, or under a disjunct, has no one bound to move
            if rule.name in names and rule.name not in logic and listed.count(rule.name) == 1:
                try:
                    found = explaining.least_relaxation(program, rule, make_backend("auto"), settings)
                except SolverError:  # the conflict stands without it
                    continue
                relaxations += [] if found is None else [found]
        return Conflict(names, tuple(relaxations))

    def explain(self, solver: str | Backend = "auto") -> str:
        """Why the space is empty, or that it is not.

        An irreducible set of rules that cannot hold together (a deletion filter over the named rules), and for each of
        them the least change of its bound that alone makes the space non-empty.
        """
        answer = explaining.emptiness(self.program, self.oracle(solver).backend, self._limits())
        if answer.columns is not None:
            return f"space {self.name!r} is not empty"
        if answer.status != INFEASIBLE:
            return f"the solver could not tell within {QUESTION_SECONDS:.0f} s if space {self.name!r} is empty; try another"
        margin = self.program.margin
        if margin and not explaining.is_empty(
            without_margins(self.program), self.oracle(solver).backend, self._limits()
        ):
            kept = ", ".join(f"{rule!r} ({number_text(by)})" for rule, by in margin.items())
            return (
                f"space {self.name!r} may be empty: all that is left of it lies on the border of rules that multiply two reals, "
                f"which the program keeps within a margin: {kept}. Relax them by that much, or make one factor an integer or "
                "an ordinal"
            )
        found = self.conflict(solver)
        if not found.rules:
            return f"space {self.name!r} is empty: its conditions and domains contradict each other"
        listed = ", ".join(map(repr, found.rules))
        text = (
            f"space {self.name!r} is empty: {'rule' if len(found.rules) == 1 else 'rules'} {listed} cannot hold "
            f"{'within the domains' if len(found.rules) == 1 else 'together'}; relax or drop one of them"
        )
        if found.relaxations:
            text += ". The least that helps: " + "; or ".join(r.text for r in found.relaxations)
        return text

    def why_empty(self, solver: str | Backend = "auto") -> str:
        """See :meth:`explain`."""
        return self.explain(solver)

    def why_illegal(self, config: Configuration) -> str:
        """Everything that is wrong with a configuration, and the nearest legal one; "" where it is legal."""
        violations = self.validate(config)
        if not violations:
            return ""
        text = "; ".join(map(str, violations))
        try:
            mended = self.nearest(config)
        except InfeasibleSpaceError:
            return f"{text}. No configuration is legal: {self.explain()}"
        changes = [
            f"{name} = {mended[name]!r}" if name in mended else f"without {name}"
            for name in {**mended, **(config if isinstance(config, dict) else {})}
            if not (isinstance(config, dict) and name in config and name in mended and config[name] == mended[name])
        ]
        return f"{text}. The nearest legal configuration has {', '.join(changes)}"

    def count(self, limit: int = 10_000) -> Count:
        """How many legal discrete configurations there are: settings of everything but reals and wide integers.

        Independent parts of the space are counted apart and multiplied, so that the number may far exceed ``limit``;
        where legality needs the solver, configurations are enumerated one by one, up to ``limit``.
        """
        return count(self.oracle(), limit, self._limits())

    def bounds(self, solver: str | Backend = "auto") -> dict[str, Extent]:
        """The tightest extent of each parameter under the rules; parameters that can never be active are left out.

        Raises:
            InfeasibleSpaceError: the space is empty.
        """
        program, backend, settings = self.program, self.oracle(solver).backend, self._limits()
        if explaining.told(explaining.emptiness(program, backend, settings), settings).columns is None:
            raise InfeasibleSpaceError(self.explain(solver))
        if program.margin:
            program = without_margins(
                program
            )  # a legal value may lie where the margins of products of reals leave it out
        seen = extent.attainable(program, backend, settings)
        found: dict[str, Extent] = {}
        for label, parameter in self.parameters.items():
            groups = [g for g in program.groups if g.parameter == label]
            if isinstance(parameter.domain, Permutation):
                places = tuple(
                    (g.label[len(label) + 1 :], tuple(t for k, t in enumerate(g.values) if seen[g.start + k]))
                    for g in groups
                )
                found[label] = Extent(None, None, places, True)
            elif groups:
                group = groups[0]
                values = tuple(v for k, v in enumerate(group.values) if seen[group.start + k])
                ordered = group.kind in ("integer", "ordinal")
                if values:
                    always = not (group.conditional and seen[group.stop - 1])
                    found[label] = Extent(
                        values[0] if ordered else None, values[-1] if ordered else None, values, always
                    )
            else:
                number = self._number_extent(label, program, backend, settings)
                if number is not None:
                    found[label] = number
        return found

    def _number_extent(
        self, label: str, program: BinaryProgram, backend: Backend, settings: SolverSettings
    ) -> Extent | None:
        domain = self.parameters[label].domain
        if any(n.label == label for n in program.numbers):
            ends = extent.number_range(program, label, backend, settings)
            if ends is None:
                return None
            assert isinstance(domain, (Real, Integer))
            low, high = (
                domain.nearest(e) if isinstance(domain, Integer) else domain.canonical(_short(e)) for e in ends[:2]
            )
            low, high = min(low, high), max(low, high)
            return Extent(low, high, None, ends[2])
        if not extent.can_be_on(program, label, backend, settings):
            return None
        return Extent(domain.low, domain.high, None, extent.always_on(program, label, backend, settings))  # type: ignore[union-attr]

    def nearest(self, config: Configuration) -> Configuration:
        """The nearest legal configuration: itself if it is legal. Mends proposals that come from elsewhere.

        Unknown names are dropped, missing parameters filled in, values outside their domain moved into it. The distance adds 1
        per category, position in an order or activity that changes, of ordered values the share of the levels between, of
        numbers the share of their natural range.

        Raises:
            ConfigurationError: not a dict.
            InfeasibleSpaceError: the space is empty.
        """
        if not isinstance(config, dict):
            raise ConfigurationError(f"a configuration is a dict of parameter values, got {type(config).__name__}")
        if not self.validate(config):
            return dict(config)
        tuned = [x for x in self.numbers if x.tuned]
        program = compile_space(self, {x.label for x in tuned}, self._latest().algebra)
        switches = {x.label: self._switch(program, x.label) for x in tuned if x.label in self.conditions}
        answer = extent.nearest_point(program, config, make_backend("auto"), self._limits(), switches)
        if explaining.told(answer, self._limits()).columns is None:
            raise InfeasibleSpaceError(self.explain())
        assert answer.columns is not None
        levels, at = program.levels_of(answer.columns), {x.label: x.column for x in program.numbers}
        # helpers have other columns in the space's own program, which finds their values again
        point = Point(levels, np.full(self._latest().program.n, np.nan), answer)
        values = {l: float(answer.columns[c]) for l, c in at.items()}
        bound = {n.label for n in self._latest().program.numbers}
        values |= {x.label: x.domain.from_unit(0.5) for x in tuned if x.label not in bound and x.label not in config}
        return self._decoded(point, self._only_active(levels, values))

    def _switch(self, program: BinaryProgram, label: str) -> extent.Switch:
        """The activity of a conditional number over the columns of a program."""
        if len(self.conditions[label]) == 1:
            (only,) = program.conditions[label]
            return only.constant, only.columns, only.coefficients
        column = program.variable_columns[self._latest().algebra.image[id(self.model.parameters[label].on)].name]
        return 0.0, np.array([column]), np.ones(1)

    def to_lp(self, path: str | Path) -> Path:
        """Write the compiled program (no objective) in LP format, for any solver; returns the path."""
        return self._write(Path(path), ".lp")

    def to_mps(self, path: str | Path) -> Path:
        """Write the compiled program (no objective) in MPS format; returns the path."""
        return self._write(Path(path), ".mps")

    def _write(self, path: Path, suffix: str) -> Path:
        from mipcash.backends.highs import write_program

        target = path if path.suffix.lower() == suffix else path.with_name(path.name + suffix)
        names = [re.sub(r"[^A-Za-z0-9_]+", "_", name) for name in self.program.names]
        write_program(self.program, target, [f"{name}_{k}" for k, name in enumerate(names)])
        return target

    @staticmethod
    def _limits() -> SolverSettings:
        return SolverSettings(time_limit=QUESTION_SECONDS)


def _short(value: float) -> float:
    """A value without the last digits, which are rounding."""
    return float(f"{value:.14g}")
