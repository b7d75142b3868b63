"""Multi-fidelity search: fidelities are chosen by gain per cost, budgets pay for costs, and answers are at full fidelity."""

from __future__ import annotations

import itertools
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize as scipy_minimize

import mipcash as mc
from mipcash.errors import InfeasibleSpaceError, MipcashError, SpaceError
from mipcash.optimizers.loss_model import LossModel
from mipcash.optimizers.multi_fidelity import MultiFidelity
from mipcash.optimizers.registry import make_optimizer
from mipcash.report.data.run import Run
from mipcash.study.feasibility import observation
from mipcash.study.records.fingerprint import listing


def training(fidelity: bool = True) -> mc.Space:
    space = mc.Space("training")
    space.real("rate", 1e-4, 1.0, log=True)
    space.integer("width", 1, 50)
    space.categorical("act", ["a", "b", "c"])
    if fidelity:
        space.fidelity("epochs", 1, 81)
    return space


def loss(config: dict[str, Any]) -> float:
    """Return a loss that falls with the epochs, the more slowly the lower the rate is; its optimum at 81 epochs is 0."""
    own = (math.log10(config["rate"]) + 1.7) ** 2 / 4 + (config["width"] - 33) ** 2 / 400
    epochs, own = config.get("epochs", 81), own + {"a": 0.4, "b": 0.0, "c": 0.2}[config["act"]]
    return own + 2 * (1 / epochs - 1 / 81) / (1 + 5 * (math.log10(config["rate"]) + 4) / 4)


def test_low_fidelities_find_more_at_the_same_cost() -> None:
    ratios = []
    for seed in (0, 1):
        plain = mc.minimize(loss, training(False), 6, seed=seed, progress=False)
        run = mc.minimize(loss, training(), 6, seed=seed, progress=False)
        done = [t for t in run.history if not t.pending]
        assert sum(t.fidelity for t in done[:-1]) <= 6 + 1e-9
        assert all(t.fidelity == t.config["epochs"] / 81 for t in done)
        assert len(done) > 20
        assert run.config["epochs"] == run.history[0].config["epochs"] == 81
        assert len({repr(t.config) for t in run.history}) == len(run.history)
        ratios.append(run.value / plain.value)
        full = [t.loss for t in done if t.complete]
        assert run.value == min(full)
        assert not any(t.pruned for t in done)
    assert max(ratios) < 0.5
    assert math.prod(ratios) < 0.2**2


def test_the_gain_is_the_posterior_correlation_per_cost() -> None:
    """The closed form against the correlation of joint draws from the posterior."""
    space = training()
    run = mc.minimize(loss, space, 2, progress=False)
    optimizer = make_optimizer("hybrid", space)
    assert isinstance(optimizer, MultiFidelity)
    history = [observation(t) for t in run.history if not t.pending]
    model = LossModel.of(optimizer.domain, history)
    assert model is not None
    config = {"rate": 0.4, "width": 12, "act": "c", "epochs": 81}
    ladder = [{**config, "epochs": value} for value in optimizer.values]
    assert [c["epochs"] for c in ladder] == [81, 27, 9, 3, 1]
    gains = optimizer._gains(model, ladder)
    draws = model.posterior.draws(optimizer.domain.encode(ladder), 20000, np.random.default_rng(0))
    for k, (gain, c) in enumerate(zip(gains, ladder, strict=True)):
        rho = abs(np.corrcoef(draws[:, 0], draws[:, k])[0, 1])
        assert math.exp(gain) * c["epochs"] / 81 == pytest.approx(rho, abs=0.05)


def test_values_are_a_ladder_of_costs() -> None:
    space = mc.Space("mesh")
    space.real("x", 0.0, 1.0)
    space.fidelity("edge", 10.0, 90.0, power=3.0)
    optimizer = make_optimizer("random", space)
    assert isinstance(optimizer, MultiFidelity)
    costs = [optimizer.fidelity.cost({"edge": value}) for value in optimizer.values]
    assert costs[0] == 1.0
    assert costs[-1] == pytest.approx(9.0**-3)
    assert all(a / b <= 3.0 + 1e-6 for a, b in itertools.pairwise(costs))
    assert space.default()["edge"] == 90.0


@pytest.mark.parametrize("optimizer", ["hybrid", "random", "mivabo"])
def test_rules_tie_the_fidelity_and_every_proposal_is_legal(optimizer: str) -> None:
    space = mc.Space("rows")
    rows = space.fidelity("rows", 100, 2700)
    size = space.integer("batch", 1, 300, log=True)
    space.rule("a batch has at most all rows", size <= rows)
    run = mc.minimize(lambda c: -c["batch"] - c["rows"] / 1000, space, 3, optimizer=optimizer, progress=False)
    assert all(space.is_legal(t.config) for t in run.history)
    assert run.config["rows"] == 2700


def test_the_last_evaluation_may_exceed_the_budget_and_none_is_left_pending() -> None:
    space = mc.Space("rows")
    space.real("x", 0.0, 1.0)
    space.fidelity("rows", 100, 10_000)
    for budget in (2, 3):
        run = mc.minimize(lambda c: (c["x"] - 0.3) ** 2 + 20 / c["rows"], space, budget, seed=1, progress=False)
        costs = [t.fidelity for t in run.history]
        assert not any(t.pending for t in run.history)
        assert sum(costs[:-1]) <= budget < sum(costs) + min(costs)


