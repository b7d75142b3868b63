"""Component types of Pyomo: each type is supported, irrelevant for legality, or refused by name."""

from __future__ import annotations

import importlib
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pyomo.environ as pyo
import pytest
from pyomo.core.base.component import Component, ModelComponentFactory
from pyomo.core.base.set import SetOf, SetOperator
from pyomo.gdp import Disjunct, Disjunction

import mipcash as mc
from mipcash.errors import SpaceError
from mipcash.modelling.live import components

PACKAGES = (
    *("pyomo.gdp", "pyomo.mpec", "pyomo.network", "pyomo.dae", "pyomo.contrib.cp", "pyomo.contrib.piecewise"),
    *("pyomo.core.base.matrix_constraint", "pyomo.core.base.piecewise", "pyomo.core.base.connector"),
    *("pyomo.contrib.pynumero.interfaces.external_grey_box", "pyomo.core.beta.list_objects"),
    *("pyomo.core.beta.dict_objects", "pyomo.gdp.transformed_disjunct"),
)
"""Packages in which Pyomo defines components."""
for package in PACKAGES:
    importlib.import_module(package)

from pyomo.contrib.cp import IntervalVar, SequenceVar  # noqa: E402
from pyomo.contrib.piecewise import PiecewiseLinearFunction  # noqa: E402
from pyomo.contrib.pynumero.interfaces.external_grey_box import ExternalGreyBoxBlock  # noqa: E402
from pyomo.core.base.connector import Connector  # noqa: E402
from pyomo.core.base.indexed_component import IndexedComponent  # noqa: E402
from pyomo.core.base.matrix_constraint import MatrixConstraint  # noqa: E402
from pyomo.dae import ContinuousSet, DerivativeVar, Integral  # noqa: E402
from pyomo.mpec import Complementarity, ComplementarityList, complements  # noqa: E402
from pyomo.network import Arc, Port  # noqa: E402

Legal = Callable[[int, int], bool]


@dataclass(frozen=True)
class Case:
    """One kind of component.

    Attributes:
        build: adds the component to a model with integers a and b in 0..4.
        legal: legality of a and b with the component. None: the component is refused.
        name: name of the component in the error message.
        cure: part of the remedy in the error message.
    """

    build: Callable[[Any], Any]
    legal: Legal | None
    name: str = "c"
    cure: str = ""


def anything(a: int, b: int) -> bool:
    return True


def add(**made: Callable[[Any], Any]) -> Callable[[Any], None]:
    """Return a function that adds components to a model, one after the other."""

    def build(m: Any) -> None:
        for name, make in made.items():
            setattr(m, name, make(m))

    return build


def sub_block(m: Any) -> None:
    m.c = pyo.Block()
    m.c.row = pyo.Constraint(expr=m.a + m.b <= 3)
    m.c.inner = pyo.Block([1, 2])
    m.c.inner[2].row = pyo.Constraint(expr=m.a >= 1)


def either(m: Any) -> None:
    m.low, m.high = Disjunct(), Disjunct()
    m.low.row = pyo.Constraint(expr=m.a + m.b <= 1)
    m.high.row = pyo.Constraint(expr=m.a + m.b >= 7)
    m.c = Disjunction(expr=[m.low, m.high])


def implication(m: Any, make: Callable[..., Any] = pyo.LogicalConstraint) -> None:
    either(m)
    m.logic = make(expr=pyo.lnot(m.low.indicator_var))


def implications(m: Any) -> None:
    either(m)
    m.logic = pyo.LogicalConstraintList()
    m.logic.add(pyo.lnot(m.low.indicator_var))


def helper_boolean(m: Any, make: Callable[[], Any] = pyo.BooleanVar) -> None:
    either(m)
    m.flag = make()
    flag = m.flag.add() if isinstance(m.flag, pyo.BooleanVarList) else m.flag
    m.tie = pyo.LogicalConstraint(expr=m.low.indicator_var.equivalent_to(flag))
    flag.fix(True)


def constraint_list(m: Any) -> None:
    m.c = pyo.ConstraintList()
    m.c.add(m.a + m.b <= 3)
    m.c.add(m.a >= 1)


