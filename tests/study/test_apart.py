"""Outputs that are evaluated apart: costs, what an optimizer may ask for, and the answer."""

from __future__ import annotations

import math
from concurrent.futures import ProcessPoolExecutor
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


class Apart(tiny.Sampler):
    """Asks for the latency of a configuration, then for the loss of the same one."""

    takes_limits = True

    def propose(self, request: Request) -> Proposal:
        self.requests = [*getattr(self, "requests", []), request]
        if len(request.history) % 2:
            return Proposal(request.history[-1].config, outputs=("loss",))
        return replace(super().propose(request), outputs=("ms",))


def test_an_optimizer_is_told_the_costs_and_may_propose_a_configuration_for_the_rest(space: mc.Space) -> None:
    optimizer = Apart(space)
    study = mc.Study(space, optimizer, limits={"ms": 5.0}, costs=COSTS)
    first = study.tell(study.ask(), {"ms": 3.0})
    assert (first.evaluate, first.status, first.loss) == (("ms",), "done", None)
    assert optimizer.requests[0].costs == {"loss": 60.0, "ms": 1.0}
    assert study.result.best is None  # its loss is not known
    second = study.tell(study.ask(), 0.5)
    assert (second.number, second.config, second.loss) == (1, first.config, 0.5)
    for ms, loss in ((9.0, 0.1), (4.0, 0.4)):
        study.tell(study.ask(), {"ms": ms})
        study.tell(study.ask(), {"loss": loss})
    result = study.result
    assert (result.best and result.best.number, result.value, result.values) == (5, 0.4, {"ms": 4.0})
    assert "[ms] 4" in str(result)


def test_what_is_asked_for_is_an_output_that_there_is(space: mc.Space) -> None:
    class Careless(Apart):
        def propose(self, request: Request) -> Proposal:
            return replace(super().propose(request), outputs=("latency",))

    with pytest.raises(TypeError, match=r"wants the outputs \['latency'\] evaluated, and there are \['loss', 'ms'\]"):
        mc.Study(space, Careless(space), costs=COSTS).ask()


