"""Representations of spaces, parameters, rules, trials and results, compared with reviewed golden texts.

``python -m tests.study.test_representations`` writes the golden file again. Review the changes.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyomo.environ as pyo
from pyomo.core.expr.relational_expr import InequalityExpression

import mipcash as mc
from mipcash.space.domain import Domain
from mipcash.space.solution import Solution
from mipcash.study.result import Result

GOLDEN = Path(__file__).parent / "golden" / "representations.txt"


def network() -> mc.Space:
    space = mc.Space("network")
    layers = space.integer("layers", 1, 3)
    width = space.ordinal("width", [16, 32, 64, 128])
    act = space.categorical("act", ["relu", "tanh", "<script>alert(1)</script>"])
    space.real("lr", 1e-4, 1e-1, log=True)
    drop = space.real("dropout", 0.1, 0.5, when=layers.is_(2, 3))
    space.real("momentum", 0.0, 0.9, when=[layers.is_(2, 3), act["relu"]])
    first = space.module("first", {"forest": {"n": mc.Integer(1, 9)}, "line": {}})
    second = space.module("second", {"pca": {}, "none": {}})
    space.ordering("order", [first, second])
    space.auxiliary("helper", 0, 3)
    space.rule("memory", layers * width <= 200)
    space.rule("dropout", drop >= 0.2, when=drop.is_active())
    space.rule("few & far", first["forest"]["n"] + 2 * act["tanh"] <= 6)
    return space


def large() -> mc.Space:
    space = mc.Space("large")
    held = [space.real(f"x{i:03}", 0, 1) for i in range(500)]
    space.categorical("c", [f"level {i}" for i in range(5000)])
    for i in range(100):
        space.rule(f"rule {i}", sum(held[i : i + 300]) <= 9)
    return space


CONFIG = {"layers": 2, "width": 16, "act": "<script>alert(1)</script>", "lr": 0.003162277660168382, "dropout": 0.25,
          "first": "line", "second": "pca", "order": ("first", "second")}  # fmt: skip


def trials() -> tuple[mc.Trial, ...]:
    space = network()
    study = mc.Study(space, optimizer="random")
    first, second, third = study.ask(), study.ask(), study.ask()
    done = study.tell(first, {"loss": 0.5, "size": 12.0})
    failed = study.tell(second, mc.Failed("out of\nmemory: " + "x" * 500))
    return tuple(dataclasses.replace(t, config=dict(CONFIG)) for t in (done, failed, third))


def _shown() -> Iterator[tuple[str, str]]:
    """Yield a name and the shown text of each object."""
    space, big = network(), large()
    for name in ("layers", "act", "lr", "dropout", "momentum", "first", "order", "helper"):
        yield f"repr(space[{name!r}])", repr(space[name])
    yield "str(space['layers'])", str(space["layers"])
    yield "repr(space['act']['relu'])", repr(space["act"]["relu"])
    yield "repr(order.at('first', 1))", repr(space["order"].at("first", 1))
    for name, rule in space.rules.items():
        yield f"repr(space.rules[{name!r}])", repr(rule)
    yield "str(rule)", str(space.rules["dropout"])
    yield "repr(a rule of 300 terms)", repr(big.rules["rule 0"])
    yield "repr(a categorical of 5,000 levels)", repr(big["c"])
    yield "repr(mc.Categorical of 5,000 levels)", repr(big["c"].domain)
    yield "repr(space)", repr(space)
    yield "str(space)", str(space)
    yield "repr(an empty space)", repr(mc.Space())
    yield "repr(a large space)", repr(big)
    yield "str(a large space)", str(big)
    yield "repr(domain)", repr(Domain.of(space, "highs"))
    for what, solution in solutions().items():
        yield f"repr(solution, {what})", repr(solution)
    yield "str(solution)", str(solutions()["proven"])
    done, failed, pending = trials()
    yield "repr(trial, done)", repr(done)
    yield "repr(trial, failed)", repr(failed)
    yield "repr(trial, pending)", repr(pending)
    yield "str(trial)", str(done)
    yield "repr(result)", repr(Result((done, failed, pending), "network", "budget"))
    yield "repr(result, nothing yet)", repr(Result((), "network"))
    study = mc.Study(space, seed=3)
    yield "repr(study)", repr(study)
    study.tell(study.ask(), 0.25)
    yield "repr(study, told)", repr(study)
    for what, expression in expressions(space).items():
        yield f"repr({what})", repr(expression)
        yield f"str({what})", str(expression)
    yield "repr(space.bounds())", repr(small().bounds())
    yield "repr(space.count())", repr(small().count())
    yield "repr(space.validate(...))", repr(small().validate({"n": 9, "kind": "b"}))
    for where in (mc, mc.settings):
        for made in (getattr(where, name) for name in where.__all__):
            if dataclasses.is_dataclass(made) and made is not Result:
                known = [
                    f"{f.name}={f.default if f.default_factory is dataclasses.MISSING else f.default_factory()!r}"
                    for f in dataclasses.fields(made)
                    if dataclasses.MISSING is not f.default or f.default_factory is not dataclasses.MISSING
                ]
                if known:
                    yield f"defaults of {made.__name__}", "\n".join(known)
    yield "html of the space", space._repr_html_()
    yield "html of a parameter", space["dropout"]._repr_html_()
    yield "html of a categorical", space["act"]._repr_html_()
    yield "html of a rule", space.rules["few & far"]._repr_html_()
    yield "html of a study", mc.Study(space, seed=3)._repr_html_()
    yield "html of the solution", solutions()["proven"]._repr_html_()
    yield "html of the trial", done._repr_html_()
    yield "html of the result", Result((done, failed), "network", "budget")._repr_html_()


@functools.cache
def shown() -> tuple[tuple[str, str], ...]:
    return tuple(_shown())


def small() -> mc.Space:
    space = mc.Space("small")
    number = space.integer("n", 0, 9)
    space.categorical("kind", ["a", "b"])
    space.rule("few", number <= 4)
    return space


def expressions(space: mc.Space) -> dict[str, Any]:
    layers, width, lr, act = (space[name] for name in ("layers", "width", "lr", "act"))
    return {
        "layers <= 3": layers <= 3,
        "width >= 32 * layers": width >= 32 * layers,
        "layers != 2": layers != 2,
        "(layers <= 2) & act['relu']": (layers <= 2) & act["relu"],
        "abs(layers - lr)": abs(layers - lr),
        "mc.maximum(layers, lr)": mc.maximum(layers, lr),
        "order.position('first')": space["order"].position("first"),
        "2 * layers * width - lr": 2 * layers * width - lr,
        "layers.is_(1, 2)": layers.is_(1, 2),
    }


def solutions() -> dict[str, Solution]:
    return {
        "proven": Solution(CONFIG, 3.0, 3.0, 0.0, "optimal", 0.01, "enumeration"),
        "stopped": Solution(CONFIG, 3.0, 2.0, 0.33, "feasible", 1.0, "highs"),
        "empty": Solution(None, math.nan, math.inf, math.inf, "infeasible", 0.0, "highs"),
    }


def text() -> str:
    return "\n".join(f"{name}\n    {said.replace(chr(10), chr(10) + '    ')}\n" for name, said in shown())


def test_representations_match_the_golden_file() -> None:
    assert text() == GOLDEN.read_text(encoding="utf-8")


def test_pyomo_clones_expressions_and_prints_them_in_its_own_notation() -> None:
    space = small()
    relation = space["n"] + 2 * space["kind"]["a"] <= 4
    words = "(" + " + ".join(["parameters[n].z[1]", *(f"{k}.0*parameters[n].z[{k}]" for k in range(2, 10))]) + ")"
    assert relation.to_string() == f"{words} + 2*parameters[kind].z[0]  <=  4"
    assert str(relation) == "n + 2 * kind['a'] <= 4"
    plain = pickle.loads(pickle.dumps(2 * space.model.parameters["n"].z[1] <= 1))
    assert type(plain) is InequalityExpression
    space.model.live = pyo.Constraint(expr=relation)
    cloned = space.model.clone()
    assert cloned.live.expr.to_string() == relation.to_string()


def test_a_value_of_any_kind_is_shown() -> None:
    class Rude:
        def __repr__(self) -> str:
            raise RuntimeError("no")

    rude = Solution({"a": Rude(), "b\u202e": "x\x1b[31m", "c": "y" * 500}, 1.0, 1.0, 0.0, "optimal", 0.0, "highs")
    assert repr(rude) == (
        r"<solution: optimal, value 1, proven by highs: a=<Rude>, b\u202e='x\x1b[31m', c='yyyyyyyyyyyyyyyyy...yyyyyyyyyyyyyyyyyy'>"
    )
    assert "<Rude>" not in rude._repr_html_()
    assert "\x1b" not in rude._repr_html_()


if __name__ == "__main__":
    GOLDEN.parent.mkdir(exist_ok=True)
    GOLDEN.write_text(text(), encoding="utf-8")
