"""Several objectives: a legal and feasible Pareto front, resumed runs, and messages for unsupported settings."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import mipcash as mc
from mipcash.cli.main import app
from mipcash.errors import DefectError, MipcashError, StorageError

NAMES = ["loss", "latency_ms"]


def space() -> mc.Space:
    found = mc.Space("network")
    layers = found.integer("layers", 1, 4)
    width = found.ordinal("width", [16, 32, 64, 128])
    found.categorical("act", ["relu", "tanh"])
    found.real("rate", 0.0, 1.0)
    found.rule("memory", layers * width <= 256)
    return found


def network(config: dict[str, Any]) -> dict[str, float]:
    size = config["layers"] * config["width"]
    loss = 8.0 / size + (config["rate"] - 0.3) ** 2 + 0.05 * (config["act"] == "tanh")
    return {"loss": loss, "latency_ms": size / 64 + 0.3 * (config["act"] == "relu")}


def run(objective: Any = network, budget: int = 16, **given: Any) -> mc.Result:
    return mc.minimize(objective, space(), budget, **{"direction": NAMES, "progress": False, **given})


def dominates(a: mc.Trial, b: mc.Trial) -> bool:
    pairs = [(a.outcome[n].value, b.outcome[n].value) for n in NAMES]
    return all(x <= y for x, y in pairs) and any(x < y for x, y in pairs)  # type: ignore[operator]


def test_the_front_is_not_dominated_and_the_same_after_a_resume(tmp_path: Path) -> None:
    whole = run(budget=13)
    assert all(space().is_legal(t.config) for t in whole.history)
    assert len(whole.front) >= 4
    assert not any(dominates(a, b) for a in whole.history for b in whole.front)
    assert all(t in whole.front or any(dominates(f, t) for f in whole.front) for t in whole.history if t.done)
    losses = [t.loss for t in whole.front]
    assert losses == sorted(losses)  # type: ignore[type-var]
    assert whole.best in whole.front
    assert whole.config == whole.best.config  # type: ignore[union-attr]
    assert whole.hypervolume({"loss": 1.0, "latency_ms": 5.0}) == whole.hypervolume([1.0, 5.0]) > 2.5
    assert whole.hypervolume() > 0.0
    assert [row["front"] for row in whole.to_rows()] == [t in whole.front for t in whole.history]
    text = str(whole)
    assert f"front of {len(whole.front)}:" in text
    assert re.search(r"loss +latency_ms", text)
    assert "balanced" in text
    run(budget=9, storage=tmp_path / "run.db")
    resumed = run(budget=13, storage=tmp_path / "run.db")
    assert [t.config for t in resumed.history] == [t.config for t in whole.history]
    with pytest.raises(StorageError, match=r"objectives were .* and are .* now"):
        run(storage=tmp_path / "run.db", direction=["latency_ms", "loss"])
    with pytest.raises(StorageError, match=r"objectives were .*latency_ms.* and are {.loss.: .minimize.} now"):
        run(storage=tmp_path / "run.db", direction="minimize")


def test_named_objectives_have_directions_limits_failures_and_known_evaluations() -> None:
    def objective(config: dict[str, Any]) -> Any:
        if config["width"] == 16:
            raise mc.Failed("too narrow", values={"ms": 0.1})
        told = network(config)
        return {"accuracy": 1.0 - told["loss"], "ms": told["latency_ms"], "note": "text"}

    best = {"layers": 2, "width": 64, "act": "relu", "rate": 0.3}
    given: dict[str, Any] = {"direction": {"accuracy": "maximize", "ms": "minimize"}, "limits": {"ms": 3.0}}
    result = run(objective, 10, known=[(best, objective(best))], execution=mc.Execution(workers=2), **given)
    first = result.history[0]
    assert first.known
    assert first.loss == first.values["accuracy"] == pytest.approx(1.0 - 8.0 / 128)
    assert first in result.front
    assert all((t.values["ms"]) <= 3.0 for t in result.front)
    accuracies = [t.values["accuracy"] for t in result.front]
    assert accuracies == sorted(accuracies, reverse=True)
    assert all(t.message == "too narrow" and t.config["width"] == 16 for t in result.history if t.failed)
    assert result.hypervolume({"accuracy": 0.0, "ms": 4.0}) > 1.0
    assert "accuracy 0.9" in str(result.front[0])


def test_objectives_may_be_told_in_parts_and_in_batches() -> None:
    study = mc.Study(space(), direction=NAMES, optimizer=mc.Method(settings={"n_initial": 3}))
    first, *rest = study.ask(3)
    assert study.tell(first, {"latency_ms": 2.0}, partial=True).pending
    told = study.tell(first, {"loss": 0.5})
    assert (told.done, told.values) == (True, {"latency_ms": 2.0})
    for trial in rest:
        study.tell(trial, network(trial.config))
    batch = study.ask(3)
    assert len({repr(t.config) for t in batch}) == 3
    for outcome in ({"loss": 0.1}, 0.3, None):
        with pytest.raises(
            mc.errors.TellError, match=r"give a dict with 'loss' and 'latency_ms', or mc.Failed.*still pending"
        ):
            study.tell(batch[0], outcome)
    failed = study.tell(batch[0], {"loss": 0.1, "latency_ms": math.nan})
    assert failed.failed
    assert "nan" in failed.message
    with pytest.raises(
        ValueError, match=r"the outcome of the configuration is invalid: it is float 0.3 and no 'latency_ms'"
    ):
        study.add(batch[1].config, 0.3)
    assert len(study.result.front) <= 3


def test_invalid_objectives_are_refused(tmp_path: Path) -> None:
    for objectives, said in (
        ("loss", "direction must be 'minimize' or 'maximize', got 'loss'"),
        (5, "direction must be 'minimize' or 'maximize', got 5"),
        (["loss"], "direction= names several objectives, and \\['loss'\\] was given; for one loss it is"),
        ([], "direction= names several objectives, and none was given"),
        (["loss", "loss"], "the objective 'loss' is given twice; give each once"),
        (["loss", ""], "an objective has the name of an output, a text that is not empty"),
        ({"loss": "minimize", "ms": "up"}, "objective 'ms': direction must be 'minimize' or 'maximize', got 'up'"),
    ):
        with pytest.raises(ValueError, match=said):
            run(direction=objectives, storage=tmp_path / "run.db")
    assert not (tmp_path / "run.db").exists()


def test_settings_that_several_objectives_do_not_support_are_refused() -> None:
    for given, said in (
        ({"pruning": True}, "several objectives, \\['loss', 'latency_ms'\\], and pruning="),
        ({"confirm": 2}, "and confirm= evaluates again what has the lowest loss"),
    ):
        with pytest.raises(ValueError, match=said):
            run(**given)
    apart = {"loss": lambda c: network(c)["loss"], "latency_ms": lambda c: network(c)["latency_ms"]}
    with pytest.raises(ValueError, match="let one function return a dict with all of them"):
        run(apart)
    one = mc.minimize(lambda c: c["rate"], space(), 2, optimizer="random", progress=False)
    with pytest.raises(MipcashError, match=r"a front is of several objectives, and this study has one.*result\.best"):
        _ = one.front
    with pytest.raises(ValueError, match=r"a finite number for each of \['loss', 'latency_ms'\]"):
        run(budget=2, optimizer="random").hypervolume({"loss": 1.0})


def test_an_objective_that_no_evaluation_returns_is_a_defect() -> None:
    with pytest.raises(DefectError, match=r"returned float 1.0 and no 'latency_ms'"):
        run(lambda config: 1.0, optimizer="random")
    with pytest.raises(DefectError, match=r"without 'latency_ms', only \['loss', 'latency'\]; did you mean 'latency'"):
        run(lambda config: {"loss": 1.0, "latency": 2.0}, optimizer="random")


MODEL = """
import mipcash as mc

