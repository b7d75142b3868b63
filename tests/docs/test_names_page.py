"""Page of names: it has every public name, and every name on the page exists."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import mipcash as mc
from mipcash import report

PAGE = (Path(__file__).parents[2] / "docs" / "names.md").read_text(encoding="utf-8")
NAMED = set(re.findall(r"`([\w.]+)`", " ".join(re.findall(r"^\| (`[^|]*) \|", PAGE, re.M))))
"""Code in the first column of the tables."""
CLASSES = {"space": mc.Space, "study": mc.Study, "trial": mc.Trial, "result": mc.Result}


def test_every_public_name_and_argument_is_there() -> None:
    public = {f"mc.{name}" for name in mc.__all__ if name != "__version__"}
    assert public | set(inspect.signature(mc.minimize).parameters) | set(report.__all__) <= NAMED


def test_every_public_method_is_there() -> None:
    for word, each in CLASSES.items():
        methods = {f"{word}.{n}" for n, m in vars(each).items() if callable(m) and not n.startswith("_")}
        assert methods - NAMED <= {"trial.in_minimisation_form"}


def test_the_script_of_the_names_page_runs() -> None:
    rows = re.findall(r"^\| [^|]*\| `([^|]*)` \|$", PAGE.split("## ")[0], re.M)
    exec("\n".join(rows), {})


def test_named_attributes_exist() -> None:
    for name in NAMED:
        word, _, attribute = name.partition(".")
        if word in CLASSES and attribute:
            known = set(dir(CLASSES[word])) | set(getattr(CLASSES[word], "__annotations__", ()))
            known |= set(vars(mc.Space())) if word == "space" else set()
            assert attribute in known, name
