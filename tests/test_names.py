"""Public names: they are few, each has one place, and an argument means the same in every function."""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import pytest

import mipcash as mc
from mipcash.errors import MipcashError
from mipcash.study.minimize import run

WORDS = {
    "limits": "limit",
    "known": None,
    "settings": None,
    "executor": None,
    "retries": None,
    "amount": None,
    "costs": None,
}
"""Arguments with another name in ``mipcash run``. None marks an argument that only a model file can set."""
GROUPED = {"execution": mc.Execution, "optimizer": mc.Method, "budget": mc.Budget, "storage": mc.Journal}
"""Arguments that group several settings. Each field is a separate option of the command line."""
SCRIPT = {"objective", "space", "callbacks", "progress"}
"""Arguments that only scripts have."""
STATES = """Potentials Effort Best _Batch _Pending _Joining _Instance CostNetwork Clock Reader Inference Data Scores Models
Settled LiveParts _Row Chart Reserve"""
"""Dataclasses whose objects change while something is searched, solved, read or drawn; all others are frozen."""


def arguments(function: Any) -> dict[str, inspect.Parameter]:
    return {n: p for n, p in inspect.signature(function).parameters.items() if n != "self"}


def test_public_names_are_few_and_documented() -> None:
    names = [n for n in dir(mc) if not n.startswith("_")]
    assert names == sorted(n for n in mc.__all__ if n != "__version__")
    assert len(names) <= 31
    for name in names:
        assert (getattr(mc, name).__doc__ or "").strip(), name


def test_settings_classes_are_only_in_mc_settings() -> None:
    assert dir(mc.settings) == sorted(mc.settings.__all__)
    for name in mc.settings.__all__:
        found = getattr(mc.settings, name)
        assert is_dataclass(found)
        assert found.__name__ == name
        assert name not in mc.__all__
        assert all("default" in str(f) for f in fields(found))
        found()  # every field has a default, so that a user can change a single one
    with pytest.raises(AttributeError, match="has no attribute 'Hybrid'; it has AlternatingSettings"):
        mc.settings.Hybrid  # type: ignore[attr-defined] # noqa: B018


def test_dataclasses_other_than_states_are_frozen() -> None:
    changing = list[str]()
    package = Path(mc.__file__).parent
    for path in package.rglob("*.py"):
        if path.relative_to(package).parts[0] in ("models", "solvers"):
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            made = [ast.unparse(d) for d in getattr(node, "decorator_list", ())]
            if isinstance(node, ast.ClassDef) and any(
                d.startswith("dataclass") and "frozen=True" not in d for d in made
            ):
                changing.append(node.name)
    assert set(changing) == set(STATES.split())


def test_moved_and_misspelt_names_are_suggested() -> None:
    with pytest.raises(AttributeError, match=r"'HybridSettings'; it is mipcash\.settings\.HybridSettings"):
        mc.HybridSettings  # type: ignore[attr-defined] # noqa: B018
    with pytest.raises(AttributeError, match=r"no attribute 'minimise'; did you mean 'minimize'\?"):
        mc.minimise  # type: ignore[attr-defined] # noqa: B018
    out = subprocess.run(
        [sys.executable, "-c", "import mipcash as mc; print(mc.errors.SpaceError)"], capture_output=True, text=True
    )
    assert out.stdout == "<class 'mipcash.errors.SpaceError'>\n"


def test_arguments_mean_the_same_in_minimize_and_in_a_study() -> None:
    """Assert that common arguments have one type and default. A study only adds what the command line stores in it."""
    ours, theirs = arguments(mc.minimize), arguments(mc.Study)
    assert len(ours) <= 14
    assert set(theirs) - set(ours) == {"model", "options", "costs", "retries"}
    for name in set(ours) & set(theirs):
        assert (ours[name].default, ours[name].annotation) == (theirs[name].default, theirs[name].annotation), name
    existing = arguments(run)  # resumes an existing study
    assert set(existing) - set(ours) == {"study"}
    assert all(existing[name].default == ours[name].default for name in set(existing) - {"study"})
    for function in (mc.minimize, mc.Study):
        described = set(
            re.findall(r"[a-z_]+", " ".join(re.findall(r"^    ([a-z_, ]+): ", inspect.getdoc(function) or "", re.M)))
        )
        assert set(arguments(function)) <= described, function


def test_command_line_options_have_the_names_of_the_arguments() -> None:
    from mipcash.cli.main import run as command

    here = set(arguments(command))
    names = set(arguments(mc.minimize)) - SCRIPT
    for name in [*(names - GROUPED.keys()), *(field.name for group in GROUPED.values() for field in fields(group))]:
        called = WORDS.get(name, name)
        assert called is None or called in here, name


def test_settings_can_be_given_as_a_dict() -> None:
    space = mc.Space("one")
    space.integer("a", 1, 9)
    study = mc.Study(space, optimizer=mc.Method(settings={"n_initial": 3, "acquisition": "thompson"}))
    assert study.optimizer.settings == mc.settings.HybridSettings(n_initial=3, acquisition="thompson")  # type: ignore[attr-defined]
    with pytest.raises(MipcashError, match=r"optimizer 'hybrid' has no setting 'n_init'; did you mean 'n_initial'\?"):
        mc.Study(space, optimizer=mc.Method(settings={"n_init": 3}))
    with pytest.raises(MipcashError, match=r"optimizer 'random' has no setting 'n_initial'; it has"):
        mc.Study(space, optimizer=mc.Method("random", settings={"n_initial": 3}))


def test_directions_of_space_optimum() -> None:
    space = mc.Space("one")
    a = space.integer("a", 1, 9)
    assert [space.optimum(a, d).value for d in ("min", "minimize", "max", "maximize")] == [1, 1, 9, 9]
    assert space.optimum(a, direction="maximize").value == 9


def test_attribute_names_of_other_libraries_suggest_ours() -> None:
    space = mc.Space("one")
    space.real("x", 0, 1)
    with mc.Study(space, "random") as study:
        trial = study.tell(study.ask(), 1.0)
        result = study.result
        for of, wrong, ours in (
            (result, "best_params", "; use result.config"),
            (result, "histroy", "; use result.history"),
            (trial, "params", "; use trial.config"),
            (study, "enqueue_trial", "; use study.enqueue()"),
            (study, "zzz", "has no attribute 'zzz'$"),
        ):
            with pytest.raises(AttributeError, match=re.escape(ours) if ours.startswith(";") else ours):
                getattr(of, wrong)
        assert not hasattr(trial, "params")
        assert result.best_trial is result.best or result.best_trial == result.best
        pytest.importorskip("pandas")
        assert result.trials_dataframe().to_dict("records") == result.to_rows()
