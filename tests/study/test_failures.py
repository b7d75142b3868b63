"""Failed evaluations, from which the model learns, and defects of the objective, which stop the run at no cost."""

from __future__ import annotations

import itertools
import math
import pickle
import threading
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny
from typer.testing import CliRunner

import mipcash as mc
from mipcash.cli.main import app
from mipcash.errors import DefectError, ModelError, TellError
from mipcash.optimizers.optimizer import Observation, Request
from mipcash.optimizers.outcome import PRESENT
from mipcash.optimizers.registry import make_optimizer
from mipcash.study.evaluating.evaluation import _plain
from mipcash.study.evaluating.raised import FRAMES, Raised
from mipcash.study.failures import kind_of_failure, kinds
from mipcash.study.minimize import minimize
from mipcash.study.result import LEAST, SUSPICIOUS
from mipcash.study.storage.sqlite import read_journal

KINDS: dict[str, tuple[Any, str]] = {
    "raises": (ValueError("no such width: (3:4)"), "ValueError"),
    "runs out": (MemoryError(), "out of memory"),
    "says so": (mc.Failed("diverged at step 17", values={"latency_ms": 3.0}), "Failed: diverged at step #"),
    "is huge": ({"loss": 1e200}, "too large"),
    "nan": (float("nan"), "nan"),
    "minus inf": ({"loss": -float("inf")}, "inf"),
    "nothing": (None, "no loss"),
    "works": (1.0, ""),
}
MESSAGES = {
    "OutOfMemoryError: CUDA out of memory (a.py:3)": "out of memory",
    "the executor failed: PicklingError: no (b.py:1)": "PicklingError",
    "its worker died 3 times; at last: BrokenProcessPool: a process was terminated (c.py:9)": "worker died",
    "its worker died 1 times; at last: the worker process was killed by SIGKILL": "out of memory",
    "": "Failed",
    "Error: line one\nline two (d.py:9)": "Error",
}


def failing(config: dict[str, Any]) -> Any:
    outcome = KINDS[config["what"]][0]
    if isinstance(outcome, Exception):
        raise outcome
    return outcome


def test_every_failure_is_recorded_with_its_kind() -> None:
    space = mc.Space("failing")
    space.categorical("what", list(KINDS))
    result = mc.minimize(failing, space, len(KINDS), optimizer="random", progress=False)
    found = {t.config["what"]: kind_of_failure(t.message) for t in result.history if t.failed}
    assert found == {what: kind for what, (_, kind) in KINDS.items() if kind}
    assert len(kinds(result.history)["out of memory"]) == 1
    assert result.value == 1.0
    assert {message: kind_of_failure(message) for message in MESSAGES} == MESSAGES


def test_an_error_is_described_by_its_last_frames() -> None:
    def deep(left: int) -> None:
        if not left:
            raise ValueError("the end")
        deep(left - 1)

    try:
        deep(40)
    except ValueError as error:
        raised = Raised.of(error)
    assert raised.text.startswith("ValueError: the end (")
    assert raised.trace.count("File ") == FRAMES
    assert raised.trace.count("in deep") == FRAMES
    assert raised.trace.endswith('raise ValueError("the end")')


def test_a_failure_that_lacks_its_attributes_stays_as_it_is() -> None:
    class Empty(mc.Failed):
        def __init__(self) -> None:
            pass

    class Named(mc.Failed):
        pass

    empty = Empty()
    assert _plain(empty) is empty
    assert _plain({"a": empty, "b": 1.0}) == {"a": empty, "b": 1.0}
    known = _plain(Named("why", values={"cost": 2.0}))
    assert (type(known), known.message, dict(known.values)) == (mc.Failed, "why", {"cost": 2.0})


def test_a_failure_may_carry_values_of_outputs() -> None:
    space = mc.Space("known")
    space.real("x", 0.0, 1.0)
    study = mc.Study(space, limits={"latency_ms": 2.0})
    told = study.tell(study.ask(), mc.Failed("diverged", values={"latency_ms": 3.0, "note": "at once"}))
    assert (told.status, told.message, told.outcome["latency_ms"].status) == ("failed", "diverged", PRESENT)
    assert (told.values, told.texts) == ({"latency_ms": 3.0}, {"note": "at once"})
    for values in ([1.0], {"loss": 1.0}):
        with pytest.raises(ValueError, match=r"values|loss"):
            mc.Failed("why", values=values)  # type: ignore[arg-type]
    assert pickle.loads(pickle.dumps(mc.Failed("a", values={"b": 1.0}))).values == {"b": 1.0}


