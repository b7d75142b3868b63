"""A journal notices that it is resumed with another objective, and not that the same one was formatted anew."""

from __future__ import annotations

import functools
import importlib.util
import subprocess
import sys
import textwrap
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sharing
import tiny

import mipcash as mc
from mipcash.study.minimize import run
from mipcash.study.records.objective import identity_of

SCALE = 2.0
SEEN: list[float] = []


def digest(objective: Any) -> str:
    identity = identity_of(objective)
    assert identity is not None
    return identity["digest"]


def module(path: Path, text: str) -> Any:
    """Import a file as it is now."""
    path.write_text(textwrap.dedent(text))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = made
    spec.loader.exec_module(made)
    return made


def go(objective: Any, storage: Any, budget: int, **options: Any) -> mc.Result:
    space = tiny.tiny_space()
    return mc.minimize(
        objective, space, budget, optimizer=tiny.Counter(space), storage=storage, progress=False, **options
    )


def told(objective: Any, storage: Any, budget: int, **options: Any) -> list[str]:
    """Run, and return what was warned of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        go(objective, storage, budget, **options)
    return [str(w.message) for w in caught if "objective" in str(w.message)]


def other_loss(config: Any) -> float:
    return tiny.loss(config) + 1.0


# -- journals -------------------------------------------------------------------------------------------------------


def test_another_objective_is_told_with_both_names_and_the_cure(journal: Path) -> None:
    assert told(tiny.loss, journal, 2) == []
    assert told(tiny.loss, journal, 3) == []
    (said,) = told(other_loss, journal, 4)
    assert f"the finished trials of {journal} were evaluated by another objective" in said
    assert "it was 'loss' and is 'other_loss' now" in said
    assert "kept, and mixed" in said
    assert "storage=mc.Journal(path, fresh=True) (mipcash run --fresh) or another storage=" in said
    assert told(other_loss, journal, 5) == []  # it was said


def test_before_anything_is_finished_there_is_nothing_to_mix(journal: Path) -> None:
    def interrupted(config: Any) -> float:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        go(interrupted, journal, 3)
    assert told(tiny.loss, journal, 3) == []


def test_a_run_that_turns_the_warning_into_an_error_changes_nothing(journal: Path) -> None:
    go(tiny.loss, journal, 2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(2):
            with pytest.raises(UserWarning, match="another objective"):
                go(other_loss, journal, 4)
    assert told(tiny.loss, journal, 3) == []


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_a_worker_with_another_objective_is_told(kind: str, journal: Path, request: pytest.FixtureRequest) -> None:
    address = f"sqlite:///{journal}" if kind == "sqlite" else str(request.getfixturevalue("postgres"))
    place = sharing.at(address)
    a, b = (mc.Study(tiny.tiny_space(), tiny.Counter(tiny.tiny_space()), storage=place.writer("")) for _ in range(2))
    run(a, tiny.loss, 2, progress=False)
    with pytest.warns(UserWarning, match=r"it was 'loss' and is 'other_loss' now"):
        run(b, other_loss, 3, progress=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run(b, other_loss, 4, progress=False)
    with pytest.warns(UserWarning, match=r"it was 'other_loss' and is 'loss' now"):
        run(a, tiny.loss, 5, progress=False)


SCRIPT = """
import sys, warnings
sys.path.insert(0, {folder!r})
import tiny
import mipcash as mc

{auxiliary}

{objective}

