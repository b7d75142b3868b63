"""Results of small runs against ``golden/told.txt``: what a study says of outcomes of every kind.

The optimizer draws configurations at random; the outcomes are functions of them. After an intended change,
``python tests/study/test_told.py`` writes the file again; read its difference.
"""

from __future__ import annotations

import contextlib
import io
import re
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mipcash as mc
from mipcash.study.finalists import text_of as text_of_finalists
from mipcash.study.result import Result

GOLDEN = Path(__file__).parent / "golden" / "told.txt"
COMMON: dict[str, Any] = {"optimizer": "random", "seed": 3}
TIMES = ("started", "finished", "duration", "seconds", "study")


def space() -> mc.Space:
    made = mc.Space("box")
    a, kind = made.integer("a", 0, 9), made.categorical("kind", ["p", "q"])
    made.real("x", 0, 1, when=kind["p"])
    made.rule("few", a + 3 * kind["q"] <= 10)
    return made


def noise(config: dict[str, Any], k: int = 0) -> float:
    return float(np.random.default_rng([int(1e6 * config.get("x", 0.5)), config["a"], k]).normal())


def loss(config: dict[str, Any]) -> float:
    return (config["a"] - 4) ** 2 / 4 + config.get("x", 0.3)


def limited() -> Result:
    """Limits on outputs, failures of several kinds, and an output that fails alone."""

    def objective(config: dict[str, Any]) -> Any:
        if config["a"] == 5:
            return mc.Failed("diverged at step 12", values={"ms": 9.5})
        if config["a"] == 6:
            raise ValueError("no memory for 6")
        auc = float("nan") if config["a"] == 1 else 0.5 + 0.04 * config["a"]
        return {"loss": loss(config), "ms": 2.0 + config["a"] / 2 + config.get("x", 0.0), "auc": auc}

    return mc.minimize(objective, space(), 16, limits={"ms": 5.0, "auc": (0.6, None)}, **COMMON)


def maximised() -> Result:
    """A maximised loss with a limit on it, and known evaluations, one of them illegal, two of them alike."""
    with mc.Study(space(), "random", seed=3, direction="maximize", limits={"loss": (None, 6.0)}) as study:
        study.add({"a": 2, "kind": "q"}, {"loss": 3.5, "ms": 1.0})
        study.add({"a": 2, "kind": "q"}, {"loss": 4.5, "ms": 2.0})
        study.add({"a": 9, "kind": "q"}, 5.9, illegal="learn")
        study.add({"a": 0, "kind": "q"}, mc.Failed("no such file"))
        study.enqueue({"a": 5, "kind": "p", "x": 0.25})
        for _ in range(8):
            trial = study.ask()
            study.tell(trial, 7.0 - loss(trial.config))
        study.lose(study.ask(), "the machine was switched off")
        return study.result


def several() -> Result:
    """Three objectives of different directions under a limit."""

    def objective(config: dict[str, Any]) -> dict[str, float]:
        return {
            "loss": loss(config),
            "ms": 10.0 - config["a"],
            "auc": config.get("x", 0.4) ** 2,
            "mb": 3.0 * config["a"],
        }

    directions = {"loss": "minimize", "ms": "minimize", "auc": "maximize"}
    return mc.minimize(objective, space(), 18, direction=directions, limits={"mb": 20.0}, **COMMON)


def decoupled() -> Result:
    """A function per output, with costs."""
    functions = {"loss": loss, "ms": lambda config: 1.0 + config["a"]}
    budget = mc.Budget(mc.Cost(60), costs={"loss": 5, "ms": 1})
    return mc.minimize(functions, space(), budget, limits={"ms": 5.5}, **COMMON)


def raced() -> Result:
    """Folds, pruned by racing, with confirmation of the best."""

    def objective(config: dict[str, Any], repeat: int = 0) -> Iterator[dict[str, float]]:
        for k in range(5):
            yield {"loss": loss(config) + 0.2 * noise(config, 10 * repeat + k), "ms": config["a"] + 0.1 * k}

    confirm = mc.Confirm(finalists=3, repeats=2)
    return mc.minimize(objective, space(), 30, pruning=mc.Racing(c=1.0), confirm=confirm, limits={"ms": 8.0}, **COMMON)


