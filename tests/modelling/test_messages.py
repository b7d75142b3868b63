"""What users type, and what they are told: the golden file ``golden/messages.txt`` is read from top to bottom.

Every line below is typed into a space of its own. The file says what came of it, and a change of a message shows as a
change of the file. To write it anew (and then to read it): ``MIPCASH_GOLDEN=write pytest tests/modelling/test_messages.py``.
"""

from __future__ import annotations

import functools
import math
import os
import textwrap
from pathlib import Path
from typing import Any

import numpy as np

import mipcash as mc
from mipcash.errors import MipcashError

GOLDEN = Path(__file__).parent / "golden" / "messages.txt"
DECLARED = """\
space = mc.Space("network")
layers = space.integer("layers", 1, 4)
width = space.ordinal("width", [16, 32, 64, 128])
units = space.integer("units", 0, 500)
shift = space.integer("shift", -3, 3)
lr = space.real("lr", 0.001, 1.0, log=True)
drop = space.real("drop", 0.0, 0.5)
act = space.categorical("act", ["relu", "tanh", "selu"])
est = space.module("est", {"forest": {"depth": mc.Integer(1, 9)}, "linear": {}})
pre = space.module("pre", {"none": {}, "scale": {}})
order = space.ordering("order", [est, pre])
taken = space.rule("taken", layers * width <= 256)
other = mc.Space("other")
alien = other.integer("layers", 1, 4)
"""

