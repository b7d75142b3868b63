"""Ranges too wide to list in memory, also under rules: every optimizer proposes within a memory limit."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.named import OPTIMIZERS

resource = pytest.importorskip("resource", reason="limits on memory need POSIX")

LIMIT = """
import resource
resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
import mipcash as mc

def make_space():
    space = mc.Space("wide")
    kind = space.categorical("kind", ["a", "b"])
    k, seed = space.integer("k", 1, 10**9, log=True), space.integer("seed", 0, 2**31 - 1)
    n, m = space.integer("n", -(10**15) + 1, 10**15, step=7), space.integer("m", 0, 10**6)
    x = space.real("x", 0, 1, step=1e-9, when=kind["a"])
    space.rule("n and m", n + m >= 5)
    space.rule("x and m", x + m / 10**6 <= 1.5)
    return space

def loss(config):
    return abs(config["n"] / 1e15 - 0.3) + abs(config["m"] / 1e6 - 0.2) + config.get("x", 0.5) + config["k"] / 1e9
"""
RUN = """
space = make_space()
for name in {names!r}:
    result = mc.minimize(loss, space, 7, optimizer=name, progress=False)
    assert result.n_done == 7, result
    assert len({{repr(t.config) for t in result.history}}) == 7
    assert all(space.is_legal(t.config) for t in result.history)
"""
HELPERS = """
space = mc.Space("helpers")
k, kind = space.integer("k", 0, 10**8), space.categorical("kind", ["a", "b"])
u, v = space.auxiliary("u", 0, 10**8), space.auxiliary("v", 0, 10**8)
space.rule("sum", u + v == k)
space.rule("apart", u - v >= 10, when=kind["a"])
space.rule("near", u - v <= 3, when=kind["b"])
for config in space.sample(5):
    assert space.is_legal(config), config
assert not space.is_legal({"k": 9, "kind": "a"})
result = mc.minimize(lambda c: abs(c["k"] - 12345) + (c["kind"] == "a"), space, 7, progress=False)
assert result.n_done == 7
"""
MESSAGES = """
space = make_space()
for wrong in (lambda: space.rule("r", 1 / space["k"] <= 1), lambda: space.rule("r", space["k"] <= "1000000000"),
              lambda: space["k"].is_(5), lambda: space["k"].map(float)):
    try:
        wrong()
    except mc.errors.SpaceError as error:
        print(error)
    else:
        raise AssertionError("not refused")
print(space, space.bounds(), space.why_illegal({"k": 0, "seed": 1.5}), space.count())
"""


def run(program: str) -> str:
    done = subprocess.run([sys.executable, "-c", LIMIT + program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


WIDE_OPTUNA = """
import optuna
from mipcash.integrations.optuna import MipcashSampler

def objective(trial):
    k = trial.suggest_int("k", 1, 10**9, log=True)
    seed = trial.suggest_int("seed", 0, 2**31 - 1)
    return abs(k / 1e6 - 1) + seed / 2**31 + trial.suggest_float("x", 0, 1)

optuna.logging.set_verbosity(optuna.logging.ERROR)
study = optuna.create_study(sampler=MipcashSampler(seed=0))
study.optimize(objective, n_trials=14)
print(len(study.trials))
"""


def test_the_optuna_sampler_works_on_wide_ranges() -> None:
    pytest.importorskip("optuna", minversion="5")
    assert run(WIDE_OPTUNA).split() == ["14"]


def test_every_optimizer_works_on_wide_ranges() -> None:
    run(RUN.format(names=OPTIMIZERS))


def test_auxiliary_variables_and_messages_work_on_wide_ranges() -> None:
    assert "Write the number: k <= 1000000000" in run(HELPERS + MESSAGES)
