"""Decoupled evaluation of outputs: costs, requests of the optimizer, and the best trial."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny
from hypothesis import given, settings
from hypothesis import strategies as st

import mipcash as mc
from mipcash.errors import DefectError
from mipcash.optimizers.optimizer import Proposal, Request
from mipcash.study.minimize import run
from mipcash.study.policies.policy import BEST_OF_ALL

COSTS = {"loss": 60, "ms": 1}


class MinimumDistance(tiny.Sampler):
    """Optimizer that requests the latency of a configuration, then the loss of the same configuration."""

    takes_limits = True
    first = "ms"

    def propose(self, request: Request) -> Proposal:
        self.requests = [*getattr(self, "requests", []), request]
        if len(request.history) % 2:
            return Proposal(request.history[-1].config, outputs=("loss",))
        return replace(super().propose(request), outputs=(self.first,))


def test_an_optimizer_sees_the_costs_and_may_request_the_missing_output_of_a_configuration(space: mc.Space) -> None:
    optimizer = MinimumDistance(space)
    study = mc.Study(space, optimizer, limits={"ms": 5.0}, costs=COSTS)
    first = study.tell(study.ask(), {"ms": 3.25})
    assert (first.evaluate, first.status, first.loss) == (("ms",), "done", None)
    assert str(first).startswith("0: done, ms 3.25, ")
    assert optimizer.requests[0].costs == {"loss": 60.0, "ms": 1.0}
    assert "no loss is known yet; trial 0 satisfies all constraints, and its loss is not known" in str(study.result)
    second = study.tell(study.ask(), 0.5)
    assert (second.number, second.config, second.loss) == (1, first.config, 0.5)
    assert str(second).startswith("1: done, loss 0.5, ")
    for ms, loss in ((9.0, 0.1), (4.0, 0.4)):
        study.tell(study.ask(), {"ms": ms})
        study.tell(study.ask(), {"loss": loss})
    result = study.result
    assert (result.best and result.best.number, result.value, result.values) == (5, 0.4, {"ms": 4.0})
    assert "[ms] 4" in str(result)
    optimizer.first = "latency"
    with pytest.raises(TypeError, match=r"wants the outputs \['latency'\] evaluated, and there are \['loss', 'ms'\]"):
        study.ask()


@pytest.mark.parametrize(
    ("costs", "said"),
    [
        (5, "costs are given by the name of their output"),
        *(({"loss": bad, "ms": 1}, "the cost of 'loss' must be a finite number above 0") for bad in (0, math.inf, "1")),
        ({"ms": 1}, r"that of 'loss' is missing; there are only those of \['ms'\]"),
        ({"loss": 1}, r"that of 'ms' is missing; there are only those of \['loss'\]"),
    ],
)
def test_costs_are_checked(space: mc.Space, costs: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        mc.Study(space, limits={"ms": 5.0}, costs=costs)
    for amount in (0, math.nan, math.inf, "much", True):
        with pytest.raises(ValueError, match=r"mc.Cost takes a finite number above 0"):
            mc.Cost(amount)  # type: ignore[arg-type]


# -- minimize with a function per output ----------------------------------------------------------------------------


def loss_of(config: dict[str, Any]) -> float:
    return tiny.loss(config)


def ms_of(config: dict[str, Any]) -> float:
    if config["width"] == 32:
        raise RuntimeError("the clock broke")
    return float(config["layers"])


BOTH = {"loss": loss_of, "ms": ms_of}


def counted(called: list[str]) -> dict[str, Callable[..., float]]:
    """Return a function for each output. Each call appends the name of its output to ``called``."""
    return {
        "loss": lambda config: called.append("loss") or tiny.loss(config),
        "ms": lambda config: called.append("ms") or float(config["layers"]),
    }


@pytest.mark.parametrize("execution", [2, mc.Execution(2, evaluation_timeout=20.0)], ids=["threads", "processes"])
def test_a_function_per_output_is_called_in_threads_and_processes(space: mc.Space, execution: Any) -> None:
    given = {"optimizer": "random", "limits": {"ms": 2.0}, "progress": False, "execution": execution}
    result = mc.minimize(BOTH, space, 20, **given)
    assert (len(result.history), result.stopped) == (10, "budget")  # two calls per trial
    for trial in result.history:
        assert trial.evaluate == ("loss", "ms")
        assert trial.loss == tiny.loss(trial.config)  # also if the other function failed
        if trial.config["width"] == 32:
            assert "RuntimeError: the clock broke" in trial.outcome["ms"].message
        else:
            assert trial.values == {"ms": trial.config["layers"]}
        assert all(output.cost is not None for output in trial.outcome.outputs.values())
    assert result.values["ms"] <= 2.0


class Choosing(MinimumDistance):
    """Optimizer that requests the latency first, and then the loss of each configuration with a feasible latency."""

    def propose(self, request: Request) -> Proposal:
        begun = [o.config for o in request.history if o.asked == ("loss",)]
        kept = [o.config for o in request.history if o.values.get("ms", 9.0) <= 2.0]
        for config in kept:
            if config not in begun:
                return Proposal(config, outputs=("loss",))
        return replace(tiny.Sampler.propose(self, request), outputs=("ms",))


def choose(functions: Any, space: mc.Space, cost: float, **options: Any) -> mc.Result:
    budget = mc.Budget(mc.Cost(cost), costs=COSTS)
    return mc.minimize(functions, space, budget, optimizer=Choosing(space), limits={"ms": 2}, **options)


@pytest.mark.parametrize("workers", [1, 3])
def test_only_requested_outputs_are_evaluated_and_a_cost_budget_is_never_exceeded(
    space: mc.Space, workers: int, capsys: pytest.CaptureFixture[str]
) -> None:
    called: list[str] = []
    result = choose(counted(called), space, 200, execution=workers)
    spent = 60 * called.count("loss") + called.count("ms")
    assert 140 < spent <= 200
    assert result.stopped == "budget"
    assert sum(t.pending for t in result.history) <= 1  # a trial that would have exceeded the budget
    told = [t for t in result.history if not t.pending]
    assert sorted(called) == sorted(t.evaluate[0] for t in told)
    assert {t.evaluate for t in told} == {("loss",), ("ms",)}
    lines = capsys.readouterr().err.splitlines()
    assert lines[-1].startswith(f"[{spent}/200] #")
    assert any(" ms " in line and " loss " not in line.split("  best")[0] for line in lines)


def test_a_run_with_a_cost_budget_is_resumed_with_the_same_proposals(space: mc.Space, tmp_path: Path) -> None:
    whole = choose(BOTH, space, 250, progress=False)
    for cost in (70, 71, 130, 250):
        parts = choose(BOTH, space, cost, storage=tmp_path / "parts.db", progress=False)
        assert sum(COSTS[t.evaluate[0]] for t in parts.history if not t.pending) <= cost
    made, unbroken = ([(t.config, t.evaluate, t.status) for t in r.history] for r in (parts, whole))
    assert made == unbroken


def test_outputs_reported_before_a_resume_are_not_evaluated_again(space: mc.Space, journal: Path) -> None:
    options = {"limits": {"ms": 5.0}, "costs": COSTS, "storage": journal}
    with mc.Study(space, "random", **options) as study:
        study.tell(study.ask(), {"ms": 1.0})
    called: list[str] = []
    with mc.Study(space, "random", **options) as study:
        again = study.ask()
        assert (again.number, again.values, again.outcome.missing(again.evaluate)) == (0, {"ms": 1.0}, ("loss",))
        study.give_back(again)
        run(study, counted(called), mc.Cost(61), progress=False)
        assert called == ["loss"]  # known outputs are not evaluated again
        assert study.trials[0].loss == tiny.loss(again.config)


@pytest.mark.parametrize(
    ("functions", "said"),
    [
        ({"loss": loss_of, "ms": lambda config: missing}, "name 'missing' is not defined"),  # type: ignore[name-defined] # noqa: F821
        ({"loss": loss_of, "ms": lambda config: config["?"]}, "at each of its first 5 evaluations alike: KeyError"),
        ({"loss": lambda config: {"loss": 1.0}, "ms": lambda config: 1.0}, "at each of its first 5 evaluations alike"),
    ],
)
def test_a_defect_in_one_of_the_functions_stops_the_run(space: mc.Space, functions: Any, said: str) -> None:
    with pytest.raises(DefectError, match=said):
        mc.minimize(functions, space, 40, optimizer="random", progress=False)


@settings(max_examples=8)
@given(st.data())
def test_outputs_may_be_told_in_any_order(data: st.DataObject) -> None:
    """Assert that the best trial is feasible when outputs are told in any order and some of them fail."""
    study = mc.Study(tiny.tiny_space(), "random", limits={"ms": 5.0}, costs=COSTS)
    batch = study.ask(4)
    told: dict[int, dict[str, float]] = {trial.number: {} for trial in batch}
    for trial, name in data.draw(st.permutations([(trial, name) for trial in batch for name in ("loss", "ms")])):
        value = data.draw(st.one_of(st.floats(-9.0, 9.0), st.just(mc.Failed("no"))), label=name)
        if study.trials[trial.number].outcome.missing((name,)) == ():
            continue
        after = study.tell(trial, {name: value})
        here = told[trial.number]
        here[name] = math.inf if isinstance(value, mc.Failed) else value
        assert after.pending == (len(here) < 2)
        assert after.pending or after.done == (here["loss"] < math.inf)
        kept = {n: v["loss"] for n, v in told.items() if len(v) == 2 and v["loss"] < math.inf and v["ms"] <= 5.0}
        best = study.result.best
        assert (best and best.number) == (min(kept, key=lambda n: (kept[n], n)) if kept else None)
        assert study.n_evaluated == sum(len(v) == 2 for v in told.values())


def test_a_partially_known_configuration_is_enqueued_for_its_missing_output(space: mc.Space) -> None:
    study = mc.Study(space, "random", limits={"ms": 5.0}, costs=COSTS)
    config = tiny.draw(space, np.random.default_rng(7))
    known = study.add(config, {"ms": 1.0})
    assert (known.evaluate, known.values, known.loss) == (("ms",), {"ms": 1.0}, None)
    wanted = study.enqueue(config)
    assert (wanted.evaluate, wanted.number) == (("loss",), known.number + 1)
    assert study.enqueue(config).number == wanted.number
    assert study.tell(study.ask(), 0.25).config == config
    assert study.result.best
    assert study.result.best.number == wanted.number
    assert study.enqueue(config).number in (known.number, wanted.number)  # no output is left to evaluate
    with pytest.raises(ValueError, match="is invalid"):
        study.add(config, {"other": 1.0})


@pytest.mark.parametrize("optimizer", ["random", "cmes", "admmbo"])
def test_an_exhausted_space_stops_the_run_and_only_the_optimum_is_called_optimal(optimizer: str) -> None:
    space = mc.Space("small")
    space.integer("n", 1, 4)
    functions = {"loss": lambda c: -float(c["n"]), "ms": lambda c: float(c["n"])}
    objective = functions if optimizer == "random" else lambda c: {name: f(c) for name, f in functions.items()}
    result = mc.minimize(objective, space, 50, optimizer=optimizer, limits={"ms": 2}, progress=False)
    assert result.stopped.startswith("space exhausted")
    assert (result.value == -2.0) or result.stopped != BEST_OF_ALL
    assert optimizer == "admmbo" or result.value == -2.0
    assert optimizer != "random" or result.stopped == BEST_OF_ALL


@pytest.mark.parametrize(
    ("arguments", "error", "said"),
    [
        ({"objective": {"ms": ms_of}}, ValueError, "one for the loss"),
        ({"objective": {"loss": loss_of, 3: ms_of}}, ValueError, "one per output, by its name"),
        ({"objective": {"loss": loss_of, "ms": 3.0}}, TypeError, "'ms' must be a function of a configuration"),
        ({"objective": {"loss": loss_of, "ms": lambda: 1}}, TypeError, "cannot be called with one configuration"),
        ({"costs": {"loss": 1}}, ValueError, r"functions for \['loss', 'ms'\], and there are costs of \['loss'\]"),
        ({"costs": {"loss": 1, "ms": 1, "size": 1}}, ValueError, "and nothing else"),
        ({"objective": loss_of, "costs": COSTS}, ValueError, "the objective is one function, which gives all outputs"),
        ({"objective": loss_of, "budget": mc.Cost(9)}, ValueError, "nothing says what an evaluation costs"),
        ({"limits": {"size": 1}}, ValueError, "limit on 'size', and no function for it"),
        ({"limits": {"size": 1}, "costs": COSTS}, ValueError, "that of 'size' is missing"),
        ({"budget": mc.Cost(60), "costs": COSTS}, ValueError, "does not pay for one evaluation of each output, 61"),
        ({"budget": 1}, ValueError, "does not pay for one evaluation of each output, 2"),
    ],
)
def test_invalid_functions_budgets_and_costs_are_refused(
    space: mc.Space, arguments: dict[str, Any], error: Any, said: str
) -> None:
    given = {"objective": BOTH, "budget": 20, "costs": None, "optimizer": "random", "progress": False, **arguments}
    objective, budget, costs = (given.pop(name) for name in ("objective", "budget", "costs"))
    with pytest.raises(error, match=said):
        mc.minimize(objective, space, mc.Budget(budget, costs=costs), **given)


def test_the_table_of_a_decoupled_run_is_known_to_another_and_repeats_give_no_values() -> None:
    space = mc.Space("box")
    space.integer("a", 0, 9)
    functions = {
        "loss": lambda c, repeat=0: c["a"] + 0.01 * repeat,
        "ms": lambda c, repeat=0: 2.0 * c["a"] + 0.5 * repeat,
    }
    options: Any = {"limits": {"ms": (3, None)}, "progress": False}
    first = mc.minimize(functions, space, mc.Budget(mc.Cost(140), costs={"loss": 10, "ms": 1}), confirm=2, **options)
    assert first.finalists
    assert first.values == {"ms": 2.0 * first.config["a"]}
    parts = [t for t in first.history if t.done and t.loss is None]
    rows = [row for row in first.to_rows() if not str(row["origin"]).startswith("repeat")]
    assert parts
    again = mc.minimize(functions, space, 4, known=rows, **options)
    assert [t.values for t in again.history if t.known] == [t.values for t in first.history if not t.repeat]