def test_the_fidelity_is_left_out_where_only_the_full_one_is_new() -> None:
    space = mc.Space("list")
    space.categorical("a", ["x", "y"])
    space.fidelity("s", 1, 2)
    run = mc.minimize(lambda c: {"x": 1.0, "y": 0.0}[c["a"]] + c["s"], space, 50, progress=False)
    assert run.config == {"a": "y", "s": 2}
    assert "every legal configuration" in run.stopped or "exhausted" in run.stopped
    assert [c for c in (t.config for t in run.history) if c["s"] == 2]


def test_limits_failures_directions_and_batches() -> None:
    space = training()

    def objective(config: dict[str, Any]) -> dict[str, float]:
        if config["act"] == "c" and config["width"] > 40:
            raise RuntimeError("out of memory")
        return {"loss": -loss(config), "ms": float(config["width"])}

    run = mc.minimize(objective, space, 4, direction="maximize", limits={"ms": 20}, progress=False)
    assert run.config["epochs"] == 81
    assert run.config["width"] <= 20
    values = [t.loss for t in run.history if t.done and t.complete and t.values["ms"] <= 20]
    assert run.value == max(v for v in values if v is not None)
    study = mc.Study(space)
    batch = study.ask(4)
    assert len({repr(t.config) for t in batch}) == 4
    for trial in batch:
        study.tell(trial, loss(trial.config))
    assert {t.fidelity for t in study.ask(3)} <= {1.0, 1 / 3, 1 / 9, 1 / 27, 1 / 81}


def test_low_fidelities_are_not_spent_on_copies_of_one_point() -> None:
    """Once 145 of 150 evaluations were of widths within a thousandth of each other, and the answer was 5.3."""
    space = mc.Space("duct")
    space.real("width", 1.0, 9.0)
    space.integer("fins", 0, 12)
    space.fidelity("cells", 8, 128, power=2.0)

    def drag(c: dict[str, Any]) -> dict[str, float]:
        return {
            "loss": (c["width"] - 3) ** 2 + (c["fins"] - 5) ** 2 / 20 + abs(c["width"] - 4) / c["cells"],
            "m": c["fins"],
        }

    run = mc.minimize(drag, space, 5, limits={"m": 4}, seed=0, progress=False)
    assert run.value < 0.1
    assert len(run.history) < 80


def test_finalists_are_evaluated_again_at_the_full_fidelity() -> None:
    def noisy(config: dict[str, Any], repeat: int = 0) -> float:
        return loss(config) + 0.01 * repeat

    run = mc.minimize(noisy, training(), 6, confirm=2, progress=False)
    repeats = [t for t in run.history if t.repeat]
    assert len(repeats) == len(run.finalists) == 2
    assert all(t.config["epochs"] == 81 for t in repeats)
    assert run.best is not None
    assert run.best.number in {f.number for f in run.finalists}


def test_a_resumed_run_equals_an_unbroken_one_and_its_journal_is_read_without_the_space(tmp_path: Path) -> None:
    whole = mc.minimize(loss, training(), 3, progress=False)
    path = tmp_path / "run.db"
    mc.minimize(loss, training(), 1, storage=path, progress=False)
    resumed = mc.minimize(loss, training(), 3, storage=path, progress=False)
    settled = [[(t.config, t.loss) for t in r.history if not t.pending] for r in (whole, resumed)]
    assert settled[0] == settled[1]
    assert not all(t.complete for t in resumed.history)
    read = Run.of(path).result
    assert read.value == resumed.value
    assert read.config["epochs"] == 81
    other = training(False)
    other.fidelity("epochs", 1, 81, power=2.0)
    assert listing(other) != listing(training())
    with pytest.raises(MipcashError, match="fidelity of power"):
        mc.Study(other, storage=path)


def test_what_does_not_go_together_is_refused() -> None:
    space = training()
    with pytest.raises(SpaceError, match="has the fidelity 'epochs' already"):
        space.fidelity("rows", 1, 9)
    for given in ({"low": 0}, {"power": 0.0}, {"low": -1.0}, {"power": "x"}):
        with pytest.raises(SpaceError, match="fidelity 's'"):
            mc.Space("s").fidelity("s", **{"low": 1, "high": 9, **given})  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="has the fidelity 'epochs'"):
        mc.Study(space, pruning="halving")
    with pytest.raises(ValueError, match="has the fidelity 'epochs'"):
        mc.minimize({"loss": loss, "ms": loss}, space, 20, limits={"ms": 1.0}, progress=False)
    space.rule("short", space["epochs"] <= 40)
    with pytest.raises(InfeasibleSpaceError, match="short"):
        mc.Study(space)


def test_optunas_distributions_have_no_fidelity() -> None:
    pytest.importorskip("optuna")
    with pytest.raises(SpaceError, match="the fidelity 'epochs'"):
        training().to_optuna()


def test_the_other_numbers_are_free_while_the_fidelity_is_fixed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Under the equation of the fidelity SLSQP took hundreds of evaluations of the acquisition, and half a second an ask."""
    methods: list[str] = []

    def watched(*args: Any, **given: Any) -> Any:
        methods.append(given["method"])
        return scipy_minimize(*args, **given)

    monkeypatch.setattr("mipcash.acquisition.continuous_step.minimize", watched)
    space = mc.Space("duct")
    space.real("width", 1.0, 9.0)
    space.fidelity("cells", 8, 128, power=2.0)
    result = mc.minimize(lambda c: (c["width"] - 3) ** 2 + 1 / c["cells"], space, 3, seed=0, progress=False)
    assert set(methods) == {"L-BFGS-B"}
    assert result.config["cells"] == 128