TYPED: dict[str, list[str]] = {
    "Logic of Python: it asks for the truth at once": [
        'space.rule("r", layers <= 3 and lr <= 0.1)',
        'space.rule("r", layers <= 3 or lr <= 0.1)',
        'space.rule("r", not layers <= 3)',
        'space.rule("r", act["relu"] and layers >= 2)',
        'space.rule("r", not act["relu"])',
        'if act["relu"]: space.rule("r", layers <= 3)',
        'if layers <= 3: space.rule("r", lr <= 0.1)',
        'if layers: space.rule("r", lr <= 0.1)',
        'if act: space.rule("r", lr <= 0.1)',
        'space.rule("r", 1 <= layers <= 3)',
        'space.rule("r", 0 < layers < 3)',
        'space.rule("r", all([layers <= 3, lr <= 0.1]))',
        'space.rule("r", any([layers <= 3, lr <= 0.1]))',
        'space.rule("r", bool(act["relu"]))',
        "assert layers <= 3",
        'space.rule("r", (layers <= 3) & (lr <= 0.1) and act["relu"])',
    ],
    "Logic that works": [
        'space.rule("r", (layers <= 3) & (lr <= 0.1))',
        'space.rule("r", (layers <= 3) | act["relu"])',
        'space.rule("r", ~act["relu"])',
        'space.rule("r", ~act.is_("relu", "tanh"))',
        'space.rule("r", ~(layers + shift >= 3))',
        'space.rule("r", act["relu"] ^ est["forest"])',
        'space.rule("r", mc.implies(act["relu"], layers >= 2))',
        'space.rule("r", mc.implies((lr >= 0.1) & act["relu"], units + shift <= 100))',
        'space.rule("r", mc.all_of(layers <= 3, lr <= 0.1, act["relu"]))',
        'space.rule("r", mc.any_of([layers <= 3, lr <= 0.1]))',
        'space.rule("r", lr <= 0.1, when=act["relu"] | est["forest"])',
        'space.rule("r", lr <= 0.1, when=act["relu"] & est["forest"])',
        'space.real("momentum", 0.0, 1.0, when=~act["relu"])',
    ],
    "Logic of what is no condition": [
        'space.rule("r", ~layers)',
        'space.rule("r", layers & width)',
        'space.rule("r", layers <= 3 & lr <= 0.1)',
        'space.rule("r", act["relu"] & layers >= 2)',
        'space.rule("r", (layers + width) & act["relu"])',
        'space.rule("r", (layers <= 3) & True)',
        'space.rule("r", act & (layers <= 3))',
        'space.rule("r", mc.implies(act, layers <= 3))',
        'space.rule("r", mc.implies(layers, act["relu"]))',
        'space.rule("r", mc.implies(act["relu"], True))',
        'space.rule("r", mc.all_of())',
        'space.rule("r", ~(lr <= 0.1))',
        'space.rule("r", ~((layers <= 3) & (drop <= 0.1)))',
        'space.real("momentum", 0.0, 1.0, when=act["relu"] | est["forest"])',
        'space.real("momentum", 0.0, 1.0, when=~(act["relu"] & ~est["forest"]) & layers.is_(2))',
        'space.real("momentum", 0.0, 1.0, when=act["relu"] | (layers <= 3))',
        'space.real("momentum", 0.0, 1.0, when=act["relu"] ^ est["forest"])',
        'space.rule("r", (layers <= 3) & (layers >= 1) <= 2)',
    ],
    "Comparisons": [
        'space.rule("r", layers != 3)',
        'space.rule("r", layers < 3)',
        'space.rule("r", layers + shift > 3)',
        'space.rule("r", lr < 0.1)',
        'space.rule("r", lr != 0.1)',
        'space.rule("r", lr != drop)',
        'space.rule("r", act == "relu")',
        'space.rule("r", act != "relu")',
        'space.rule("r", act == est)',
        'space.rule("r", act["relu"] == "yes")',
        'space.rule("r", layers == "3")',
        'space.rule("r", layers == "three")',
        'space.rule("r", layers == [1, 2])',
        'space.rule("r", layers == None)',
        'space.rule("r", layers <= (lr >= 0.1))',
        'space.rule("r", layers in [1, 2])',
        'space.rule("r", 3 in layers)',
        'space.rule("r", "relu" in act)',
        'space.rule("r", layers.is_([1, 2]) == 1)',
        'space.rule("r", layers <= float("nan"))',
        'space.rule("r", np.array([layers, width]) <= 3)',
        'space.rule("r", np.array([1, 2]) * layers <= 3)',
        'space.rule("r", order <= 1)',
    ],
    "Functions that work": [
        'space.rule("r", abs(layers - shift) <= 3)',
        'space.rule("r", abs(layers - shift) >= 3)',
        'space.rule("r", np.abs(shift) == 2)',
        'space.rule("r", mc.maximum(layers, shift + 1) <= 3)',
        'space.rule("r", np.minimum(lr, drop) >= 0.1)',
        'space.rule("r", width.map(math.log2) + layers.map(lambda v: v % 2) <= 6)',
        'space.rule("r", act.map({"relu": 1.5, "tanh": 3, "selu": 2}) <= 2)',
        'space.rule("r", np.array([1, 2, 3]) @ [layers, width, units] <= 300)',
        'space.rule("r", sum([layers, units, 2 * lr]) <= 300)',
        'space.rule("r", units**2 <= 300)',
        'space.rule("r", order.position(est) <= 1)',
    ],
    "Functions of Python, math and numpy": [
        'space.rule("r", max(layers, width) <= 64)',
        'space.rule("r", min(lr, drop) >= 0.1)',
        'space.rule("r", (layers + lr) / 0 <= 1)',
        'space.rule("r", act["relu"] >> act["tanh"])',
        'space.rule("r", layers @ width <= 3)',
        'space.rule("r", layers // 2 <= 1)',
        'space.rule("r", units // 2 <= 100)',
        'space.rule("r", lr // 2 <= 1)',
        'space.rule("r", layers % 2 == 0)',
        'space.rule("r", units % 2 == 0)',
        'space.rule("r", (units + layers) % 2 == 0)',
        'space.rule("r", 7 % layers == 0)',
        'space.rule("r", layers**3 <= 27)',
        'space.rule("r", lr**3 <= 0.1)',
        'space.rule("r", lr**0.5 <= 0.1)',
        'space.rule("r", layers**width <= 64)',
        'space.rule("r", 2**layers <= 8)',
        'space.rule("r", 2**lr <= 8)',
        'space.rule("r", round(layers) <= 2)',
        'space.rule("r", round(lr, 2) <= 2)',
        'space.rule("r", int(lr) <= 2)',
        'space.rule("r", float(layers) <= 2)',
        'space.rule("r", float(units + layers) <= 2)',
        'space.rule("r", len(layers) <= 2)',
        'space.rule("r", len(act) <= 2)',
        "for value in layers: print(value)",
        "for value in act: print(value)",
        'space.rule("r", math.log(width) <= 4)',
        'space.rule("r", math.log(lr) <= 4)',
        'space.rule("r", math.floor(lr) <= 4)',
        'space.rule("r", np.log(width) <= 4)',
        'space.rule("r", np.log(lr) <= 4)',
        'space.rule("r", np.exp(units) <= 4)',
        'space.rule("r", np.sqrt(layers + width) <= 4)',
        'space.rule("r", np.sin(drop) <= 4)',
        'space.rule("r", abs(act) <= 4)',
        'space.rule("r", layers + act <= 4)',
        'space.rule("r", mc.maximum(act, 3) <= 4)',
        'space.rule("r", mc.maximum() <= 4)',
        'space.rule("r", shift * abs(units - 3) <= 4)',
        'space.rule("r", abs(shift) * abs(units - 3) <= 4)',
        'space.rule("r", lr.map(math.log) <= 4)',
        'space.rule("r", shift.map(math.log) <= 4)',
        'space.rule("r", act.map({"relu": 1.5}) <= 4)',
        'space.rule("r", act.map(str) <= 4)',
        'space.rule("r", act.map(3) <= 4)',
        'space.rule("r", mc.maximum(*[abs(units - k) for k in range(300)]) <= 9)',
    ],
    "Division by what depends on the configuration": [
        'space.rule("r", layers / width <= 2)',
        'space.rule("r", units / lr <= 2)',
        'space.rule("r", layers / drop <= 2)',
        'space.rule("r", 1 / layers <= 0.5)',
        'space.rule("r", layers / shift <= 2)',
        'space.rule("r", (layers + width) / (units + 1) <= 2)',
        'space.rule("r", layers / 2 <= 1)',
    ],
    "What is looked up": [
        "layers[9]",
        'act["gelu"]',
        "act[True]",
        "act.relu",
        "act.gelu",
        "layers.high",
        "lr.is_(0.1)",
        "units.is_(3)",
        "act.is_()",
        'act.is_(["relu", "gelu"])',
        'est["svm"]',
        'est["forest"]["size"]',
        'act["relu"]["size"]',
        "order.at(est, 5)",
        'order.position("act")',
        'order["est"]',
        'space["depth"]',
    ],
    "What is shown of an expression": [
        "layers <= 3",
        "layers + shift >= 3",
        "(layers <= 3) & act['relu']",
        "abs(layers - shift)",
        "mc.maximum(layers, lr)",
        "order.position(est)",
        "layers.is_(1, 2)",
        "sum(space.real(f'x{k:02}', 0, 1) for k in range(60)) <= 9",
    ],
    "What is given as a rule": [
        'space.rule("r", True)',
        'space.rule("r", None)',
        'space.rule("r", 3)',
        'space.rule("r", "layers <= 3")',
        'space.rule("r", lambda config: config["layers"] <= 3)',
        'space.rule("r", (layers <= 3, lr <= 0.1))',
        'space.rule("r", (k * layers <= 3 for k in range(3)))',
        'space.rule("r", layers)',
        'space.rule("r", layers + width)',
        'space.rule("r", act["relu"])',
        'space.rule("r", act)',
        'space.rule("r", layers.is_([1, 2]))',
        'space.rule("r", layers.is_(1, 2) <= 3)',
        'space.rule("r", act["relu"] <= 1)',
        'space.rule("r", layers.is_(1, 2) >= 2)',
        'space.rule("r", layers.is_(1, 2) == 1)',
        'space.rule("r", layers - layers <= 2)',
        'space.rule("r", abs(layers) >= 0)',
        'space.rule("r", layers * width * units <= 3)',
        'space.rule("r", alien <= layers)',
        'space.rule("r", mc.implies(alien <= 2, layers <= 3))',
        'space.rule("r", lr * drop == 0.1)',
        "space.rule(layers <= 3)",
        'space.rule("", layers <= 3)',
        'space.rule("taken", layers <= 3)',
        'space.rule("r", lr <= 0.1, when="relu")',
        'space.rule("r", lr <= 0.1, when=act)',
        'space.rule("r", lr <= 0.1, when=layers <= 3)',
        'space.rule("r", lr <= 0.1, when=layers)',
        "space.optimum(act)",
        "space.optimum(layers <= 3)",
        "space.optimum(abs(layers - 2))",
    ],
    "Declarations": [
        'space.module("g", ["forest", "linear"])',
        'space.module("g", ["forest", "forest"])',
        'space.module("g", "forest")',
        'space.module("g", {"forest": None})',
        'space.module("g", {"forest": ["depth"]})',
        'space.module("g", {"forest": {"depth": 3}})',
        'space.module("g", {1: {}})',
        'space.categorical("g", [1, True])',
        'space.categorical("g", [1, 1.0])',
        'space.categorical("g", ["a", "b", "a"])',
        'space.categorical("g", [float("nan"), 1.0])',
        'space.categorical("g", [None, "a"])',
        'space.categorical("g", [[1, 2], [3]])',
        'space.categorical("g", np.array([1, 2]))',
        'space.categorical("g", [])',
        'space.categorical("g", ["a"])',
        'space.categorical("g", "abc")',
        'space.categorical("g", {"a", "b"})',
        'space.categorical("g", 3)',
        'space.ordinal("g", {1: "a", 2: "b"})',
        'space.integer("g", 1.5, 3)',
        'space.integer("g", 3, 1)',
        'space.integer("g", 3, 3)',
        'space.integer("g", 0, 8, log=True)',
        'space.integer("g", False, True)',
        'space.integer("g", "1", "3")',
        'space.integer("g", 0, None)',
        'space.integer("g", 0, 10**20)',
        'space.integer("g", 0, 9, step=0.5)',
        'space.real("g", 3, 1)',
        'space.real("g", 3, 3)',
        'space.real("g", -1, 1, log=True)',
        'space.real("g", 0, float("inf"))',
        'space.real("g", [1, 2], 3)',
        'space.real("g", 0, 1, when=lambda config: True)',
        'space.real("", 0, 1)',
        "space.real(3, 0, 1)",
        'space.real("layers", 0, 1)',
        'space.real("block.lr", 0, 1)',
        'space.ordering("g", [est])',
        'space.ordering("g", [est, "nobody"])',
    ],
}


