"""An objective that fails for a reason of its own stops the run and spends nothing of the budget; once mended it goes on."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import tiny
from typer.testing import CliRunner

import mipcash as mc
from mipcash.cli.main import app
from mipcash.errors import DefectError, MipcashError, ModelError, ObjectiveError, TellError
from mipcash.optimizers.outcome import Outcome
from mipcash.study.minimize import minimize
from mipcash.study.policies.defects import failed_alike
from mipcash.study.result import LEAST, SUSPICIOUS
from mipcash.study.storage.sqlite import read_journal
from mipcash.study.trial import Trial


def missing_name(config: dict[str, Any]) -> float:
    return undefined_name * config["lr"]  # type: ignore[name-defined]  # noqa: F821


def missing_package(config: dict[str, Any]) -> float:
    import no_such_package_at_all  # type: ignore[import-not-found]

    return float(no_such_package_at_all.loss(config))


def missing_extra(config: dict[str, Any]) -> float:
    raise ModuleNotFoundError("No module named 'xgboost'", name="xgboost")


def no_data(config: dict[str, Any]) -> float:
    raise ModelError("there is no file mnist_5k.npz; fetch it")


def not_python(config: dict[str, Any]) -> float:
    return float(eval("1 +"))


CERTAIN: dict[str, tuple[Callable[..., Any], str]] = {
    "name": (
        missing_name,
        r"whatever the configuration: NameError: name 'undefined_name' is not defined \(.*test_defects",
    ),
    "package": (missing_package, r"Install what is missing \(pip install no_such_package_at_all\) and run again"),
    "extra": (missing_extra, r"Install what is missing \(pip install \"mipcash\[xgboost\]\"\) and run again"),
    "data": (no_data, r"ModelError: there is no file mnist_5k.npz; fetch it"),
    "syntax": (not_python, r"SyntaxError: invalid syntax"),
    "call": (int, r"whatever the configuration: TypeError: int\(\) argument must be"),
}


def run(space: mc.Space, objective: Callable[..., Any], budget: int = 12, **options: Any) -> mc.Result:
    return minimize(objective, space, budget, optimizer=tiny.Sampler(space), **{"progress": False, **options})


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("case", CERTAIN)
def test_what_no_configuration_is_at_fault_for_stops_the_run_at_once(
    space: mc.Space, journal: Path, case: str, workers: int
) -> None:
    objective, message = CERTAIN[case]
    with pytest.raises(DefectError, match=message) as refusal:
        run(space, objective, storage=journal, execution=mc.Execution(workers=workers))
    assert isinstance(refusal.value, MipcashError)
    assert "nothing of the budget was spent" in str(refusal.value)
    assert "mc.Failed" not in str(refusal.value)
    record, rows = read_journal(journal)
    assert 1 <= len(rows) <= workers + 1
    assert {row.status for row in rows} == {"pending"}
    assert record.stopped.startswith("defect: ")
    mended = run(space, tiny.loss, 6, storage=journal)
    assert [t.number for t in mended.history] == list(range(6))
    assert (mended.n_done, mended.history[0].attempt, mended.history[0].lost) == (6, 2, 0)
    if workers == 1:
        assert [t.config for t in mended.history] == [t.config for t in run(space, tiny.loss, 6).history]


def test_the_traceback_of_the_objective_is_shown(space: mc.Space) -> None:
    def deeper(config: dict[str, Any]) -> float:
        return missing_name(config)

    with pytest.raises(DefectError, match=r"(?s)in deeper\n.*in missing_name\n +return undefined_name"):
        run(space, deeper)


SAME: dict[str, Callable[[dict[str, Any]], Any]] = {
    "misspelt": lambda config: config["learning_rate"],
    "forgot to return": lambda config: None,
    "returned a text": lambda config: "0.5",
    "no loss": lambda config: {"score": 1.0},
    "an object with an address": lambda config: object(),
    "no file": lambda config: Path("no/such/file.csv").read_text(),
    "a message with a number": lambda config: raising(ValueError(f"bad rate {config['lr']}")),
    "a message with a category": lambda config: raising(
        ValueError(f"bad order {config['order']!r} of {config['act']}")
    ),
    "a key that the configuration gives": lambda config: {}[config["lr"]],
}


def raising(error: Exception) -> float:
    raise error


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("case", SAME)
def test_the_same_error_at_each_of_the_first_evaluations_stops_the_run(
    space: mc.Space, journal: Path, case: str, workers: int
) -> None:
    with pytest.raises(
        DefectError, match=r"(?s)at each of its first \d evaluations alike: .*let the objective raise mc.Failed"
    ):
        run(space, SAME[case], storage=journal, execution=mc.Execution(workers=workers))
    rows = read_journal(journal)[1]
    assert SUSPICIOUS <= len(rows) < SUSPICIOUS + workers + 1
    assert {row.status for row in rows} == {"pending"}
    assert run(space, tiny.loss, 6, storage=journal).n_done >= 6


def test_a_defect_that_runs_have_seen_that_ended_before_is_found(space: mc.Space, journal: Path) -> None:
    assert run(space, SAME["misspelt"], 1, storage=journal).n_failed == 1
    with pytest.raises(DefectError, match="at each of its first 5 evaluations"):
        run(space, SAME["misspelt"], storage=journal)
    assert {row.status for row in read_journal(journal)[1]} == {"pending"}


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("budget", range(LEAST, SUSPICIOUS))
def test_a_small_budget_that_failed_alike_is_not_spent(
    space: mc.Space, journal: Path, budget: int, workers: int
) -> None:
    """One failure alone may be its configuration's; two alike, and nothing else, are the objective's."""
    with pytest.raises(DefectError, match=f"at each of its first {budget} evaluations alike: .*no gpu"):
        run(
            space,
            lambda config: raising(RuntimeError("no gpu")),
            budget,
            storage=journal,
            execution=mc.Execution(workers=workers),
        )
    record, rows = read_journal(journal)
    assert {row.status for row in rows} == {"pending"}
    assert record.stopped.startswith("defect: ")
    mended = run(space, tiny.loss, budget, storage=journal)
    assert (mended.n_done, mended.n_failed, mended.stopped) == (budget, 0, "budget")


@pytest.mark.parametrize("budget", range(1, SUSPICIOUS))
def test_a_small_budget_of_stated_failures_is_spent(space: mc.Space, budget: int) -> None:
    result = run(space, lambda config: mc.Failed("out of memory"), budget)
    assert (result.n_failed, result.stopped) == (budget, "budget")
    mixed = run(space, serving(mc.Failed("too large"), KeyError("lr")), budget)
    assert (mixed.n_failed, mixed.stopped) == (budget, "budget")


def test_failures_are_alike_modulo_numbers_and_the_values_of_the_configuration() -> None:
    def alike(*failures: tuple[str, dict[str, Any]]) -> bool:
        return failed_alike([Trial(k, c, "failed", Outcome.failure(m)) for k, (m, c) in enumerate(failures)])

    assert alike(("E: bad -1e-3 in 2 (f.py:3)", {}), ("E: bad 0.25 in 12 (f.py:3)", {}))
    assert not alike(("E: bad 1 (f.py:3)", {}), ("E: bad 1 (f.py:4)", {}))  # the place counts
    assert not alike(("E: bad 1", {}), ("F: bad 1", {}))
    assert alike(("E: no relu", {"a": "relu"}), ("E: no elu", {"a": "elu"}))
    assert not alike(("E: no relu", {"a": "x"}), ("E: no elu", {"a": "x"}))
    # a value may be a word of every message
    assert alike(("E: no file 1", {"a": "no"}), ("E: no file 2", {"a": "yes"}))
    assert not failed_alike([Trial(0, {}, "done", Outcome.of(1.0)), Trial(1, {}, "failed", Outcome.failure("E"))])


def serving(*outcomes: Any) -> Callable[[dict[str, Any]], Any]:
    """Returns, or raises, one after the other; the last for ever."""
    calls = iter(outcomes)

    def objective(config: dict[str, Any]) -> Any:
        outcome = next(calls, outcomes[-1])
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome

    return objective


GO_ON: dict[str, Callable[[dict[str, Any]], Any]] = {
    "explicit failures returned": lambda config: mc.Failed("out of memory"),
    "explicit failures raised": serving(mc.Failed("out of memory")),
    "nan": lambda config: math.nan,
    "memory that does not suffice": serving(MemoryError()),
    "inf in a dict": lambda config: {"loss": math.inf},
    "a failed loss in a dict": lambda config: {"loss": mc.Failed("diverged")},
    "other messages": serving(*(ValueError(word) for word in "abcdefghi")),
    "one success first": serving(1.0, KeyError("lr")),
    "a missing name after a success": serving(1.0, NameError("x")),
    "one explicit failure first": serving(mc.Failed("too large"), KeyError("lr")),
    "another error in the middle": serving(KeyError("a"), KeyError("a"), ValueError("b"), KeyError("a")),
    "an unbound local": serving(UnboundLocalError("y"), 1.0),
}


@pytest.mark.parametrize("case", GO_ON)
def test_what_says_something_of_a_configuration_goes_on(space: mc.Space, case: str) -> None:
    result = run(space, GO_ON[case], 9)
    assert (result.n_done + result.n_failed, result.stopped) == (9, "budget")


def test_raised_failures_are_noted(space: mc.Space, capsys: pytest.CaptureFixture[str]) -> None:
    result = run(space, lambda config: mc.Failed("never"), 8, progress=None)
    said = "each of the first 5 evaluations failed with the same message and no evaluation succeeded: never"
    assert (result.n_failed, result.problem()) == (8, said)
    assert f"note: {said}" in capsys.readouterr().err


def test_known_data_do_not_hide_a_defect(space: mc.Space) -> None:
    with pytest.raises(DefectError, match="NameError"):
        run(space, missing_name, known=tiny.known(space, 3))
    with pytest.raises(DefectError, match="KeyError"):
        run(space, SAME["misspelt"], known=[*tiny.known(space, 3), (tiny.known(space, 4)[3][0], mc.Failed("x"))])


def test_a_certain_error_stops_a_resumed_run_too(space: mc.Space, journal: Path) -> None:
    """Another machine, where a package is not installed."""
    run(space, tiny.loss, 4, storage=journal)
    with pytest.raises(DefectError, match="pip install no_such_package_at_all"):
        run(space, missing_package, 9, storage=journal)
    assert [row.status for row in read_journal(journal)[1]] == ["done"] * 4 + ["pending"]


def test_with_doubt_what_still_runs_is_waited_for(space: mc.Space) -> None:
    """Five fail at once and alike while the first, a slow one, will succeed: no defect."""
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

    result = run(space, objective, 10, execution=mc.Execution(workers=2))
    assert (result.n_done, result.n_failed) == (5, 5)


def test_from_processes(space: mc.Space) -> None:
    with pytest.raises(DefectError, match=r"(?s)whatever the configuration: NameError.*in missing_name"):
        run(space, missing_name, execution=mc.Execution(executor=lambda: ProcessPoolExecutor(1)))
    with pytest.raises(ObjectiveError, match=r"cannot be sent to the processes of executor=: .*pickle"):
        run(space, lambda config: 1.0, execution=mc.Execution(executor=lambda: ProcessPoolExecutor(1)))


def test_an_outcome_is_taken_back(space: mc.Space, journal: Path) -> None:
    with mc.Study(space, tiny.Sampler(space), storage=journal) as study:
        first = study.tell(study.ask(), {"loss": 1.0, "ms": 3.0, "note": "x"})
        study.stop("budget")
        again = study.reopen(first)
        assert (again.pending, again.outcome.outputs, study.n_told, study.record.recommended) == (True, {}, 0, None)
        with pytest.raises(TellError, match="trial 0 has no outcome"):
            study.reopen(first)
        known = study.add(tiny.known(space, 1)[0][0], 1.0)
        with pytest.raises(TellError, match="trial 1 was evaluated elsewhere"):
            study.reopen(known)
    with mc.Study(space, tiny.Sampler(space), storage=journal) as study:
        trial = study.ask()
        assert (trial.number, trial.config, trial.attempt, trial.lost) == (0, first.config, 2, 0)
        assert study.tell(trial, 2.0).loss == 2.0


def test_on_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    head = "import mipcash as mc\nspace = mc.Space('m')\nspace.integer('a', 0, 9)\n"
    Path("m.py").write_text(head + "def objective(c):\n    import no_such_package_at_all\n")
    ran = CliRunner().invoke(
        app, ["run", "m.py", "--storage", "m.db", "--quiet", "--optimizer", "random", "--budget", "3"]
    )
    assert ran.exit_code == 2
    assert "Traceback (most recent call last)" not in ran.output
    for line in (
        "error: the objective failed, whatever the configuration: ModuleNotFoundError: No module named 'no_such_package_at_all'",
        "    import no_such_package_at_all",
        "Install what is missing (pip install no_such_package_at_all) and run again: nothing of the budget was spent",
        "To go on, once it is mended: mipcash resume m.db --model ",
    ):
        assert any(said.startswith(line) for said in ran.output.splitlines()), ran.output
    shown = CliRunner().invoke(app, ["show", "m.db"])
    assert "0 done, 0 failed, 1 without an outcome, stopped: defect: ModuleNotFoundError" in " ".join(
        shown.output.split()
    )
    Path("m.py").write_text(head + "def objective(c):\n    return c['a']\n")
    resumed = CliRunner().invoke(app, ["resume", "m.db", "--model", "m.py", "--quiet"])
    assert resumed.exit_code == 0, resumed.output
    assert "3 done, 0 failed, stopped: budget" in resumed.output