space = tiny.tiny_space()
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    mc.minimize(objective, space, int(sys.argv[2]), optimizer=tiny.Counter(space), storage=sys.argv[1], progress=False)
print([str(w.message) for w in caught if "objective" in str(w.message)])
"""


def test_in_another_process_the_same_function_is_the_same_however_it_is_written(journal: Path, tmp_path: Path) -> None:
    script, budget = tmp_path / "script.py", iter(range(1, 10))

    def said(auxiliary: str, objective: str) -> str:
        script.write_text(
            SCRIPT.format(folder=str(Path(tiny.__file__).parent), auxiliary=auxiliary, objective=objective)
        )
        command = [sys.executable, str(script), str(journal), str(next(budget))]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    auxiliary = "def times(x):\n    return x * WEIGHT\n\nWEIGHT = 2"
    first = "def objective(config):\n    return times(config['layers'])"
    assert said(auxiliary, first) == "[]"
    assert said(auxiliary, first) == "[]"
    assert said("import os\n\n" + auxiliary, first.replace("    return", "    # anew\n    return")) == "[]"
    assert said(auxiliary, 'def objective(\n  config,\n):\n  """Say so."""\n  return (times(config["layers"]))') == "[]"
    assert "is the same by name, and its source" in said(auxiliary.replace("x * W", "x + W"), first)
    assert "is the same by name, and its source" in said(
        auxiliary.replace("x * W", "x + W").replace("= 2", "= 3"), first
    )
    assert "is the same by name, and its source" in said(auxiliary, first + " + 1")


# -- what counts ----------------------------------------------------------------------------------------------------


def closing(value: Any) -> Callable[[Any], float]:
    def objective(config: Any) -> Any:
        return config, value

    return objective


def test_what_a_function_closes_over_and_its_defaults_count() -> None:
    arrays = np.arange(6.0), np.arange(6.0).reshape(2, 3), np.arange(6), np.array([0.0, 1, 2, 3, 4, 5.5])
    distinct = [None, True, 1, 1.0, "1", b"1", (1,), [1], {"a": 1}, {"a": 2}, {"a": [1, {"b": 2}]}, *arrays]
    assert len({digest(closing(value)) for value in distinct}) == len(distinct)
    assert len({digest(lambda c, k=k: c[k]) for k in range(3)}) == 3
    assert digest(closing({"a": 1, "b": 2})) == digest(closing({"b": 2, "a": 1}))
    assert digest(closing(np.arange(6.0))) == digest(closing(np.arange(6.0)))
    assert digest(closing(closing(1))) == digest(closing(closing(1))) != digest(closing(closing(2)))
    assert digest(closing(tiny.loss)) != digest(closing(other_loss))


def test_other_objects_count_by_their_type_alone() -> None:
    assert digest(closing(object())) == digest(closing(object())) != digest(closing(tiny.tiny_space()))
    assert digest(closing(np.array([object()]))) == digest(closing(np.array([object()])))


def test_lambdas_of_one_line_are_told_apart() -> None:
    both = {"loss": lambda c: c["x"], "ms": lambda c: (lambda d: d["y"])(c)}
    assert digest(both["loss"]) != digest(both["ms"])
    assert digest(both["loss"]) == digest(lambda c: c["x"])
    assert digest(both) == digest(dict(reversed(both.items())))
    assert digest(both) != digest({**both, "ms": both["loss"]})


def test_an_argument_beside_a_lambda_is_no_part_of_it(journal: Path) -> None:
    space = tiny.tiny_space()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mc.minimize(
            lambda config: config["lr"], space, 2, optimizer=tiny.Counter(space), storage=journal, progress=False
        )
        mc.minimize(
            lambda config: config["lr"], space, 4, optimizer=tiny.Counter(space), storage=journal, progress=False
        )


def test_globals_of_its_module_count(monkeypatch: pytest.MonkeyPatch) -> None:
    def objective(config: Any) -> float:
        SEEN.append(1.0)
        return SCALE * other_loss(config) * len(SEEN)

    before = digest(objective)
    monkeypatch.setattr(sys.modules[__name__], "SEEN", [3.0])  # it writes to it
    assert digest(objective) == before
    monkeypatch.setattr(sys.modules[__name__], "SCALE", 3.0)
    assert digest(objective) != before


def test_a_parameter_is_no_global_of_the_same_name(tmp_path: Path) -> None:
    text = "config = {{'x': {}}}\ndef objective(config):\n    return [config for config in [config]][0]['x']\n"
    digests = {digest(module(tmp_path / "named.py", text.format(k)).objective) for k in range(2)}
    assert len(digests) == 1


def test_partial_functions_wrapped_ones_and_methods(tmp_path: Path) -> None:
    def scaled(config: Any, factor: float) -> float:
        return factor * tiny.loss(config)

    partials = [functools.partial(scaled, factor=k) for k in (1.0, 2.0, 2.0)]
    assert digest(partials[0]) != digest(partials[1]) == digest(partials[2])

    def timed(function: Any) -> Any:
        @functools.wraps(function)
        def called(config: Any) -> float:
            return float(function(config))

        return called

    assert digest(timed(tiny.loss)) == digest(tiny.loss) != digest(timed(other_loss))
    assert digest(functools.lru_cache(other_loss)) == digest(other_loss)
    assert digest(Shifted(1.0).shifted) != digest(Shifted(2.0).shifted)


@dataclass
class Shifted:
    shift: float

    def __call__(self, config: Any) -> float:
        shift = self.shift
        return tiny.loss(config) + shift

    def shifted(self, config: Any) -> float:
        return self(config)


class Counted:
    def __init__(self, weights: list[float]) -> None:
        self.weights, self.calls, self.cache = weights, 0, dict[str, float]()
        self.best: float | None = None

    def __call__(self, config: Any) -> float:
        self.calls += 1
        self.best = 1.0
        self.cache[str(config)] = 2.0
        return sum(self.weights)


def test_objects_count_by_their_class_and_by_what_calls_do_not_change() -> None:
    assert digest(Shifted(1.0)) == digest(Shifted(1.0)) != digest(Shifted(2.0))
    objective = Counted([1.0])
    before = digest(objective)
    objective({})
    assert objective.calls == 1
    assert digest(objective) == before == digest(Counted([1.0])) != digest(Counted([2.0]))


def test_what_a_function_writes_to_does_not_count(journal: Path) -> None:
    seen: list[Any] = []
    counts: dict[str, int] = {}
    calls = 0

    def objective(config: Any) -> float:
        nonlocal calls
        calls += 1
        seen.append(config)
        counts["all"] = counts.get("all", 0) + 1
        return tiny.loss(config)

    assert [told(objective, journal, budget) for budget in (1, 3, 5)] == [[], [], []]
    assert calls == len(seen) == counts["all"] == 5


def test_a_class_or_a_decorator_that_changes_is_noticed(tmp_path: Path) -> None:
    text = "class Loss:\n    def __call__(self, config):\n        return config['x'] {}\nobjective = Loss()\n"
    digests = [digest(module(tmp_path / "classed.py", text.format(end)).objective) for end in ("", "  # same", "+ 1")]
    assert digests[0] == digests[1] != digests[2]


@pytest.mark.parametrize("objective", [max, float, eval("lambda config: 1.0"), {"loss": tiny.loss, "ms": max}])
def test_without_source_nothing_is_compared(objective: Any, journal: Path) -> None:
    assert identity_of(objective) is None
    if not isinstance(objective, dict):
        go(tiny.loss, journal, 1)
        assert told(eval("lambda config: 1.0"), journal, 2) == []
        assert told(tiny.loss, journal, 3) == []
        assert len(told(other_loss, journal, 4)) == 1


def test_what_cannot_be_looked_at_is_not_compared() -> None:
    endless: list[Any] = []
    endless.append(endless)
    assert identity_of(closing(endless)) is None

    def recursive(config: Any) -> Any:
        return recursive(config)

    assert digest(recursive) == digest(recursive)
