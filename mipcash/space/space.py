"""The public space: declarations, and the questions that a solver answers about them."""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from copy import deepcopy
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
from pyomo.environ import ConcreteModel
from threadpoolctl import threadpool_limits

from mipcash.backends.registry import DEFAULT
from mipcash.backends.task import Backend, SolverSettings
from mipcash.deadline import Deadline
from mipcash.display import counted, listing, table
from mipcash.errors import SpaceError, UndecidedError, warn
from mipcash.modelling.declaration import EXPAND_LIMIT, Declaration
from mipcash.modelling.domains import Categorical, Configuration, Integer, Ordinal, ParameterDomain, Real, Value
from mipcash.modelling.expectations import NOTHING
from mipcash.modelling.handles import Choice, Module, Numeric, Ordering, Relation, When
from mipcash.modelling.live.adoption import adopt_model
from mipcash.modelling.live.components import relation_text, relations_of
from mipcash.modelling.parameters import (
    NumericParameter,
    Parameter,
)
from mipcash.modelling.portable import from_json
from mipcash.modelling.rules import Rule
from mipcash.modelling.validation import Violation
from mipcash.modelling.wording import shortened
from mipcash.space.bounds import Extent, extents
from mipcash.space.compiled import QUESTION, LiveSpace, compiled, minimiser_of
from mipcash.space.conflict import Conflict
from mipcash.space.counting import Count, count
from mipcash.space.exchange import ExchangeMixin, export
from mipcash.space.experiments import CRITERIA, D_OPTIMAL, candidates, selected
from mipcash.space.explanation import conflict_of, explained
from mipcash.space.nearest import nearest, why_illegal
from mipcash.space.optimum import optimum
from mipcash.space.sampling import sample
from mipcash.space.solution import Solution

UNIFORM = "uniform"
"""Criterion of independent uniform draws."""