def works(config: dict[str, Any]) -> bool:
    return config["kind"] == "c" and config["x"] > 0.5


def test_proposals_stay_spread_and_distinct_while_the_first_twenty_fail() -> None:
    space, history = mc.Space("crashing"), list[Observation]()
    kind, n = space.categorical("kind", ["a", "b", "c", "d"]), space.integer("n", 1, 12)
    space.real("x", 0.0, 1.0)
    space.rule("few of a", n <= 8 + 4 * (1 - kind["a"]))
    optimizer, state = make_optimizer("hybrid", space), dict[str, Any]()
    for k in range(34):
        proposal = optimizer.ask(Request(history, np.random.default_rng([3, k]), state))
        state = proposal.state
        assert space.is_legal(proposal.config)
        good = k >= 20 and works(proposal.config)
        loss = (proposal.config["x"] - 0.8) ** 2 if good else None
        history.append(Observation(proposal.config, "done" if good else "failed", loss))
    assert all(a.config != b.config for a, b in itertools.combinations(history, 2))
    first = [o.config for o in history[:20]]
    assert {c["kind"] for c in first} == {"a", "b", "c", "d"}
    assert min(c["x"] for c in first) < 0.2
    assert max(c["x"] for c in first) > 0.8
    found = [o for o in history[20:] if o.status == "done"]
    assert len(found) >= 3
    assert min(o.loss or 0.0 for o in found) < 0.01


def test_a_space_in_which_every_evaluation_fails_is_exhausted_without_an_optimum() -> None:
    space = mc.Space("hopeless")
    space.categorical("kind", ["a", "b", "c"])
    space.integer("n", 1, 3)
    result = mc.minimize(lambda config: mc.Failed("always"), space, 50, progress=False)
    assert (result.n_failed, result.stopped, result.config) == (9, "space exhausted", None)


# -- defects -----------------------------------------------------------------------------------------------------------


def missing_name(config: dict[str, Any]) -> float:
    return undefined_name * config["lr"]  # type: ignore[name-defined]  # noqa: F821


def missing_package(config: dict[str, Any]) -> float:
    import no_such_package_at_all  # type: ignore[import-not-found]

    return float(no_such_package_at_all.loss(config))


def raising(error: Exception) -> float:
    raise error


def run(space: mc.Space, objective: Callable[..., Any], budget: int = 12, **options: Any) -> mc.Result:
    return minimize(objective, space, budget, optimizer=tiny.Sampler(space), **{"progress": False, **options})


EXTRA = ModuleNotFoundError("No module named 'xgboost'", name="xgboost")
NO_FILE = ModelError("there is no file mnist_5k.npz; fetch it")
CERTAIN: list[tuple[Callable[..., Any], str]] = [
    (missing_name, r"whatever the configuration: NameError: name 'undefined_name' is not defined \(.*test_failures"),
    (lambda config: missing_name(config), r"(?s)in <lambda>\n.*in missing_name\n +return undefined_name"),
    (missing_package, r"Install what is missing \(pip install no_such_package_at_all\) and run again"),
    (
        lambda trial: trial.suggest_float("lr", 0, 1),
        r"Take values from the configuration, config\['lr'\] for trial.suggest_float",
    ),
    (lambda config: raising(EXTRA), r"Install what is missing \(pip install \"mipcash\[xgboost\]\"\) and run again"),
    (lambda config: raising(NO_FILE), r"ModelError: there is no file mnist_5k.npz; fetch it"),
    (lambda config: eval("1 +"), r"SyntaxError: invalid syntax"),
    (int, r"whatever the configuration: TypeError: int\(\) argument must be"),
]


@pytest.mark.parametrize("workers", [1, 3])
def test_an_error_independent_of_the_configuration_stops_the_run(space: mc.Space, tmp_path: Path, workers: int) -> None:
    unbroken = run(space, tiny.loss, 4)
    for number, (objective, message) in enumerate(CERTAIN[:: 1 if workers == 1 else 3]):
        journal = tmp_path / f"{number}.db"
        with pytest.raises(DefectError, match=message) as refusal:
            run(space, objective, storage=journal, execution=workers)
        assert "nothing of the budget was spent" in str(refusal.value)
        assert "mc.Failed" not in str(refusal.value)
        record, rows = read_journal(journal)
        assert 1 <= len(rows) <= workers + 1
        assert {row.status for row in rows} == {"pending"}
        assert record.stopped.startswith("defect: ")
        mended = run(space, tiny.loss, 4, storage=journal)
        assert (mended.n_done, len(mended.history)) == (4, 4)
        assert (mended.history[0].attempt, mended.history[0].lost) == (2, 0)
        assert workers > 1 or [t.config for t in mended.history] == [t.config for t in unbroken.history]


