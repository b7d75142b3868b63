"""Settings associated with failures: found for every kind of parameter, without false alarms."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import mipcash as mc
from mipcash.cli.main import app
from mipcash.report.failures import failing, settings_of, short_between
from mipcash.study.records.fingerprint import listing


def varied() -> mc.Space:
    """Return a space with parameters of every kind."""
    space = mc.Space("varied")
    kind = space.categorical("kind", ["a", "b", None])
    space.real("x", -1.0, 1.0)
    space.real("rate", 1e-3, 1.0, log=True, when=kind["b"])
    space.integer("n", 1, 9)
    space.integer("wide", 1, 5000)
    space.ordinal("size", ["s", "m", "l"])
    space.ordinal("odd", [5, 1, 9, 3])
    first = space.module("first", {"p": {"r": mc.Real(0.0, 1.0)}, "q": {}})
    second = space.module("second", ["u", "v"])
    space.ordering("order", [first, second])
    return space


def told(space: mc.Space, fails: Callable[[dict[str, Any]], bool], seed: int = 0) -> mc.Study:
    study = mc.Study(space, "random")
    for config in space.sample(90, seed):
        study.add(config, mc.Failed("crashed") if fails(config) else 0.0)
    return study


@pytest.mark.parametrize(
    ("fails", "setting"),
    [
        (lambda c: c["kind"] is None, "kind = None"),
        (lambda c: c["size"] == "l", "size = 'l'"),
        (lambda c: c["odd"] < 4, "odd < 5"),
        (lambda c: c["order"][0] == "second", "second is number 1 of order"),
        (lambda c: "first.p.r" in c, "first = 'p'"),
        (lambda c: "rate" in c, "kind = 'b'"),
    ],
)
def test_the_setting_that_fails_is_named(fails: Callable[[dict[str, Any]], bool], setting: str) -> None:
    study = told(varied(), fails)
    (kind,) = failing(study.record.listing, study.trials)
    assert kind.name == "Failed: crashed"
    assert [t.number for t in kind.trials] == [t.number for t in study.trials if t.failed]
    share = kind.settings[0]
    assert share.setting == setting
    assert (share.under, share.evaluations, share.elsewhere) == (len(kind.trials), len(kind.trials), 0)


def test_bounds_lie_between_values_of_the_trials() -> None:
    space = varied()
    configs = space.sample(200, 1)
    bounds = [s for s in settings_of(listing(space), configs) if s.label in ("x", "rate", "wide", "n")]
    assert {s.label for s in bounds} == {"x", "rate", "wide", "n"}
    for setting in bounds:
        label, sign, bound = setting.text.split()
        assert label == setting.label
        for config, has in zip(configs, setting.has, strict=True):
            value = config.get(label)
            assert has == (value is not None and (value > float(bound) if sign == ">" else value < float(bound)))


@pytest.mark.parametrize(
    ("edge", "first", "short"), [(0.583, 0.623, 0.62), (0.623, 0.583, 0.59), (-1.0, 1.0, 0.7), (1e-5, 3e-5, 2.7e-5)]
)
def test_bounds_are_short_numbers_close_to_the_failing_values(edge: float, first: float, short: float) -> None:
    assert short_between(edge, first) == short


def test_random_failures_and_a_run_without_successes_have_no_failing_setting() -> None:
    rng = np.random.default_rng(1)
    found = [told(varied(), lambda c: bool(rng.random() < 0.5), seed) for seed in range(5)]
    assert sum(bool(k.settings) for s in found for k in failing(s.record.listing, s.trials)) <= 1
    everything = told(varied(), lambda c: True)
    assert [k.settings for k in failing(everything.record.listing, everything.trials)] == [()]
    assert failing(everything.record.listing, []) == []


def test_a_success_of_another_output_does_not_excuse_a_failed_loss() -> None:
    space = varied()
    study = mc.Study(space, "random", costs={"loss": 60.0, "latency_ms": 1.0}, limits={"latency_ms": 1e3})
    for config in space.sample(70, 0):
        study.add(config, {"latency_ms": 1.0})
        study.add(config, {"loss": mc.Failed("crashed") if config["n"] > 6 else 0.0})
    (kind,) = failing(study.record.listing, study.trials)
    assert kind.settings[0].setting == "n > 6"
    lucky = kind.trials[0]
    study.add(lucky.config, {"loss": 0.0})
    (kind,) = failing(study.record.listing, study.trials)
    assert lucky.number not in {t.number for t in kind.trials}


def test_show_groups_failures_by_kind_with_their_settings(tmp_path: Path) -> None:
    space = mc.Space("fails")
    space.module("how", {"plain": {}, "tuned": {"rate": mc.Real(1e-3, 1.0, log=True)}})
    space.categorical("kind", ["a", "b", "c"])
    space.real("x", 0.0, 1.0)

    def objective(config: dict[str, Any]) -> float:
        if config["how"] == "tuned" and config["x"] > 0.5:
            raise MemoryError
        return float("nan") if config["kind"] == "c" else float(config["x"])

    def shown(name: str) -> str:
        done = CliRunner().invoke(app, ["show", str(tmp_path / name), "--top", "1"])
        assert done.exit_code == 0, done.output
        return done.stdout

    run = {"optimizer": "random", "seed": 3, "storage": tmp_path / "run.db"}
    mc.minimize(lambda config: 0.0, space, 2, storage=tmp_path / "none.db", progress=False)
    assert "where it fails" not in shown("none.db")
    mc.minimize(objective, space, 110, **run, progress=False)
    with mc.Study(space, **run) as study:
        trials, kinds = study.trials, {kind.name: kind for kind in failing(study.record.listing, study.trials)}
    assert kinds.keys() == {"out of memory", "nan"}
    share = kinds["nan"].settings[0]
    under = [t for t in trials if t.config["kind"] == "c"]
    failed = sum(t.failed and "nan" in t.message for t in under)
    assert share.setting == "kind = 'c'"
    assert (share.under, share.evaluations) == (failed, len(under))
    assert (share.elsewhere, share.others) == (0, 110 - len(under))
    assert {s.setting.split()[0].split(".")[0] for s in kinds["out of memory"].settings} == {"how", "x"}
    for part in ("out of memory", "where it fails", str(share)):
        assert part in shown("run.db")