@functools.cache
def said(line: str) -> str:
    """What comes of a line: the message, or how that reads which it declares."""
    names: dict[str, Any] = {"mc": mc, "np": np, "math": math}
    exec(DECLARED, names)
    known = {**names["space"].parameters, **names["space"].rules}
    try:
        try:
            value = eval(line, names)
        except SyntaxError:
            value = exec(line, names)
    except MipcashError as error:
        return f"said:  {error}"
    now = {**names["space"].parameters, **names["space"].rules}
    made = [thing for name, thing in now.items() if name not in known]
    shown = "" if value is None else repr(value)
    return f"works: {shown if shown.startswith(('<exp', '<rel')) else ', '.join(map(repr, made)) or value}"


def conversation() -> str:
    lines = [
        "What people type when they declare a space and its rules, and what they are told.",
        "Written by tests/modelling/test_messages.py. The space at hand:",
        "",
        textwrap.indent(DECLARED, "    "),
    ]
    for heading, typed in TYPED.items():
        lines += [heading, "=" * len(heading), ""]
        for line in typed:
            lines += [f"typed: {line}", textwrap.fill(said(line), 120, subsequent_indent=" " * 7), ""]
    return "\n".join(lines)


def test_messages_are_those_of_the_golden_file() -> None:
    now = conversation()
    if os.environ.get("MIPCASH_GOLDEN") == "write":
        GOLDEN.write_text(now, encoding="utf-8")
    assert now == GOLDEN.read_text(encoding="utf-8")
    assert "parameters[" not in now  # Pyomo's names of what is behind a parameter
    assert max(len(said(line)) for typed in TYPED.values() for line in typed) < 480  # the cure is not lost in it