class Space(ExchangeMixin):
    """A search space with rules (known constraints).

    Declare parameters with [`real`][mipcash.space.space.Space.real], [`integer`][mipcash.space.space.Space.integer],
    [`ordinal`][mipcash.space.space.Space.ordinal], [`categorical`][mipcash.space.space.Space.categorical],
    [`module`][mipcash.space.space.Space.module] and [`ordering`][mipcash.space.space.Space.ordering]. Declare auxiliary
    variables with [`auxiliary`][mipcash.space.space.Space.auxiliary] and rules with
    [`rule`][mipcash.space.space.Space.rule]. ``space["name"]`` is a declared parameter, and ``space.model`` is the live
    Pyomo model behind the space.

    Args:
        name: a title for messages and reports.
        expand_limit: largest number of values for which an integer, or a real with a step, is expanded into one-hot binaries. A
            parameter with more values stays one numerical variable; two values are always expanded.

    Raises:
        SpaceError: the name is no text.

    Examples:
        >>> import mipcash as mc
        >>> space = mc.Space("network")
        >>> layers = space.integer("layers", 1, 3)
        >>> width = space.ordinal("width", [16, 32, 64])
        >>> memory = space.rule("memory", layers * width <= 100)
        >>> space.is_legal({"layers": 3, "width": 64}), int(space.count())
        (False, 7)
    """

    def __init__(self, name: str = "space", *, expand_limit: int = EXPAND_LIMIT) -> None:
        if not isinstance(name, str):
            raise SpaceError(f"a space's name is a text for messages and reports, got {name!r}")
        self._declaration = Declaration(name, expand_limit=expand_limit)
        self._live = LiveSpace(self._declaration)

    @classmethod
    def from_pyomo(cls, model: Any, *, auxiliary: Iterable[str] = (), expand_limit: int | None = None) -> Space:
        """Return a space whose parameters are the variables of a Pyomo model and whose rules are its constraints.

        The model is used live: later changes take effect. Objectives in it are ignored (the black box is the objective).

        Args:
            model: a ``ConcreteModel``; every variable bounded.
            auxiliary: names of auxiliary variables: in constraints, absent from configurations.
            expand_limit: as of [`Space`][mipcash.space.space.Space]; None: the default.

        Returns:
            The space, named as the model.

        Raises:
            SpaceError: ``model`` is no ``ConcreteModel``, has a component or a variable that is not supported, or an
                auxiliary name is unknown.
        """
        name = getattr(model, "name", "space") or "space"
        space = cls(name, expand_limit=EXPAND_LIMIT if expand_limit is None else expand_limit)
        adopt_model(space._declaration, model, auxiliary)
        return space

    def __copy__(self) -> Space:
        """Return a deep copy. A copy that shared the model would add its rules to this space."""
        return deepcopy(self)

    def __getstate__(self) -> tuple[Any, ...]:
        """Return the state for ``copy.deepcopy`` and ``pickle``: the declaration with its live model. The rest is recomputed."""
        return self._declaration, self._live.warned

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self._declaration, warned = state
        self._live = LiveSpace(self._declaration, warned)

    # -- declarations -------------------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """A title for messages and reports."""
        return self._declaration.name

    @property
    def expand_limit(self) -> int:
        """Largest number of values for which an integer, or a real with a step, is expanded into one-hot binaries."""
        return self._declaration.expand_limit

    @property
    def model(self) -> ConcreteModel:
        """The live Pyomo model. Additions and changes take effect from the next question on."""
        return self._declaration.model

    @property
    def parameters(self) -> dict[str, Parameter]:
        """Name -> parameter, in the order of declaration."""
        return self._declaration.parameters

    @property
    def auxiliaries(self) -> dict[str, NumericParameter]:
        """Name -> auxiliary variable."""
        return self._declaration.auxiliaries

    @property
    def rules(self) -> dict[str, Rule]:
        """Name -> declared rule."""
        return self._declaration.rules

    def __getitem__(self, name: str) -> Any:
        """Return a parameter or auxiliary variable by its name."""
        return self._declaration[name]

    def __repr__(self) -> str:
        return f"<space {self._summary()}>"

    def _summary(self) -> str:
        kinds = Counter(p.domain.kind for p in self.parameters.values())
        listed = f" ({', '.join(f'{n:,} {kind}' for kind, n in kinds.items())})" if kinds else ""
        auxiliaries = (
            f", {counted(len(self.auxiliaries), 'auxiliary variable', 'auxiliary variables')}"
            if self.auxiliaries
            else ""
        )
        live = sum(1 for _ in relations_of(self._declaration))
        rules = counted(len(self.rules), "rule") if self.rules or not live else ""
        added = f"{counted(live, 'constraint')} of the model" if live else ""
        ruled = " and ".join(filter(None, (rules, added)))
        return f"{self.name!r}: {counted(len(self.parameters), 'parameter')}{listed}{auxiliaries}, {ruled}"

    def __str__(self) -> str:
        ruled = [(f"{kind} {name!r}", text) for kind, name, text in self._ruled()]
        return "\n".join([f"space {self._summary()}", *listing(self._described()), *listing(ruled, 10)])

    def _described(self) -> list[tuple[str, str]]:
        """Return parameters and auxiliary variables with their descriptions."""
        expected = self._declaration.expectations
        told = {name: expected[name].described() for name in expected}
        return [(n, p.described() + told.get(n, "")) for n, p in {**self.parameters, **self.auxiliaries}.items()]

    def _ruled(self) -> list[tuple[str, str, str]]:
        """Return kind, name and relation of each rule and of each constraint that was added to the model."""
        rules = [("rule", name, str(rule)) for name, rule in self.rules.items()]
        live = [("constraint", r.name, shortened(relation_text(r))) for r in relations_of(self._declaration)]
        return rules + live

    def _repr_html_(self) -> str:
        tables = [table(f"space {self._summary()}", ("parameter", "values"), self._described())]
        if ruled := self._ruled():
            tables.append(table("rules", ("rule", "relation"), [(name, text) for _, name, text in ruled]))
        return "\n".join(tables)

    # -- parameters and rules -----------------------------------------------------------------------------------

    def real(
        self,
        name: str,
        low: float,
        high: float,
        *,
        step: float | None = None,
        log: bool = False,
        when: When = None,
        default: float | None = None,
        prior: Any = None,
    ) -> Numeric:
        """Declare a real parameter in ``[low, high]``.

        Args:
            name: its name in configurations.
            low: the lower bound.
            high: the upper bound.
            step: the parameter takes the values ``low, low + step, ..., <= high``, calculated as decimals: three steps of
                0.1 from 0 are 0.3. A configuration may hold a number that differs from such a value by rounding. None: all
                reals in the range.
            log: search on the log scale, which needs ``low > 0`` and no step.
            when: a condition, or a list of conditions that must all hold: indicators, comparisons of them, or formulas. The
                parameter is active only where they hold. None: always.
            default, prior: see [`expect`][mipcash.space.space.Space.expect].

        Returns:
            The parameter, an expression for rules ([`NumericParameter`][mipcash.modelling.parameters.NumericParameter]).

        Raises:
            SpaceError: the name is taken or invalid, or the range is invalid.
        """
        made: Numeric = self._declaration.add(name, Real, (low, high, log, step), when, default, prior)
        return made

    def integer(
        self,
        name: str,
        low: int,
        high: int,
        *,
        step: int = 1,
        log: bool = False,
        when: When = None,
        default: int | None = None,
        prior: Any = None,
    ) -> Numeric:
        """Declare an integer parameter ``low, low + step, ..., <= high``.

        Args:
            name: its name in configurations.
            low: the lower bound.
            high: the upper bound.
            step: distance between successive values.
            log: search on the log scale, which needs ``low > 0``.
            when: as for [`real`][mipcash.space.space.Space.real].
            default, prior: see [`expect`][mipcash.space.space.Space.expect].

        Returns:
            The parameter, an expression for rules ([`NumericParameter`][mipcash.modelling.parameters.NumericParameter]).

        Raises:
            SpaceError: the name is taken or invalid, or the range is invalid.
        """
        made: Numeric = self._declaration.add(name, Integer, (low, high, step, log), when, default, prior)
        return made

    def fidelity(self, name: str, low: float, high: float, *, log: bool = True, power: float = 1.0) -> Numeric:
        """Declare the fidelity: a parameter such as epochs, rows or mesh size, at whose highest value the loss counts.

        A study chooses it for each evaluation: low fidelities find promising configurations at a low cost. A budget of 30 pays for
        30 evaluations at full fidelity, or more at lower ones; the last one may exceed it. Only evaluations at full fidelity can be
        the best. An optimizer object of your own chooses fidelities itself.

        Args:
            name: its name in configurations.
            low: the lowest fidelity, above 0.
            high: full fidelity. If both ends are given as integers the parameter is an integer, else a real.
            log: model it on the log scale.
            power: an evaluation at s costs ``(s / high) ** power`` evaluations at full fidelity: 1 for epochs, 3 for the number of
                mesh points on an edge of a cube.

        Returns:
            The parameter, an expression for rules ([`NumericParameter`][mipcash.modelling.parameters.NumericParameter]).

        Raises:
            SpaceError: the space has a fidelity, the name is taken or invalid, or the range or the power is invalid.

        Examples:
            >>> import mipcash as mc
            >>> space = mc.Space("network")
            >>> rate = space.real("rate", 1e-4, 1.0, log=True)
            >>> epochs = space.fidelity("epochs", 1, 81)
            >>> run = mc.minimize(lambda c: (c["rate"] - 0.1) ** 2 + 1 / c["epochs"], space, 8, progress=False)
            >>> run.config["epochs"], run.n_evaluations > 8
            (81, True)
        """
        return self._declaration.set_fidelity(name, low, high, log, power)

    def ordinal(
        self,
        name: str,
        values: Iterable[Value],
        *,
        step: float | None = None,
        when: When = None,
        default: Value | None = None,
        prior: Any = None,
    ) -> Any:
        """Declare an ordered list of values. If all are numbers, rules may use the parameter by its value.

        Args:
            name: its name in configurations.
            values: all of them; with ``step=`` the lowest and the highest number, ``space.ordinal("width", (16, 128), step=16)``.
            step: distance between successive numbers; None: ``values`` lists all of them.
            when: as for [`real`][mipcash.space.space.Space.real].
            default, prior: see [`expect`][mipcash.space.space.Space.expect].

        Returns:
            The parameter: a [`NumericParameter`][mipcash.modelling.parameters.NumericParameter] if all values are numbers,
            else a [`ChoiceParameter`][mipcash.modelling.parameters.ChoiceParameter].

        Raises:
            SpaceError: the name is taken or invalid, or the list of values is invalid.
        """
        return self._declaration.add(name, Ordinal, (values, step), when, default, prior)

    def categorical(
        self,
        name: str,
        values: Iterable[Value],
        *,
        when: When = None,
        default: Value | None = None,
        prior: Mapping[Any, float] | None = None,
    ) -> Choice:
        """Declare an unordered list of values; rules use ``parameter[value]``.

        Args:
            name: its name in configurations.
            values: all of them, each once: texts, numbers, bools, None or other objects.
            when: as for [`real`][mipcash.space.space.Space.real].
            default, prior: see [`expect`][mipcash.space.space.Space.expect].

        Returns:
            The parameter, used in rules through its indicators
            ([`ChoiceParameter`][mipcash.modelling.parameters.ChoiceParameter]).

        Raises:
            SpaceError: the name is taken or invalid, or the list of values is invalid.
        """
        made: Choice = self._declaration.add(name, Categorical, (values,), when, default, prior)
        return made

    def module(
        self,
        name: str,
        algorithms: Mapping[str, Mapping[str, ParameterDomain]] | Sequence[str],
        *,
        when: When = None,
        default: str | None = None,
        prior: Mapping[str, float] | None = None,
    ) -> Module:
        """Declare a choice of algorithm, each with its own hyperparameters.

        A hyperparameter is named ``module.algorithm.name`` in configurations and is active if its algorithm is chosen.

        Args:
            name: its name in configurations.
            algorithms: algorithm -> {hyperparameter name -> ``mc.Real | mc.Integer | mc.Ordinal | mc.Categorical``}; or a list of
                names of algorithms without hyperparameters.
            when: as for [`real`][mipcash.space.space.Space.real]; the hyperparameters are then active only where it holds,
                too.
            default, prior: of the algorithm; see [`expect`][mipcash.space.space.Space.expect].

        Returns:
            The module ([`ModuleParameter`][mipcash.modelling.parameters.ModuleParameter]).

        Raises:
            SpaceError: a name is taken or invalid, or a domain is no domain.
        """
        return self._declaration.module(name, algorithms, when=when, default=default, prior=prior)

    def ordering(self, name: str, modules: Sequence[Module | str]) -> Ordering:
        """Declare the order in which ``modules`` are applied; a value is a tuple of their names.

        Args:
            name: its name in configurations.
            modules: two or more declared modules, or their names.

        Returns:
            The ordering ([`OrderingParameter`][mipcash.modelling.parameters.OrderingParameter]).

        Raises:
            SpaceError: the name is taken or invalid, or the list of modules is invalid.
        """
        return self._declaration.ordering(name, modules)

    def auxiliary(self, name: str, low: int, high: int) -> Numeric:
        """Declare an integer auxiliary variable in ``[low, high]``: used in rules, not tuned, absent from configurations.

        Args:
            name: its name; ``space[name]`` returns it.
            low: the lower bound.
            high: the upper bound.

        Returns:
            The auxiliary variable, an expression for rules.

        Raises:
            SpaceError: the name is taken or invalid, or the range is invalid.
        """
        return self._declaration.auxiliary(name, low, high)

    def rule(self, name: str, relation: Relation = None, *, when: When = None) -> Rule:  # type: ignore[assignment]
        """Declare a rule that every configuration obeys.

        Args:
            name: for messages; unique.
            relation: ``<=``, ``>=`` or ``==`` between expressions of degree at most two, which may contain ``abs``, ``mc.maximum``
                and ``mc.minimum``. Whole numbers and single discrete parameters also allow ``<``, ``>`` and ``!=``. Or relations
                and 0/1 indicators joined by ``&``, ``|``, ``~``, ``^``, ``mc.all_of``, ``mc.any_of``, ``mc.implies``.
            when: an indicator or a list of them. The rule applies only if all of them hold. An inactive parameter counts as
                0, so a rule about a conditional parameter usually needs ``when=parameter.is_active()``. A rule that forces
                it to be active causes a warning ([`RuleWarning`][mipcash.errors.RuleWarning]) when the space is first
                searched.

        Returns:
            The declared rule, also in ``space.rules``.

        Raises:
            RuleError: the name is taken, or the relation is a plain bool, is of degree above two, or contains parameters of another
                space or terms without finite bounds.
        """
        return self._declaration.rule(name, relation, when=when)

    def expect(self, name: str, *, default: Value | None = None, prior: Any = None) -> None:
        """Say where the optimum of a parameter is expected. Every configuration of the space stays possible.

        A study evaluates the [`default`][mipcash.space.space.Space.default] configuration first. The optimizers `hybrid`, `mivabo`
        and `cmes` draw a part of their initial design from the priors. `hybrid` weights its acquisition function by them at first,
        and less with every evaluation (Hvarfner et al. 2022).

        Args:
            name: of a parameter, also of a hyperparameter of a module, ``forest.depth``, or a variable of a Pyomo model.
            default: its usual value; None: none.
            prior: weights of values, ``{"adam": 3, "sgd": 1}``, or for numbers a distribution with ``logpdf`` or ``logpmf``, such
                as ``scipy.stats.norm(0.3, 0.1)``. Only ratios of weights matter. None: none.

        Raises:
            SpaceError: there is no such parameter, the default is no value of it, or the prior cannot be read.

        Examples:
            >>> import mipcash as mc
            >>> space = mc.Space("network")
            >>> layers = space.integer("layers", 1, 9, default=3)
            >>> optimizer = space.categorical("optimizer", ["sgd", "adam"], prior={"adam": 3, "sgd": 1})
            >>> space.expect("optimizer", default="adam")
            >>> space.default()
            {'layers': 3, 'optimizer': 'adam'}
        """
        self._declaration.expect(name, default, prior)

    def default(self) -> Configuration:
        """Return the default configuration: the legal configuration nearest to the declared default values.

        Returns:
            The configuration. Parameters without a default have the value that their prior makes likeliest, else the middle of
            their range or the first of their values, as far as this is legal beside the defaults.

        Raises:
            InfeasibleSpaceError: the space is empty.
            SolverError: no legal configuration was found in the time.
        """
        known = {name: self._declaration.expectations.get(name, NOTHING) for name in self.parameters}
        usual = {name: known[name].usual(parameter.domain) for name, parameter in self.parameters.items()}
        if (fidelity := self._declaration.fidelity) is not None:
            usual[fidelity.label] = self.parameters[fidelity.label].domain.high  # type: ignore[union-attr]  # a Real or an Integer
        soft = {name for name, expectation in known.items() if expectation.default is None}
        return nearest(compiled(self).until(Deadline.after(QUESTION.time_limit)), usual, soft)

    # -- legality -----------------------------------------------------------------------------------------------

    def validate(self, config: Configuration) -> list[Violation]:
        """Return every reason why a configuration is illegal, by name; an empty list if it is legal.

        Values are compared with the domains and the rules as declared, at natural values. A rule over reals has a tolerance of
        1e-9 of its largest coefficient, other rules of 1e-9. Rules over auxiliary variables, and disjunctions, hold if some values
        of the auxiliary variables and indicators satisfy them.

        Args:
            config: name -> value, of the active parameters.

        Returns:
            The violations, each with its ``name`` (a parameter or a rule) and its ``message``.
        """
        return compiled(self).violations(config)

    def is_legal(self, config: Configuration) -> bool:
        """Return True if a configuration is legal. [`validate`][mipcash.space.space.Space.validate] returns the reasons if
        not.

        Args:
            config: name -> value, of the active parameters.

        Returns:
            True if it is legal.
        """
        return compiled(self).is_legal(config)

    def why_illegal(self, config: Configuration) -> str:
        """Return everything that is wrong with a configuration, and the nearest legal one; "" if it is legal.

        Args:
            config: name -> value, of the active parameters.

        Returns:
            The text.
        """
        return why_illegal(compiled(self), config)

    def nearest(self, config: Configuration, *, time_limit: float | None = QUESTION.time_limit) -> Configuration:
        """Return the nearest legal configuration: the given one if it is legal. Use it to repair proposals from other sources.

        Unknown names are dropped, missing parameters filled in, and values outside their domain moved into it. A text in place of
        a number counts as missing; ``mipcash.read_trials`` reads texts. The distance adds 1 for each change of a category, position
        in an order or activity. For an ordered value it adds the fraction of the levels between, for a number the fraction of its
        natural range.

        Args:
            config: name -> value, a dict with any names and values.
            time_limit: seconds; None: no limit.

        Returns:
            The nearest legal configuration found in the time.

        Raises:
            ConfigurationError: not a dict.
            InfeasibleSpaceError: the space is empty.
            SolverError: no legal configuration was found in the time.
        """
        return nearest(compiled(self).until(Deadline.after(time_limit)), config)

    # -- exact questions ----------------------------------------------------------------------------------------

    def sample(
        self,
        n: int = 1,
        seed: int | np.random.Generator = 0,
        *,
        criterion: str | None = None,
        time_limit: float | None = QUESTION.time_limit,
    ) -> list[Configuration]:
        """Return n legal, well-spread configurations.

        Args:
            n: number of configurations.
            seed: a whole number, at least 0, or a numpy ``Generator``; the same seed gives the same samples.
            criterion: a design of experiments, selected from 20 samples per point: ``maximin`` (points far from each other) or
                ``d-optimal`` (points that determine a linear model of the parameters well). Its points differ from each other. Or
                ``uniform``: independent draws, uniform over the legal values of the discrete parameters, if these can be counted
                exactly. An algorithm with many hyperparameters is then drawn more often than an algorithm with few.
            time_limit: seconds. After it, the samples found so far are returned, with a warning if they are fewer than n. If
                legality is decided without a solver, n samples are returned in any case, but less well spread.

        Returns:
            The configurations.

        Raises:
            InfeasibleSpaceError: the space is empty; the message names the conflicting rules.
            SolverError: nothing was found in the time.
            SpaceError: n or the seed is no whole number, or negative; there is no such criterion, or no uniform draws.
        """
        if criterion not in (None, UNIFORM, *CRITERIA):
            raise SpaceError(
                f"there is no criterion {criterion!r} of a design; choose one of {', '.join([*CRITERIA, UNIFORM])}"
            )
        if not isinstance(n, Integral) or n < 0:
            raise SpaceError(f"the number of samples must be a whole number and not negative, got {n!r}")
        if not isinstance(seed, (Integral, np.random.Generator)) or (isinstance(seed, Integral) and seed < 0):
            raise SpaceError(f"seed must be a whole number, at least 0, or a numpy Generator; got {seed!r}")
        deadline = Deadline.after(time_limit)
        space, minimiser = compiled(self).until(deadline), minimiser_of(self).until(deadline)
        rng = np.random.default_rng(seed)
        with threadpool_limits(
            1
        ):  # beside other processes, small matrix products in several threads take fifty times longer
            if criterion in (None, UNIFORM):
                found = sample(space, minimiser, n, rng, uniform=criterion == UNIFORM)
            else:
                among = sample(space, minimiser, candidates(n), rng)
                if criterion == D_OPTIMAL:
                    with suppress(UndecidedError):  # no time is left
                        among += sample(space, minimiser, candidates(n), rng, ends=True)
                found = selected(self.parameters, among, n, str(criterion), rng)
        if len(found) < n and criterion in CRITERIA and not deadline.passed:
            warn(f"a design of {n} points of space {self.name!r} has {len(found)}, since no more configurations differ")
        elif len(found) < n:
            within = "in time" if time_limit is None else f"in {time_limit:g} s"
            warn(
                f"{len(found)} of {n} samples of space {self.name!r} were found {within}; "
                "give a larger time_limit for more"
            )
        return found

    def optimum(
        self,
        expression: Any,
        direction: str | None = None,
        solver: str | Backend = DEFAULT,
        time_limit: float | None = QUESTION.time_limit,
        *,
        threads: int = 1,
        seed: int = 0,
        gap: float = 1e-6,
    ) -> Solution:
        """Minimise or maximise an expression over the legal configurations, with proof.

        Args:
            expression: linear or quadratic in the parameters. A product may hold at most one real, or integer with more than
                ``expand_limit`` values. The name of a parameter is accepted, too. A Pyomo ``Objective`` sets its own direction.
            direction: ``minimize`` or ``maximize`` (``min``, ``max``); None: that of an ``Objective``, else ``minimize``.
            solver: name of a solver (``mipcash solvers`` lists them), or a backend; ``auto``: the fastest that is
                installed.
            time_limit: seconds; when it is reached the incumbent and the bound are returned, never an exception.
            threads: of the solver.
            seed: of the solver.
            gap: relative gap at which the solver may stop and report the incumbent as optimal.

        Returns:
            The best configuration found and its proof.

        Raises:
            RuleError: degree above two, or parameters of another space.
            SpaceError: an invalid direction, an unknown name, or a product of two such reals or integers.
            SolverError: the solver is not installed.
        """
        deadline = Deadline.after(time_limit)
        settings = SolverSettings(math.inf if time_limit is None else time_limit, gap, threads, seed)
        return optimum(compiled(self), minimiser_of(self, solver).until(deadline), expression, direction, settings)

    def count(self, limit: int = 10_000, *, time_limit: float | None = QUESTION.time_limit) -> Count:
        """Return the number of legal discrete configurations.

        They are the combinations of all parameters except reals and integers with more than ``expand_limit`` values.
        Independent parts of the space are counted separately and multiplied, so the number may far exceed ``limit``. A part
        that only the solver decides, or that is too large to be counted, is enumerated one by one, up to ``limit``.

        Args:
            limit: largest number of configurations of one part that are enumerated one by one.
            time_limit: seconds; after it, the result is a lower bound.

        Returns:
            An integer. If a limit was reached, its ``exact`` is False and it prints as "at least n".
        """
        return count(minimiser_of(self).until(Deadline.after(time_limit)), limit)

    def bounds(
        self, solver: str | Backend = DEFAULT, *, time_limit: float | None = QUESTION.time_limit
    ) -> dict[str, Extent]:
        """Return the tightest extent of each parameter under the rules; parameters that can never be active are left out.

        Args:
            solver: as for [`optimum`][mipcash.space.space.Space.optimum].
            time_limit: seconds. After it, extents contain every legal value but may be too wide; ``proven`` is True for the
                tightest ones.

        Returns:
            Name -> extent, with ``low`` and ``high``, ``values`` of a discrete parameter, ``always`` (active) and
            ``proven``.

        Raises:
            InfeasibleSpaceError: the space is empty.
        """
        deadline = Deadline.after(time_limit)
        return extents(compiled(self).until(deadline), minimiser_of(self, solver).until(deadline).backend)

    def conflict(self, solver: str | Backend = DEFAULT, *, time_limit: float | None = QUESTION.time_limit) -> Conflict:
        """Return an irreducible conflict among the named rules, and the least relaxations that resolve it.

        Args:
            solver: as for [`optimum`][mipcash.space.space.Space.optimum].
            time_limit: seconds; None: no limit.

        Returns:
            An empty conflict if the space is not empty. If the time limit was reached, the rules cannot hold together, but some may
            not be needed for the conflict.

        Raises:
            SolverError: the time limit was reached before it was known whether the space is empty.
        """
        deadline = Deadline.after(time_limit)
        return conflict_of(compiled(self).until(deadline), minimiser_of(self, solver).until(deadline).backend)

    def explain(self, solver: str | Backend = DEFAULT, *, time_limit: float | None = QUESTION.time_limit) -> str:
        """Return why the space is empty, or that it is not, or that the time limit was reached before this was known.

        The text names an irreducible set of rules that cannot hold together (a deletion filter over the named rules). For each
        of them it states the least change of its bound that alone makes the space non-empty.

        Args:
            solver: as for [`optimum`][mipcash.space.space.Space.optimum].
            time_limit: seconds; None: no limit.

        Returns:
            The text.
        """
        deadline = Deadline.after(time_limit)
        return explained(compiled(self).until(deadline), minimiser_of(self, solver).until(deadline).backend)

    # -- the program --------------------------------------------------------------------------------------------

    def sizes(self) -> dict[str, int]:
        """Return the size of the space and of its program, for reports.

        Returns:
            Numbers by name: ``parameters``, ``rules``, ``binaries``, ``rows`` ...
        """
        space = compiled(self)
        program = space.program
        return {
            "parameters": len(self.parameters),
            "discrete": sum(1 for l in self.parameters if any(g.parameter == l for g in program.groups)),
            "numbers": len(space.tuned),
            "auxiliaries": len(self.auxiliaries),
            "rules": len(space.rules),
            "groups": len(program.groups),
            "binaries": program.n_z,
            "columns": program.n_columns,
            "products": sum(p.size for p in program.products),
            "rows": program.matrix.shape[0],
            "nonzeros": program.matrix.nnz,
        }

    def to_lp(self, path: str | os.PathLike[str]) -> Path:
        """Write the compiled program (no objective) in LP format, for any solver.

        Args:
            path: the file; the suffix ``.lp`` is added if it is missing.

        Returns:
            The path of the file.

        Raises:
            SolverError: the file cannot be written.
            TypeError: ``path`` is not a path.
        """
        return export(compiled(self), path, ".lp")

    def to_mps(self, path: str | os.PathLike[str]) -> Path:
        """Write the compiled program (no objective) in MPS format, for any solver.

        Args:
            path: the file; the suffix ``.mps`` is added if it is missing.

        Returns:
            The path of the file.

        Raises:
            SolverError: the file cannot be written.
            TypeError: ``path`` is not a path.
        """
        return export(compiled(self), path, ".mps")


def space_of(declaration: Mapping[str, Any]) -> Space:
    """Return the space that a journal describes (``mipcash.modelling.portable``).

    Raises:
        SpaceError: the data describe none.
    """
    space = Space()
    space.__setstate__((from_json(declaration), ()))
    return space