DEFAULTS = {"budget": 8, "direction": {"score": "maximize", "ms": "minimize"}, "optimizer": "random"}
space = mc.Space("two")
space.integer("n", 1, 9)


def objective(config):
    return {"score": config["n"] ** 0.5, "ms": config["n"] * 2.0, "mb": 10.0 - config["n"]}
"""


def test_the_command_line_shows_the_front(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("two.py").write_text(MODEL, encoding="utf-8")

    def mipcash(*arguments: str) -> str:
        found = CliRunner().invoke(app, [*arguments])
        assert found.exit_code == 0, found.output
        return re.sub(r"\x1b\[[0-9;]*m", "", found.output)

    said = mipcash("run", "two.py", "--storage", "two.db", "--quiet")
    assert "front of 8:" in said
    assert re.search(r"trial +score +ms", said)
    assert re.search(r"trial +score +ms +ask", mipcash("show", "two.db"))
    assert "front of 9:" in mipcash("resume", "two.db", "--budget", "9", "--model", "two.py", "--quiet")
    other = ["run", "two.py", "--objective", "score=maximize", "--objective", "mb", "--storage", "mb.db", "--quiet"]
    assert "front of 1:" in mipcash(*other)
    refused = CliRunner().invoke(app, ["run", "two.py", "--objective", "score", "--storage", "x.db"])
    assert refused.exit_code == 2
    assert "direction= names several objectives" in refused.output


@pytest.mark.parametrize("loss", [5.0, math.nan, "low"])
def test_a_loss_that_is_no_objective_changes_nothing(loss: Any) -> None:
    space = mc.Space("s")
    space.real("x", 0.0, 1.0)

    def run(**more: Any) -> mc.Result:
        return mc.minimize(
            lambda c: {**more, "accuracy": 1 - c["x"], "ms": 10 * c["x"]},
            space,
            6,
            optimizer="random",
            direction={"accuracy": "maximize", "ms": "minimize"},
            limits={"ms": 9.0},
            progress=False,
        )

    plain, beside = run(), run(loss=loss)
    assert beside.value == beside.values["accuracy"] == plain.value
    assert list(beside.convergence().incumbent) == list(plain.convergence().incumbent)
    assert str(beside.limits) == str(plain.limits)


@pytest.mark.parametrize(("size", "sure"), [(1.0, True), (9.0, False), (math.nan, False)])
def test_best_of_all_needs_a_feasible_trial_and_all_limited_outputs(size: float, sure: bool) -> None:
    space = mc.Space("s")
    space.integer("a", 0, 4)
    result = mc.minimize(
        lambda c: {"p": c["a"], "q": -c["a"], "size": size if c["a"] else 1.0 if size != 9.0 else 9.0},
        space,
        9,
        optimizer="random",
        direction=["p", "q"],
        limits={"size": 6.0},
        progress=False,
    )
    assert ("best of all" in result.stopped) == sure


def test_a_study_without_trials_has_its_objectives() -> None:
    space = mc.Space("s")
    space.integer("n", 0, 9)
    empty = mc.Study(space, "random", direction=["a", "b"]).result
    assert empty.front == ()
    assert empty.hypervolume([1.0, 1.0]) == 0.0


def tell_in_parts(name: str) -> list[dict[str, Any]]:
    """Return the configurations of a run whose first objective is told at once, and the second three trials later."""
    study = mc.Study(
        space(), direction={name: "maximize", "ms": "minimize"}, optimizer=mc.Method(settings={"n_initial": 3})
    )
    waiting = list[tuple[mc.Trial, float]]()
    for _ in range(9):
        trial = study.ask()
        told = network(trial.config)
        study.tell(trial, {name: -1e6 * told["loss"]}, partial=True)
        waiting.append((trial, told["latency_ms"]))
        if len(waiting) > 2:
            first, ms = waiting.pop(0)
            study.tell(first, {"ms": ms})
    return [t.config for t in study.trials]


def test_the_name_of_an_objective_that_is_told_first_does_not_matter() -> None:
    assert tell_in_parts("loss") == tell_in_parts("accuracy")


def test_a_limit_on_an_objective_named_variance_reaches_the_optimizer() -> None:
    runs = []
    for name in ("variance", "risk"):
        told = lambda c, name=name: {"loss": network(c)["loss"], name: network(c)["latency_ms"]}  # noqa: E731
        runs.append(run(told, 9, direction=["loss", name], limits={name: 3.0}))
    assert [t.config for t in runs[0].history] == [t.config for t in runs[1].history]


def test_a_returned_loss_that_is_no_objective_is_kept_and_cannot_be_limited() -> None:
    told = lambda c: {"loss": 7.5, "rate": c["rate"], "layers": c["layers"]}  # noqa: E731
    result = run(told, 4, direction=["rate", "layers"], optimizer="random")
    assert all(t.values["returned loss"] == 7.5 and t.loss == t.config["rate"] for t in result.history)
    with pytest.raises(ValueError, match=r"a limit on 'loss', and the objectives are \['rate', 'layers'\]"):
        run(told, 4, direction=["rate", "layers"], limits={"loss": 1.0})


def measured() -> mc.Study:
    study = mc.Study(digits(), "random", direction=["f", "g"], limits={"mem": 3})
    for a, f, g in ((1, 0, 0), (1, 4, 4), (2, 1, 3), (3, 3, 1), (4, 5, 5), (5, 2, 2)):
        study.add({"a": a}, {"f": float(f), "g": float(g), "mem": float(a)})
    return study


def digits() -> mc.Space:
    space = mc.Space("digits")
    space.integer("a", 0, 9)
    return space


def test_members_of_the_front_have_their_means() -> None:
    result = measured().result
    assert [(t.values["f"], t.values["g"]) for t in result.front] == [(1, 3), (2, 2), (3, 1)]
    assert result.best is not None
    assert (result.value, result.best.loss) == (2.0, 2.0)
    assert [t.outcome["f"].value for t in result.history[:2]] == [0.0, 4.0]


def test_a_limit_binds_if_a_trial_beyond_it_would_be_on_the_front() -> None:
    study = measured()
    assert "mem <= 3: violated by 2 of 5 evaluations; does not bind: no trial beyond it would be on the front" in str(
        study.result.limits
    )
    study.add({"a": 6}, {"f": 9.0, "g": 0.5, "mem": 6.0})
    assert "binds: a trial beyond it would be on the front" in str(study.result.limits)
    with pytest.raises(MipcashError, match=r"take result\.front"):
        study.finalists(2)


def test_an_objective_that_is_no_number_is_named() -> None:
    study = mc.Study(digits(), "random", direction=["f", "g"])
    told = study.tell(study.ask(), {"f": 1.0, "g": math.nan})
    assert told.message.startswith("g: nan")


def test_what_repeats_rule_out_binds_no_limit_and_the_best_stays_the_same_object() -> None:
    study = mc.Study(digits(), "random", direction=["u", "v"], limits={"w": 1})
    study.add({"a": 0}, {"u": 3.0, "v": 3.0, "w": 0.5})
    beyond = study.add({"a": 1}, {"u": 1.0, "v": 1.0, "w": 5.0})
    assert "binds: a trial beyond it" in str(study.result.limits)
    study.repeat(beyond)
    study.tell(study.ask(), mc.Failed("crash"))
    assert "does not bind" in str(study.result.limits)
    study.add({"a": 0}, {"u": 1.0, "v": 3.0, "w": 0.5})
    result = study.result
    assert result.best is result.best
    assert result.best in result.front