SAME: dict[str, Callable[[dict[str, Any]], Any]] = {
    "misspelt": lambda config: config["learning_rate"],
    "forgot to return": lambda config: None,
    "no loss": lambda config: {"score": 1.0},
    "an object with an address": lambda config: object(),
    "a message with a number": lambda config: raising(ValueError(f"bad rate {config['lr']}")),
    "a message with a category": lambda config: raising(ValueError(f"bad {config['order']!r} of {config['act']}")),
    "a key that the configuration gives": lambda config: {}[config["lr"]],
}


@pytest.mark.parametrize("case", SAME)
def test_the_same_error_in_each_of_the_first_evaluations_stops_the_run(
    space: mc.Space, journal: Path, case: str
) -> None:
    workers = 3 if case == "misspelt" else 1
    said = r"(?s)at each of its first \d evaluations alike: .*raise mc.Failed"
    with pytest.raises(DefectError, match=said):
        run(space, SAME[case], storage=journal, execution=workers)
    rows = read_journal(journal)[1]
    assert SUSPICIOUS <= len(rows) < SUSPICIOUS + workers + 1
    assert {row.status for row in rows} == {"pending"}
    assert run(space, tiny.loss, 6, storage=journal).n_done >= 6


@pytest.mark.parametrize("budget", [LEAST, SUSPICIOUS - 1])
def test_a_small_budget_of_identical_failures_is_not_spent(space: mc.Space, journal: Path, budget: int) -> None:
    """Assert that identical failures and no success are a defect from two evaluations on.

    A single failure may be caused by its configuration.
    """
    with pytest.raises(DefectError, match=f"at each of its first {budget} evaluations alike: .*no gpu"):
        run(space, lambda config: raising(RuntimeError("no gpu")), budget, storage=journal, execution=2)
    assert {row.status for row in read_journal(journal)[1]} == {"pending"}
    mended = run(space, tiny.loss, budget, storage=journal)
    assert (mended.n_done, mended.n_failed, mended.stopped) == (budget, 0, "budget")


def test_defects_are_found_across_runs(space: mc.Space, journal: Path) -> None:
    assert run(space, SAME["misspelt"], 1, storage=journal).n_failed == 1  # in a run that has ended
    with pytest.raises(DefectError, match="at each of its first 5 evaluations"):
        run(space, SAME["misspelt"], storage=journal)
    run(space, tiny.loss, 4, storage=journal)
    with pytest.raises(
        DefectError, match="pip install no_such_package_at_all"
    ):  # as if another machine lacked the package
        run(space, missing_package, 9, storage=journal)
    assert [row.status for row in read_journal(journal)[1]] == ["done"] * 4 + ["pending"]
    known = [
        *tiny.known(space, 3),
        (tiny.known(space, 4)[3][0], mc.Failed("x")),
    ]  # known evaluations do not hide the defect
    with pytest.raises(DefectError, match="KeyError"):
        run(space, SAME["misspelt"], known=known)
    with pytest.raises(DefectError, match=r"(?s)whatever the configuration: NameError.*in missing_name"):
        run(space, missing_name, execution=mc.Execution(executor=lambda: ProcessPoolExecutor(1)))


def serving(*outcomes: Any) -> Callable[[dict[str, Any]], Any]:
    """Return an objective that returns or raises the outcomes in turn, and then repeats the last outcome."""
    calls = iter(outcomes)

    def objective(config: dict[str, Any]) -> Any:
        outcome = next(calls, outcomes[-1])
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome

    return objective


def test_a_failure_that_an_earlier_run_recorded_is_no_defect(space: mc.Space, journal: Path) -> None:
    options: Any = {"optimizer": "random", "seed": 3, "progress": False}
    kept = minimize(lambda _: 0.0, space, 2, **options).history[0].config

    def lacking(config: dict[str, Any]) -> float:
        if config["act"] != kept["act"]:
            import no_such_package  # type: ignore[import-not-found]  # noqa: F401
        return float(config["layers"])

    whole = minimize(lacking, space, 12, **options)
    assert whole.n_failed > 4
    for budget in (4, 12):
        result = minimize(lacking, space, budget, storage=journal, **options)
    assert [t.config for t in result.history] == [t.config for t in whole.history]
    assert result.n_failed == whole.n_failed