@pytest.mark.parametrize(
    ("costs", "said"),
    [
        (5, "costs are given by the name of their output"),
        ({"loss": 0, "ms": 1}, "the cost of 'loss' must be a finite number above 0"),
        ({"loss": math.inf, "ms": 1}, "the cost of 'loss' must be a finite number above 0"),
        ({"loss": "much", "ms": 1}, "the cost of 'loss' must be a finite number above 0"),
        ({"ms": 1}, r"none of 'loss' is given, only those of \['ms'\]"),
        ({"loss": 1}, r"none of 'ms' is given, only those of \['loss'\]"),
    ],
)
def test_costs_are_checked(space: mc.Space, costs: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        mc.Study(space, limits={"ms": 5.0}, costs=costs)


# -- minimize with a function per output ----------------------------------------------------------------------------


def loss_of(config: dict[str, Any]) -> float:
    return tiny.loss(config)


def ms_of(config: dict[str, Any]) -> float:
    if config["width"] == 32:
        raise RuntimeError("the clock broke")
    return float(config["layers"])


BOTH = {"loss": loss_of, "ms": ms_of}
WAYS: dict[str, dict[str, Any]] = {
    "alone": {},
    "threads": {"execution": 2},
    "executor": {"execution": mc.Execution(2, lambda: ProcessPoolExecutor(2))},
    "processes": {"execution": mc.Execution(2, evaluation_timeout=20.0)},
}


@pytest.mark.parametrize("way", WAYS)
def test_functions_of_their_own_are_called_wherever_evaluations_run(space: mc.Space, way: str) -> None:
    result = mc.minimize(BOTH, space, 20, optimizer="random", limits={"ms": 2.0}, progress=False, **WAYS[way])
    assert len(result.history) == 10  # two calls each
    assert result.stopped == "budget"
    for trial in result.history:
        assert trial.evaluate == ("loss", "ms")
        assert trial.loss == tiny.loss(trial.config)  # whatever became of the other
        if trial.config["width"] == 32:
            assert "RuntimeError: the clock broke" in trial.outcome["ms"].message
        else:
            assert trial.values == {"ms": trial.config["layers"]}
        assert all(output.cost is not None for output in trial.outcome.outputs.values())
    assert result.config
    assert result.values["ms"] <= 2.0


class Choosing(Apart):
    """Called by its latency first; its loss where that is kept."""

    def propose(self, request: Request) -> Proposal:
        begun = [o.config for o in request.history if o.asked == ("loss",)]
        kept = [o.config for o in request.history if o.values.get("ms", 9.0) <= 2.0]
        for config in kept:
            if config not in begun:
                return Proposal(config, outputs=("loss",))
        return replace(tiny.Sampler.propose(self, request), outputs=("ms",))


@pytest.mark.parametrize("workers", [1, 3])
def test_what_is_called_is_what_the_optimizer_chose_and_a_cost_is_never_exceeded(
    space: mc.Space, workers: int, capsys: pytest.CaptureFixture[str]
) -> None:
    called: list[str] = []
    functions = {
        "loss": lambda config: called.append("loss") or tiny.loss(config),
        "ms": lambda config: called.append("ms") or float(config["layers"]),
    }
    result = mc.minimize(
        functions,
        space,
        mc.Budget(mc.Cost(200), costs=COSTS),
        optimizer=Choosing(space),
        limits={"ms": 2},
        execution=mc.Execution(workers=workers),
    )
    spent = 60 * called.count("loss") + called.count("ms")
    assert 140 < spent <= 200
    assert result.stopped == "budget"
    assert sum(t.pending for t in result.history) <= 1  # the one that would have been too much
    told = [t for t in result.history if not t.pending]
    assert sorted(called) == sorted(t.evaluate[0] for t in told)
    assert {t.evaluate for t in told} == {("loss",), ("ms",)}
    lines = capsys.readouterr().err.splitlines()
    assert lines[-1].startswith(f"[{spent}/200] #")
    assert any(" ms " in line and " loss " not in line.split("  best")[0] for line in lines)


def test_a_cost_is_resumed_with_the_same_proposals(space: mc.Space, tmp_path: Path) -> None:
    def made(name: str, cost: float) -> mc.Result:
        return mc.minimize(
            BOTH,
            space,
            mc.Budget(mc.Cost(cost), costs=COSTS),
            optimizer=Choosing(space),
            limits={"ms": 2},
            storage=tmp_path / name,
            progress=False,
        )

    whole = made("whole.db", 400)
    for cost in (70, 71, 130, 300, 400):
        parts = made("parts.db", cost)
        assert sum(COSTS[t.evaluate[0]] for t in parts.history if not t.pending) <= cost
    assert [(t.config, t.evaluate, t.status) for t in parts.history] == [
        (t.config, t.evaluate, t.status) for t in whole.history
    ]


def test_evaluations_are_calls_and_those_told_elsewhere_cost_nothing(space: mc.Space) -> None:
    known = [(config, {"ms": 1.0}) for config in (tiny.draw(space, np.random.default_rng(k)) for k in range(3))]
    result = mc.minimize(BOTH, space, 7, optimizer="random", known=known, progress=False)
    assert [t.evaluate for t in result.history] == [("ms",)] * 3 + [("loss", "ms")] * 3
    assert result.n_known == 3


def test_a_function_that_is_broken_is_a_defect_of_its_own(space: mc.Space) -> None:
    def broken(config: dict[str, Any]) -> float:
        return missing_name  # type: ignore[name-defined] # noqa: F821

    with pytest.raises(DefectError, match="name 'missing_name' is not defined"):
        mc.minimize({"loss": loss_of, "ms": broken}, space, 20, optimizer="random", progress=False)
    same = {"loss": loss_of, "ms": lambda config: config["no such"]}
    with pytest.raises(DefectError, match="at each of its first 5 evaluations alike: KeyError"):
        mc.minimize(same, space, 40, optimizer="random", progress=False)
    by_name = {"loss": lambda config: {"loss": 1.0}, "ms": lambda config: 1.0}
    with pytest.raises(DefectError, match="at each of its first 5 evaluations alike"):
        mc.minimize(by_name, space, 40, optimizer="random", progress=False)


def test_what_is_told_in_parts_by_hand(space: mc.Space) -> None:
    study = mc.Study(space, "random", limits={"ms": 5.0}, costs=COSTS)
    trial = study.ask()
    assert trial.evaluate == ("loss", "ms")
    assert study.tell(trial, {"ms": 3.2}).pending
    assert study.result.best is None
    assert study.tell(trial, {"loss": 0.5}).done
    assert study.result.value == 0.5
    config = tiny.draw(space, np.random.default_rng(7))
    known = study.add(config, {"ms": 1.0})
    assert (known.evaluate, known.values, known.loss) == (("ms",), {"ms": 1.0}, None)
    wanted = study.enqueue(config)
    assert (wanted.evaluate, wanted.number) == (("loss",), known.number + 1)
    assert study.enqueue(config).number == wanted.number
    assert study.tell(study.ask(), 0.25).config == config
    assert study.result.best
    assert study.result.best.number == wanted.number
    assert study.enqueue(config).number in (known.number, wanted.number)  # nothing is left to evaluate
    with pytest.raises(ValueError, match="is not known"):
        study.add(config, {"other": 1.0})


def test_a_space_is_exhausted_when_all_outputs_of_all_configurations_are_known() -> None:
    space = mc.Space("small")
    space.integer("n", 0, 3)
    functions = {"loss": lambda c: -float(c["n"]), "ms": lambda c: float(c["n"])}
    result = mc.minimize(functions, space, 50, optimizer="random", limits={"ms": 2}, progress=False)
    assert result.stopped == BEST_OF_ALL
    assert result.value == -2.0


@pytest.mark.parametrize("optimizer", ["cmes", "admmbo"])
def test_an_answer_that_is_not_the_best_is_not_called_optimal(optimizer: str) -> None:
    space = mc.Space("small")
    space.integer("n", 1, 4)
    result = mc.minimize(
        lambda c: {"loss": -float(c["n"]), "ms": float(c["n"])},
        space,
        50,
        optimizer=optimizer,
        limits={"ms": 2},
        progress=False,
    )
    assert result.stopped.startswith("space exhausted")
    assert (result.value == -2.0) or result.stopped != BEST_OF_ALL
    assert optimizer != "cmes" or result.value == -2.0


def test_what_keeps_all_limits_and_has_no_loss_is_said(space: mc.Space) -> None:
    study = mc.Study(space, "random", limits={"ms": 1e9}, costs=COSTS)
    study.add(space.sample(1, seed=0)[0], {"ms": 1.0})
    assert "no loss is known yet; trial 0 satisfies all constraints, and its loss is not known" in str(study.result)


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
        ({"limits": {"size": 1}, "costs": COSTS}, ValueError, "none of 'size' is given"),
        ({"budget": mc.Cost(60), "costs": COSTS}, ValueError, "does not pay for one evaluation of each output, 61"),
        ({"budget": 1}, ValueError, "does not pay for one evaluation of each output, 2"),
        ({"budget": 2.5}, ValueError, "budget must be a whole number of evaluations"),
    ],
)
def test_what_cannot_be_run_is_refused(space: mc.Space, arguments: dict[str, Any], error: Any, said: str) -> None:
    given = {"objective": BOTH, "budget": 20, "costs": None, "optimizer": "random", "progress": False, **arguments}
    objective, budget, costs = (given.pop(name) for name in ("objective", "budget", "costs"))
    with pytest.raises(error, match=said):
        mc.minimize(objective, space, mc.Budget(budget, costs=costs), **given)