def halved() -> Result:
    """Learning curves, pruned by halving, in a budget of steps."""

    def objective(config: dict[str, Any]) -> Iterator[float]:
        for epoch in range(9):
            yield loss(config) + 4.0 / (1 + epoch) + 0.05 * noise(config, epoch)

    return mc.minimize(objective, space(), mc.Steps(90), pruning="halving", **COMMON)


def replicated() -> Result:
    """A noisy loss, of which the best configurations are measured again."""

    def objective(config: dict[str, Any], repeat: int = 0) -> float:
        return loss(config) + noise(config, repeat)

    return mc.minimize(objective, space(), 24, confirm="replicate", **COMMON)


def varied() -> Result:
    """Outcomes with their own variance, texts and numbers beside the loss, at two fidelities."""
    made = space()
    made.fidelity("rows", 100, 400)

    def objective(config: dict[str, Any]) -> dict[str, Any]:
        return {"loss": loss(config) + 20 / config["rows"], "variance": 1.0 / config["rows"], "note": f"a{config['a']}"}

    return mc.minimize(objective, made, 12, **COMMON)


RUNS: tuple[Callable[[], Result], ...] = (limited, maximised, several, decoupled, raced, halved, replicated, varied)


def shown(value: Any) -> str:
    """A value with six digits of each float."""
    if isinstance(value, dict):
        return ", ".join(f"{name}={shown(of)}" for name, of in value.items() if name.split(".")[0] not in TIMES)
    if isinstance(value, (list, tuple, np.ndarray)):
        return f"[{', '.join(map(shown, value))}]"
    return f"{value + 0.0:.6g}" if isinstance(value, float) else str(value)


def said(run: Callable[[], Result]) -> Iterator[str]:
    """All that the result of a run says, without times."""
    shown_meanwhile = io.StringIO()
    with warnings.catch_warnings(record=True) as caught, contextlib.redirect_stderr(shown_meanwhile):
        warnings.simplefilter("always")
        result = run()
    yield f"{run.__name__}: {run.__doc__}"
    yield from re.sub(r"  (ask|eval|left) [\d.:]+ (ms|s|min)\b", "", shown_meanwhile.getvalue()).splitlines()
    yield from (line for line in f"{result!r}\n{result}".splitlines() if not line.startswith("seconds:"))
    yield from text_of_finalists(result.finalists, None if result.best is None else result.best.number)
    yield from (f"warning: {w.message}" for w in caught)
    yield f"best: {shown(result.config or {})} with {shown(result.value)}{result.observed}; {result.stopped}"
    yield f"numbers: {shown({n: getattr(result, n) for n in dir(result) if n.startswith('n_')})}; {result.problem()}"
    yield f"values: {shown(result.values)}, fresh {shown(result.fresh)}"
    yield f"nearest: {result.nearest}"
    yield from (f"finalist: {f.number} {shown(f.searched)} {shown(f.fresh)} {f.problem}" for f in result.finalists)
    yield from repr(result.limits).splitlines()
    if result.objectives.several:
        yield f"front: {[t.number for t in result.front]}, {shown(result.hypervolume())} and {shown(result.hypervolume([9, 9, 0]))}"
    else:
        curve = result.convergence()
        yield f"curve: {shown([*map(float, curve.incumbent)])}"
    yield from (f"trial: {shown(row)}" for row in result.to_rows())
    for trial in result.history:
        outputs = {
            name: f"{o.status} {shown(o.value)} {shown(o.folds)} {o.message}"
            for name, o in trial.outcome.outputs.items()
        }
        flags = [
            name
            for name in ("complete", "pruned", "known", "legal", "done", "failed", "pending")
            if getattr(trial, name)
        ]
        yield f"  {trial.number} {trial.origin}: {' '.join(flags)}; {trial.steps} steps, repeat {trial.repeat}; {shown(outputs)}"
        yield f"  {trial}"
        yield from (f"  {trial.number} violates {v} by {shown(v.by)}" for v in result.violations(trial))


def text_of(run: Callable[[], Result]) -> str:
    """The same in lines, without the place of this file."""
    return re.sub(r"\(\S*test_told.py:\d+\)", "(here)", "\n".join(line.rstrip() for line in said(run)) + "\n")


@pytest.mark.parametrize("run", RUNS)
def test_results_are_those_of_the_file(run: Callable[[], Result]) -> None:
    assert text_of(run) in GOLDEN.read_text(encoding="utf-8")


if __name__ == "__main__":
    GOLDEN.write_text("".join(map(text_of, RUNS)), encoding="utf-8")