def matrix(m: Any) -> None:
    m.c = MatrixConstraint([1.0, 1.0, 1.0], [0, 1, 0], [0, 2, 3], [None, 1.0], [3.0, None], [m.a, m.b])


def variable_list(m: Any) -> None:
    m.c = pyo.VarList(domain=pyo.Set(initialize=[0, 2]))
    m.row = pyo.Constraint(expr=m.a == m.c.add())


def uses(m: Any) -> None:
    """Add a Set, a RangeSet, a SetOf, a Param, an Expression and a Reference, with rows that use them."""
    m.s, m.r, m.o = pyo.Set(initialize=[1, 2]), pyo.RangeSet(2), SetOf([1, 2])
    m.u = m.s & m.r
    m.p = pyo.Param(m.s, initialize={1: 3, 2: 5})
    m.e = pyo.Expression(m.o, rule=lambda m, i: i * m.a + m.b)
    m.x = pyo.Reference(m.a)
    m.c = pyo.Constraint(m.u, rule=lambda m, i: m.e[i] <= m.p[i])


def without_meaning(make: Callable[[Any], Any]) -> Case:
    return Case(add(c=make), anything)


def objectives(m: Any) -> None:
    m.c = pyo.ObjectiveList()
    m.c.add(m.a)


def arc(m: Any) -> None:
    m.p, m.q = Port(), Port()
    m.p.add(m.a, "flow")
    m.q.add(m.b, "flow")
    m.c = Arc(source=m.p, destination=m.q)


def connector(m: Any) -> None:
    m.p, m.q = Connector(initialize={"v": m.a}), Connector(initialize={"v": m.b})
    m.c = pyo.Constraint(expr=m.p == m.q)


def over_time(make: Callable[[Any], Any]) -> Callable[[Any], None]:
    def build(m: Any) -> None:
        m.t = ContinuousSet(bounds=(0, 1))
        m.t._discretization_info = {"scheme": "stands for a discretisation of the set alone"}
        m.x = pyo.Var(m.t, bounds=(0, 1))
        m.x.fix(0)
        m.c = make(m)

    return build


def piecewise(m: Any) -> None:
    m.c = pyo.Piecewise(m.b, m.a, pw_pts=[0, 2, 4], pw_constr_type="EQ", f_rule=[0, 1, 4])


def piecewise_function(m: Any) -> None:
    m.f = PiecewiseLinearFunction(points=[0, 2, 4], function=lambda x: x)
    m.c = pyo.Constraint(expr=m.f(m.a) <= 1)


def external_function(m: Any) -> None:
    m.f = pyo.ExternalFunction(lambda x: x)
    m.c = pyo.Constraint(expr=m.f(m.a) <= 1)


def sequence(m: Any) -> None:
    m.i = IntervalVar(start=(0, 3), end=(0, 5), length=2, optional=False)
    m.i.deactivate()
    m.c = SequenceVar(expr=[m.i])


def complementarities(m: Any) -> None:
    m.c = ComplementarityList()
    m.c.add(complements(m.a >= 0, m.b >= 0))


at_most_3: Legal = lambda a, b: a + b <= 3 and a >= 1  # noqa: E731
far: Legal = lambda a, b: a + b >= 7  # noqa: E731
near: Legal = lambda a, b: a + b <= 1  # noqa: E731