@pytest.mark.parametrize("amount", [0, -1, math.nan, math.inf, "much", True])
def test_a_cost_is_a_number_above_zero(amount: Any) -> None:
    with pytest.raises(ValueError, match=r"mc.Cost takes a finite number above 0"):
        mc.Cost(amount)


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_parts_may_be_told_in_any_order(data: st.DataObject) -> None:
    """By hand: trials in any order, each in any parts, outputs failing or told again; the answer keeps the limit."""
    study = mc.Study(tiny.tiny_space(), "random", limits={"ms": 5.0}, costs=COSTS)
    batch = study.ask(4)
    left = [(trial, name) for trial in batch for name in ("loss", "ms")]
    told: dict[int, dict[str, float | None]] = {trial.number: {} for trial in batch}
    for trial, name in data.draw(st.permutations(left)):
        value = data.draw(st.one_of(st.floats(-9.0, 9.0), st.just(mc.Failed("no"))), label=name)
        if study.trials[trial.number].outcome.missing((name,)) == ():
            continue
        after = study.tell(trial, {name: value})
        told[trial.number][name] = None if isinstance(value, mc.Failed) else value
        here = told[trial.number]
        assert after.pending == (len(here) < 2)
        if not after.pending:
            assert after.done == (here["loss"] is not None)
        kept = {
            n: v["loss"]
            for n, v in told.items()
            if len(v) == 2 and v["loss"] is not None and v["ms"] is not None and v["ms"] <= 5.0
        }
        best = study.result.best
        assert (best and best.number) == (min(kept, key=lambda n: (kept[n], n)) if kept else None)
        assert study.n_told == sum(len(v) == 2 for v in told.values())


def test_parts_that_were_told_are_there_after_a_resume(space: mc.Space, tmp_path: Path) -> None:
    given = {"limits": {"ms": 5.0}, "costs": COSTS, "storage": tmp_path / "run.db"}
    with mc.Study(space, "random", **given) as study:
        trial = study.ask()
        study.tell(trial, {"ms": 1.0})
    called: list[str] = []

    def counted(name: str, function: Any) -> Any:
        return lambda config: called.append(name) or function(config)

    with mc.Study(space, "random", **given) as study:
        again = study.ask()
        assert (again.number, again.values, again.outcome.missing(again.evaluate)) == (0, {"ms": 1.0}, ("loss",))
        study.give_back(again)
        run(study, {name: counted(name, f) for name, f in BOTH.items()}, mc.Cost(61), progress=False)
        assert called == ["loss"]  # what is known is not evaluated again
        assert study.trials[0].loss == tiny.loss(again.config)


def test_a_trial_shows_what_it_was_evaluated_for(space: mc.Space) -> None:
    study = mc.Study(space, Apart(space), costs=COSTS)
    trial = study.tell(study.ask(), {"ms": 3.25})
    assert str(trial).startswith("0: done, ms 3.25, ")
    assert str(study.tell(study.ask(), 0.5)).startswith("1: done, loss 0.5, ")
