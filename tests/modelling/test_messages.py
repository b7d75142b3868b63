"""Messages to users against the golden file ``golden/messages.txt``, which contains inputs and their answers.

Every line after ``typed:`` runs in a new space, which is declared at the top of the file. The answer follows the line,
so a changed message shows as a change of the file. This command writes all answers again, also those of new lines:
``MIPCASH_GOLDEN=write pytest tests/modelling/test_messages.py``. Read them afterwards.
"""

from __future__ import annotations

import math
import os
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pyomo.environ as pyo
import pytest

import mipcash as mc
from mipcash.errors import MipcashError, RuleError, SpaceError
from mipcash.space.compiled import declaration_of

GOLDEN = Path(__file__).parent / "golden" / "messages.txt"
TYPED = "typed: "


def everything(space: mc.Space) -> tuple[object, ...]:
    """Return all components of a space that a declaration could add."""
    kinds = (pyo.Var, pyo.BooleanVar, pyo.Constraint, pyo.Expression, pyo.Block)
    components = [d.name for d in space.model.component_data_objects(kinds, descend_into=pyo.Block)]
    declaration = declaration_of(space)
    return (
        tuple(space.parameters),
        tuple(space.auxiliaries),
        tuple(space.rules),
        len(declaration.groups),
        len(declaration.numbers),
        tuple(declaration.conditions),
        tuple(components),
        tuple(map(str, space.model.parameters)),
    )


def said(line: str, declared: str) -> str:
    """Return the error message of a line, or the text of its result. Assert that a refused line leaves no component."""
    names: dict[str, Any] = {"mc": mc, "np": np, "math": math, "pyo": pyo}
    exec(declared, names)
    space = names["space"]
    known, before = {**space.parameters, **space.rules}, everything(space)
    try:
        try:
            value = eval(line, names)
        except SyntaxError:
            value = exec(line, names)
    except MipcashError as error:
        assert everything(space) == before, line
        return f"said:  {error}"
    made = [thing for name, thing in {**space.parameters, **space.rules}.items() if name not in known]
    shown = "" if value is None else repr(value)
    return f"works: {shown if shown.startswith(('<exp', '<rel')) else ', '.join(map(repr, made)) or value}"


def conversation(text: str) -> str:
    """Return the golden file with its answers computed again."""
    paragraphs = text.rstrip("\n").split("\n\n")
    declared = textwrap.dedent(paragraphs[1])
    for k, paragraph in enumerate(paragraphs):
        if paragraph.startswith(TYPED):
            line = paragraph.splitlines()[0].removeprefix(TYPED)
            answer = said(line, declared)
            assert len(answer) < 480, line  # longer messages would hide the remedy
            assert "parameters[" not in answer  # Pyomo's internal name of a parameter
            paragraphs[k] = f"{TYPED}{line}\n{textwrap.fill(answer, 120, subsequent_indent=' ' * 7)}"
    return "\n\n".join(paragraphs) + "\n"


def test_messages_are_those_of_the_golden_file() -> None:
    text = GOLDEN.read_text(encoding="utf-8")
    now = conversation(text)
    if os.environ.get("MIPCASH_GOLDEN") == "write":
        GOLDEN.write_text(now, encoding="utf-8")
        text = now
    assert now == text
    assert text.count(TYPED) > 200


def base() -> mc.Space:
    space = mc.Space("base")
    space.integer("layers", 0, 3)
    space.categorical("act", ["relu", "tanh"])
    return space


def test_a_refused_module_leaves_nothing_behind() -> None:
    space = base()
    space.integer("m.a.k", 0, 1)
    before = everything(space)
    with pytest.raises(SpaceError, match=r"m\.a\.k"):
        space.module("m", {"a": {"k": mc.Integer(0, 1)}})
    assert everything(space) == before
    assert space.is_legal({"layers": 1, "act": "relu", "m.a.k": 1})


def test_bounds_that_a_live_model_could_refuse() -> None:
    space = base()
    before = everything(space)
    space.model.free = pyo.Var()
    with pytest.raises(RuleError, match="unbounded"):
        space.rule("conditional", space.model.free <= space["layers"], when=space["act"]["relu"])
    del space.model.free
    assert everything(space) == before
    space.model.stranger = pyo.Var(domain=pyo.Binary)
    with pytest.raises(SpaceError, match=r"'r'.*is_\("):  # no configuration decides it
        space.real("r", 0, 1, when=1 * space.model.stranger)