CASES: dict[type[Any], Case] = {
    # supported
    pyo.Var: Case(lambda m: None, anything),
    pyo.VarList: Case(variable_list, lambda a, b: a in (0, 2)),
    pyo.BooleanVar: Case(helper_boolean, near),
    pyo.BooleanVarList: Case(lambda m: helper_boolean(m, pyo.BooleanVarList), near),
    pyo.Block: Case(sub_block, at_most_3),
    pyo.Constraint: Case(add(c=lambda m: pyo.Constraint(expr=m.a * m.b <= 4)), lambda a, b: a * b <= 4),
    pyo.ConstraintList: Case(constraint_list, at_most_3),
    pyo.LogicalConstraint: Case(implication, far),
    pyo.LogicalConstraintList: Case(implications, far),
    Disjunct: Case(either, lambda a, b: near(a, b) or far(a, b)),
    Disjunction: Case(either, lambda a, b: near(a, b) or far(a, b)),
    pyo.SOSConstraint: Case(
        add(c=lambda m: pyo.SOSConstraint(rule=lambda m: [m.a, m.b], sos=1)), lambda a, b: a == 0 or b == 0
    ),
    pyo.Piecewise: Case(piecewise, lambda a, b: b == (a / 2 if a <= 2 else 1 + 1.5 * (a - 2))),
    # relevant only for the components that use them
    **{
        kind: Case(uses, lambda a, b: a + b <= 3 and 2 * a + b <= 5)
        for kind in (pyo.Set, pyo.RangeSet, SetOf, SetOperator, pyo.Param, pyo.Expression)
    },
    # irrelevant for legality
    pyo.Objective: without_meaning(lambda m: pyo.Objective(expr=m.a)),
    pyo.ObjectiveList: Case(objectives, anything),
    pyo.Suffix: without_meaning(lambda m: pyo.Suffix()),
    pyo.BuildAction: without_meaning(lambda m: pyo.BuildAction(rule=lambda m: None)),
    pyo.BuildCheck: without_meaning(lambda m: pyo.BuildCheck(rule=lambda m: True)),
    Port: without_meaning(lambda m: Port(initialize={"flow": m.a})),
    # refused
    Connector: Case(connector, None, cure="expand_connectors"),
    MatrixConstraint: Case(matrix, None, cure="rows as a Constraint"),
    Arc: Case(arc, None, cure="network.expand_arcs"),
    Complementarity: Case(
        add(c=lambda m: Complementarity(expr=complements(m.a >= 0, m.b >= 0))), None, cure="mpec.simple_disjunction"
    ),
    ComplementarityList: Case(complementarities, None, cure="mpec.simple_disjunction"),
    ContinuousSet: Case(add(c=lambda m: ContinuousSet(bounds=(0, 1))), None, cure="dae.finite_difference"),
    DerivativeVar: Case(over_time(lambda m: DerivativeVar(m.x, wrt=m.t)), None, cure="dae.finite_difference"),
    Integral: Case(over_time(lambda m: Integral(m.t, rule=lambda m, t: m.x[t])), None, cure="dae.finite_difference"),
    IntervalVar: Case(add(c=lambda m: IntervalVar(start=(0, 3), end=(0, 5), length=2)), None, cure="start, end"),
    SequenceVar: Case(sequence, None, cure="ordering"),
    PiecewiseLinearFunction: Case(piecewise_function, None, cure="contrib.piecewise"),
    pyo.ExternalFunction: Case(external_function, None, cure="degree above two"),
    ExternalGreyBoxBlock: Case(add(c=lambda m: ExternalGreyBoxBlock()), None, cure="degree at most two"),
}
MODELS = (pyo.Model, pyo.ConcreteModel, pyo.AbstractModel)
"""Types of models. ``from_pyomo`` refuses abstract models."""

GRID = [{"a": a, "b": b} for a, b in itertools.product(range(5), repeat=2)]


def model() -> Any:
    m = pyo.ConcreteModel()
    m.a = pyo.Var(domain=pyo.Integers, bounds=(0, 4))
    m.b = pyo.Var(domain=pyo.Integers, bounds=(0, 4))
    return m


def kinds(kind: type[Any] = Component) -> Iterator[type[Any]]:
    for derived in kind.__subclasses__():
        yield derived
        yield from kinds(derived)


def declare_and_sample(m: Any, later: Case | None) -> None:
    space = mc.Space.from_pyomo(m)
    if later is not None:
        assert len(space.sample(3)) == 3
        later.build(m)
        space.sample(1)


ABSTRACT = ("IndexedComponent", "ActiveIndexedComponent", "ActiveComponent", "IndexedComponent_NDArrayMixin")


def test_the_table_has_every_component_type() -> None:
    """A component type that a later Pyomo adds fails this test until the table contains it."""
    registered = {ModelComponentFactory.get_class(name) for name in ModelComponentFactory}
    assert registered - {*CASES, *MODELS} == set()
    pyomos = {k for k in kinds() if k.__module__.startswith("pyomo.") and k.__name__ not in ABSTRACT}
    unknown = {f"{k.__module__}.{k.__name__}" for k in pyomos if not {*k.__mro__} & {*CASES}}
    assert unknown == set()
    refused = {kind.__name__ for kind, case in CASES.items() if case.legal is None}
    by_constraint = {"Connector", "PiecewiseLinearFunction", "ExternalFunction"}  # refused where a constraint uses them
    assert refused - by_constraint - {"ComplementarityList"} == set(components.CURES)