@pytest.mark.parametrize(
    "objective",
    [
        serving(mc.Failed("out of memory")),
        serving(math.nan),
        serving(MemoryError()),
        serving({"loss": math.inf}),
        serving({"loss": mc.Failed("diverged")}),
        serving(*(ValueError(word) for word in "abcdefghi")),
        serving(1.0, KeyError("lr")),
        serving(1.0, NameError("x")),
        serving(mc.Failed("too large"), KeyError("lr")),
        serving(KeyError("a"), KeyError("a"), ValueError("b"), KeyError("a")),
        serving(UnboundLocalError("y"), 1.0),
    ],
)
def test_failures_that_may_depend_on_the_configuration_do_not_stop_the_run(
    space: mc.Space, objective: Callable[..., Any]
) -> None:
    result = run(space, objective, 9)
    assert (result.n_done + result.n_failed, result.stopped) == (9, "budget")


def test_failures_declared_by_the_objective_count_and_are_reported(
    space: mc.Space, capsys: pytest.CaptureFixture[str]
) -> None:
    for budget in (LEAST, 8):
        result = run(space, lambda config: mc.Failed("never"), budget, progress=None)
        assert (result.n_failed, result.stopped) == (budget, "budget")
    said = "each of the first 5 evaluations failed with the same message and no evaluation succeeded: never"
    assert result.problem() == said
    assert "never" in str(result)
    assert f"note: {said}" in capsys.readouterr().err
    assert run(space, lambda config: mc.Failed("never"), 1).problem().startswith("the only evaluation failed")
    assert run(space, tiny.loss).problem() == ""


def test_a_suspected_defect_waits_for_running_evaluations(space: mc.Space) -> None:
    """Assert that five identical failures are no defect if the slow first evaluation succeeds later."""
    failed, calls = threading.Event(), iter(range(100))

    def objective(config: dict[str, Any]) -> float:
        call = next(calls)
        if call == 0:
            assert failed.wait(30)
            return 1.0
        if call == SUSPICIOUS:
            failed.set()
        if call <= SUSPICIOUS:
            raise ValueError("odd")
        return 2.0

    result = run(space, objective, 10, execution=2)
    assert (result.n_done, result.n_failed) == (5, 5)


def test_reopen_discards_an_outcome(space: mc.Space, journal: Path) -> None:
    with mc.Study(space, tiny.Sampler(space), storage=journal) as study:
        first = study.tell(study.ask(), {"loss": 1.0, "ms": 3.0, "note": "x"})
        study.stop("budget")
        again = study.reopen(first)
        assert (again.pending, again.outcome.outputs, study.n_evaluated, study.record.recommended) == (
            True,
            {},
            0,
            None,
        )
        with pytest.raises(TellError, match="trial 0 has no outcome"):
            study.reopen(first)
        known = study.add(tiny.known(space, 1)[0][0], 1.0)
        with pytest.raises(TellError, match="trial 1 was evaluated elsewhere"):
            study.reopen(known)
    with mc.Study(space, tiny.Sampler(space), storage=journal) as study:
        trial = study.ask()
        assert (trial.number, trial.config, trial.attempt, trial.lost) == (0, first.config, 2, 0)
        assert study.tell(trial, 2.0).loss == 2.0


def test_the_command_line_reports_a_defect_and_resumes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    head = "import mipcash as mc\nspace = mc.Space('m')\nspace.integer('a', 0, 9)\ndef objective(c):\n    "

    def mipcash(line: str, body: str, code: int) -> str:
        Path("m.py").write_text(head + body)
        done = CliRunner().invoke(app, line.split())
        assert done.exit_code == code, done.output
        return done.output

    ran = mipcash("run m.py --storage m.db --quiet --optimizer random --budget 3", "import no_such_package_at_all", 2)
    assert "Traceback (most recent call last)" not in ran
    for line in (
        "error: the objective failed, whatever the configuration: ModuleNotFoundError: No module named 'no_such_pack",
        "    import no_such_package_at_all",
        "Install what is missing (pip install no_such_package_at_all) and run again: nothing of the budget was spent",
        "To go on, once it is corrected: mipcash resume m.db --model ",
    ):
        assert any(said.startswith(line) for said in ran.splitlines()), ran
    shown = " ".join(mipcash("show m.db", "pass", 0).split())
    assert "0 done, 0 failed, 1 pending, stopped: defect: ModuleNotFoundError" in shown
    resumed = mipcash("resume m.db --model m.py --quiet", "return c['a']", 0)
    assert "3 done, 0 failed, stopped: budget" in resumed
