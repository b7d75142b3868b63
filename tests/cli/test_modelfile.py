"""Model files: loading by name or path, and error messages that say what to change."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mipcash.cli import modelfile
from mipcash.errors import ModelError
from mipcash.optimizers.outcome import Outcome
from mipcash.study.result import Result
from mipcash.study.trial import Trial

Write = Callable[..., Path]
HEAD = "import mipcash as mc\nspace = mc.Space('s')\nspace.real('x', 0, 1)\n"


def test_every_installed_model_is_listed_with_its_description_and_loads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "mipcash.models.vae", raising=False)
    known = modelfile.names()
    assert "mipcash.models.vae" not in sys.modules
    assert {"vae", "xgboost", "synthetic", "sklearn_pipeline"} <= set(known)
    assert all(known.values())
    assert not any(name.startswith("_") for name in known)
    loaded = modelfile.load("synthetic")
    assert (loaded.title, loaded.reference, loaded.description) == ("synthetic", "synthetic", known["synthetic"])


def test_options_reach_build_and_report_with_the_types_that_they_ask_for(write: Write) -> None:
    write()
    loaded = modelfile.load("bowl.py", {"low": "-3", "strict": "Yes", "folds": "none", "label": "7"})
    assert loaded.options == {"low": -3.0, "strict": True, "folds": None, "label": "7"}
    assert type(loaded.options["low"]) is float
    assert loaded.space.parameters["x"].domain.low == -3.0  # type: ignore[union-attr]
    assert modelfile.load("bowl.py", {"folds": "5"}).options == {"folds": 5}
    result = Result((Trial(0, {"x": 0.5, "n": 1}, "done", Outcome.of(1.25)),))
    assert loaded.report(result) == "report: 7 = 0.500"
    write("from typing import Literal\n" + HEAD + "def build(a: Literal['x', 2]): return space, float\n", "listed.py")
    assert [modelfile.load("listed.py", {"a": a}).options["a"] for a in ("x", "2")] == ["x", 2]
    write(HEAD + "objective = float\n", "silent.py")
    assert modelfile.load("silent.py").report(result) == ""


def test_modules_beside_the_file_may_be_imported_but_never_hide_installed_ones(write: Write) -> None:
    write("FACTOR = 3\n", "beside_the_model.py")
    write("raise RuntimeError('this is not numpy')\n", "numpy.py")
    body = "import numpy\nfrom beside_the_model import FACTOR\ndef objective(c): return FACTOR * numpy.sqrt(c['x'])\n"
    write(HEAD + body, "user.py")
    assert modelfile.load("user.py").objective({"x": 4.0}) == 6.0


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("x = 1", {}, "declares neither `space` nor `objective`. A model file declares"),
        (HEAD, {}, "does not declare `objective`"),
        ("def objective(c): return 0", {}, "does not declare `space`"),
        ("space = 3\ndef objective(c): return 0", {}, "not a mipcash.Space but 3"),
        (HEAD + "objective = 0.5", {}, "has no function or dict of functions as `objective`"),
        (HEAD + "objective = {}", {}, "an objective of several functions has one per output"),
        (HEAD + "def objective(a, b): pass", {}, "cannot be called with one configuration"),
        ("def build(): return 1", {}, r"must return \(space, objective\), got int"),
        ("def build(): return 1, 2", {}, "not a mipcash.Space but 1"),
        ("def build(*, data): return 1, 2", {}, "needs the option 'data': add --option data=VALUE"),
        ("def build(): raise OSError('no data.csv')", {}, r"OSError: no data.csv .*line 1"),
        (HEAD + "objective = float", {"folds": "3"}, "takes no options"),
        (
            "def build(folds=5): pass",
            {"fold": "3"},
            r"no option 'fold'; did you mean 'folds'\? It has folds \(default 5\)",
        ),
        ("def build(folds=5): pass", {"folds": "x"}, "folds=x .*is not of type int"),
        ("def build(a: bool = 1): pass", {"a": "maybe"}, "'maybe' is not of type bool"),
        ("from typing import Literal\ndef build(a: Literal['x', 2] = 2): pass", {"a": "z"}, "'z' is none of x, 2"),
        ("import torch_that_is_not_there", {}, "needs the package 'torch_that_is_not_there'.*pip install torch"),
        ("raise ModuleNotFoundError(name='torch.nn')", {}, r'pip install "mipcash\[torch\]"'),
        ("raise ModuleNotFoundError(name='matplotlib')", {}, r'pip install "mipcash\[plots\]"'),
        ("space = (", {}, "is not valid Python: .* line 1"),
        ("import mipcash as mc\nmc.Space('s').real('x', 2, 1)", {}, "SpaceError: parameter 'x': low > high"),
        ("raise SystemExit(0)", {}, "if __name__ == '__main__'"),
        (
            HEAD + "objective = float\nDEFAULTS = {'budgets': 3}",
            {},
            r"DEFAULTS of .* has \['budgets'\]; it may set budget",
        ),
        (
            HEAD
            + "objective = float\nwarm = mc.minimize(objective, space, 2)\nDEFAULTS = {'budget': warm.n_evaluations}",
            {},
            "DEFAULTS read the result of a search at the top level of the file",
        ),
        (HEAD + "objective = float\nDEFAULTS = 3", {}, r"DEFAULTS of .* must be a dict such as .*, got int 3"),
    ],
)
def test_an_invalid_model_file_is_refused_with_the_reason(
    write: Write, text: str, options: dict[str, Any], message: str
) -> None:
    write(text, "wrong.py")
    with pytest.raises(ModelError, match=message):
        modelfile.load("wrong.py", options)


def test_starts_that_are_no_list_are_refused(write: Write) -> None:
    write(HEAD + "objective = float\ndef starts(): return 3\n", "begun.py")
    with pytest.raises(ModelError, match=r"starts\(\) of begun must return a list of configurations, got int 3"):
        modelfile.load("begun.py").starts()


def test_missing_models_are_refused_with_a_suggestion(write: Write) -> None:
    write()
    for reference, message in (
        ("synthetik", "did you mean 'synthetic'"),
        ("zzzzz", "there are .*vae"),
        ("bowl", r"For a file of your own give its path, \./bowl\.py"),
        ("bowls.py", "did you mean 'bowl.py'"),
        ("nowhere/at/all.py", "no model file"),
        ("_data", "there is no model '_data'"),
    ):
        with pytest.raises(ModelError, match=message):
            modelfile.load(reference)


SEARCHES = {
    "in a line": "objective = float\nresult = mc.minimize(objective, space, 10**9)\nprint(result.value)\n",
    "as a study": "objective = float\nwith mc.Study(space) as study:\n    study.ask()\n    raise ValueError\n",
    "of another objective": "def bake(c): return 1.0\nbest = mc.minimize(bake, space=space, budget=10**9)\nobjective = bake\n",
    "in a function": "objective = float\ndef main():\n    mc.minimize(objective, space, 10**9)\nraise SystemExit(main())\n",
    "in a loop": "objective = float\nfor seed in range(9):\n    mc.minimize(objective, space, 10**9, storage=f'{__name__}.db')\n",
}


@pytest.mark.parametrize("search", SEARCHES.values(), ids=SEARCHES)
def test_a_script_that_searches_is_loaded_without_its_search(search: str, write: Write) -> None:
    after = "import math\ndef report(result: float): return str(math.pi)\nDEFAULTS = {'budget': 7}\n"
    write(HEAD + search + after + "if __name__ == '__main__':\n    raise SystemExit(1)\n", "script.py")
    loaded = modelfile.load("script.py")
    assert (loaded.space.name, loaded.objective({"x": 1}) if "bake" in search else 1.0) == ("s", 1.0)
    assert loaded.defaults == {"budget": 7}
    assert loaded.report(Result(())) == "3.141592653589793"


def test_other_code_of_a_script_is_run(write: Write) -> None:
    other = "from scipy.optimize import minimize\nOFFSET = float(minimize(lambda x: (x[0] - 1) ** 2 + 3, [0.0]).fun)\n"
    write(HEAD + other + "def objective(c: dict) -> float: return OFFSET\n", "declared_apart.py")
    loaded = modelfile.load("declared_apart.py")
    assert loaded.objective({}) == pytest.approx(3.0)
    assert loaded.objective.__annotations__ == {"c": dict, "return": float}
    write(
        "from declared_apart import space, objective\nimport mipcash as mc\nmc.minimize(objective, space, 10**9)\n",
        "again.py",
    )
    assert modelfile.load("again.py").objective({}) == pytest.approx(3.0)