@pytest.mark.parametrize(
    ("kind", "later"),  # the weights of a Piecewise have no upper bounds: only from_pyomo finds them
    [(kind, later) for kind in CASES for later in (False, True) if not (later and kind is pyo.Piecewise)],
)
def test_every_component_type_is_supported_or_refused(kind: type[Any], later: bool) -> None:
    case, m = CASES[kind], model()
    if not later:
        case.build(m)
    if case.legal is None:
        with pytest.raises(SpaceError) as caught:
            declare_and_sample(m, case if later else None)
        message = str(caught.value)
        assert f"'{case.name}'" in message
        assert case.cure in message
        return
    space = mc.Space.from_pyomo(m, auxiliary=["c"] if kind is pyo.VarList and not later else [])
    if later:
        assert len(space.sample(2, seed=0)) == 2
        case.build(m)
    expected = [c for c in GRID if case.legal(**c)]
    assert [c for c in GRID if space.is_legal(c)] == expected
    samples = space.sample(12, seed=1)
    assert all(c in expected for c in samples)
    assert len({tuple(c.values()) for c in samples}) >= min(2, len(expected))
    for sense, best in (("min", min), ("max", max)):
        solution = space.optimum(3 * m.a + m.b, sense)
        assert solution.value == pytest.approx(best(3 * c["a"] + c["b"] for c in expected))


@pytest.mark.parametrize("kind", [Arc, Complementarity, IntervalVar], ids=lambda k: k.__name__)
def test_a_refused_component_that_is_deactivated_does_not_matter(kind: type[Any]) -> None:
    m = model()
    CASES[kind].build(m)
    m.c.deactivate()
    if kind is IntervalVar:
        m.c.is_present.fix(True)
    assert all(c in GRID for c in mc.Space.from_pyomo(m).sample(20))


def test_an_unknown_component_type_is_refused() -> None:
    class Oracle(IndexedComponent):
        def __init__(self) -> None:
            super().__init__([1], ctype=Oracle)
            self._data[1] = "an answer"
            self._constructed = True

    m = model()
    m.inner = pyo.Block()
    m.inner.delphi = Oracle()
    with pytest.raises(SpaceError, match=r"'inner\.delphi'.*type Oracle"):
        mc.Space.from_pyomo(m)


@pytest.mark.parametrize(
    ("kind", "transformation", "legal"),
    [
        (Complementarity, "mpec.simple_disjunction", lambda a, b: a == 0 or b == 0),
        (Arc, "network.expand_arcs", lambda a, b: a == b),
        (Connector, "core.expand_connectors", lambda a, b: a == b),
    ],
)
def test_suggested_transformations_make_a_model_acceptable(kind: type[Any], transformation: str, legal: Legal) -> None:
    m = model()
    CASES[kind].build(m)
    with pytest.raises(SpaceError):
        mc.Space.from_pyomo(m)
    pyo.TransformationFactory(transformation).apply_to(m)
    space = mc.Space.from_pyomo(m)
    assert [c for c in GRID if space.is_legal(c)] == [c for c in GRID if legal(**c)]


def test_a_discretised_model_is_supported() -> None:
    m = pyo.ConcreteModel()
    m.t = ContinuousSet(bounds=(0, 2))
    m.x = pyo.Var(m.t, bounds=(0, 4))
    m.dx = DerivativeVar(m.x, wrt=m.t, bounds=(-1, 1))
    m.u = pyo.Var(bounds=(0, 4))
    m.start = pyo.Constraint(expr=m.x[0] == m.u)
    pyo.TransformationFactory("dae.finite_difference").apply_to(m, nfe=2, scheme="BACKWARD")
    space = mc.Space.from_pyomo(m, auxiliary=["dx"])
    assert all(abs(c["x[2]"] - c["x[0]"]) <= 2 + 1e-5 for c in space.sample(3, seed=0))
    assert space.optimum(m.x[2] - m.u, "max").value == pytest.approx(2.0)
