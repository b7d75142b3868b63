"""Unusual outcomes of objectives: each is a failure with a readable message and does not end the run."""

from __future__ import annotations

import sqlite3
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny
from typer.testing import CliRunner

import mipcash as mc
from mipcash.cli.main import app
from mipcash.errors import StorageError
from mipcash.study.minimize import minimize
from mipcash.study.reading import LOSS_LIMIT, read_outcome
from mipcash.study.storage import sql
from mipcash.study.storage.sqlite import read_journal
from mipcash.text import MESSAGE_LIMIT


class MuteError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")

    __repr__ = __str__


class Panic(BaseException):
    """Exception like the panics that extensions written in Rust raise."""


class BadFloat:
    def __float__(self) -> float:
        raise RuntimeError("no number")


class BadRepr:
    def __repr__(self) -> str:
        raise RuntimeError("no text")


class Silent(mc.Failed):
    def __init__(self) -> None:  # forgets super().__init__()
        pass


class OddName(str):
    __slots__ = ()

    def __str__(self) -> str:
        raise RuntimeError("no name")

    __repr__ = __str__
    __hash__ = str.__hash__


def raising(error: BaseException) -> Callable[[], Any]:
    def objective() -> Any:
        raise error

    return objective


CASES: dict[str, tuple[Callable[[], Any], str]] = {
    "a lone surrogate": (raising(ValueError("bad \udc80 byte")), "ValueError: bad \\udc80 byte (" + __file__),
    "a NUL": (raising(ValueError("a\0b")), "ValueError: a\\x00b"),
    "str raises": (
        raising(MuteError()),
        "MuteError: (MuteError, which cannot be shown as text: it raised RuntimeError)",
    ),
    "a panic": (raising(Panic("index out of range")), "Panic: index out of range"),
    "a long text": (raising(ValueError("x" * 10**7)), "more characters) (" + __file__),
    "deep recursion": (lambda: (lambda f: f(f))(lambda f: f(f)), "RecursionError: maximum recursion depth"),
    "float raises": (BadFloat, "BadFloat, which cannot be read: RuntimeError: no number ("),
    "repr raises": (BadRepr, "BadRepr"),
    "complex": (lambda: np.complex128(1 + 0j), "complex128 np.complex128(1+0j), which is not a loss"),
    "huge": (lambda: 1e308, "1e+308; a loss must lie within 1e+100 of 0: rescale it"),
    "huge and low": (lambda: {"loss": -1e101}, "'loss': -1e+101; a loss must lie within"),
    "huge integer": (lambda: 10**5000, "int "),
    "huge list": (lambda: [0.0] * 10**6, "list [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, ...]"),
    "surrogate string": (lambda: "\ud800", "str '\\ud800'"),
    "failed without a text": (lambda: mc.Failed(""), "failed"),
    "failed with an object": (lambda: mc.Failed({"code": 3}), "{'code': 3}"),  # type: ignore[arg-type]
    "failed with a mute object": (lambda: mc.Failed(MuteError()), "which cannot be shown as text"),  # type: ignore[arg-type]
    "failed and forgot": (Silent, "failed"),
    "no loss among many": (lambda: {str(k): 1.0 for k in range(1000)}, "without 'loss', only ['0', '1'"),
}


@pytest.mark.parametrize("workers", [1, 2])
def test_each_unusual_outcome_is_a_recorded_failure_with_a_message(
    space: mc.Space, journal: Path, workers: int
) -> None:
    calls = iter([lambda: 1.0, *(objective for objective, _ in CASES.values())])  # no success would be a defect

    with warnings.catch_warnings():
        warnings.simplefilter("error")  # the progress lines are printed too
        trials = minimize(
            lambda config: next(calls)(),
            space,
            len(CASES) + 1,
            optimizer=tiny.Sampler(space),
            storage=journal,
            execution=workers,
        ).history
    failures = [t.message for t in trials if t.failed]
    assert len(failures) == len(CASES) == len(trials) - 1
    for case, (_, message) in CASES.items():
        assert any(message in said for said in failures), case
    for said in failures:
        assert len(said) <= MESSAGE_LIMIT + 50
        said.encode()
    assert [row.outcome.message for row in read_journal(journal)[1]] == [t.message for t in trials]
    with mc.Study(space, tiny.Sampler(space), storage=journal) as study:  # the run can be resumed
        assert study.ask().number == len(trials)


def test_names_and_texts_beside_the_loss_are_kept(space: mc.Space, journal: Path) -> None:
    said = {"loss": 1.0, "note": "early stop at 7", OddName("n"): np.str_("x"), "lone": "\ud800\0", "long": "y" * 10**5}
    with mc.Study(space, tiny.Sampler(space), storage=journal) as study:
        told = study.tell(study.ask(), {**said, "ms": 3.0, "\ud800": 2.0, OddName("m"): 4.0})
    assert (told.status, told.loss, told.message) == ("done", 1.0, "")
    assert told.values == {"ms": 3.0, "\ud800": 2.0, "m": 4.0}
    long = told.texts["long"]
    assert told.texts == {"note": "early stop at 7", "n": "x", "lone": "\\ud800\\x00", "long": long}
    assert len(long) <= MESSAGE_LIMIT + 50
    assert all(type(text) is str for text in (*told.texts.values(), *told.texts, *told.values))
    with mc.Study(space, tiny.Sampler(space), storage=journal) as study:
        again = study.trials[0]
        assert (again.texts, again.values, again.loss) == (told.texts, told.values, 1.0)
        row = study.result.to_rows()[0]
        assert (row["texts.note"], row["values.ms"]) == ("early stop at 7", 3.0)
        assert "[note] early stop at 7" in str(study.result)


def test_lists_arrays_and_paths_are_kept_as_texts(space: mc.Space, journal: Path) -> None:
    outcome = {
        "loss": 1.0,
        "curve": (1.0, 0.5),
        "gradient": np.arange(3.0),
        "model": Path("m.bin"),
        "by": {"a": np.float64(1)},
    }
    with mc.Study(space, tiny.Sampler(space), storage=journal) as study:
        study.tell(study.ask(), outcome)
    with mc.Study(space, tiny.Sampler(space), storage=journal) as study:
        kept = study.trials[0].texts
    assert kept == {"curve": "[1.0, 0.5]", "gradient": "[0.0, 1.0, 2.0]", "model": "m.bin", "by": '{"a": 1.0}'}
    asked = read_outcome({"loss": 1.0, "ms": [1.0]}, ("loss", "ms"))
    assert asked["ms"].message == "the objective returned 'ms': list [1.0]; a further value is a number"


def test_show_prints_the_texts_of_the_best_trial(space: mc.Space, journal: Path) -> None:
    with mc.Study(space, tiny.Sampler(space), storage=journal) as study:
        study.tell(study.ask(), {"loss": 1.0, "note": "early\n stop \x1b[31m"})
    shown = CliRunner().invoke(app, ["show", str(journal), "--plot", str(journal.with_suffix(".svg"))])
    assert shown.exit_code == 0, shown.output
    assert "[note] early stop \\x1b[31m" in shown.output


CYCLE: list[Any] = []
CYCLE.append(CYCLE)
FURTHER: dict[str, tuple[Any, str]] = {
    "nothing": (None, "the objective returned 'more': None; a further value is a number, a text, a path or a list"),
    "a long list": ([0.25] * 1000, "has 6,000 characters as JSON: write it to a file, and return its path"),
    "a list that contains itself": (CYCLE, "; a further value is a number, a text, a path or a list"),
    "a complex number": (np.complex64(1), "'more': complex64"),
    "bytes": (b"x", "'more': bytes b'x'"),
    "float raises": (BadFloat(), "cannot be read: RuntimeError: no number"),
    "repr raises": (BadRepr(), "'more': BadRepr"),
    "a failure": (mc.Failed("no battery"), "no battery"),
}


def test_a_number_is_the_one_output_that_was_wanted_or_else_the_loss() -> None:
    assert read_outcome(2.0, ("ms",))["ms"].value == 2.0
    both = read_outcome(2.0, ("ms", "share"))
    assert both.loss == 2.0
    assert [both[name].status for name in ("ms", "share")] == ["failed", "failed"]


def test_an_unreadable_further_value_does_not_discard_the_loss(space: mc.Space, journal: Path) -> None:
    with mc.Study(space, tiny.Sampler(space), storage=journal) as study:
        for value, _ in FURTHER.values():
            told = study.tell(study.ask(), {"more": value, "loss": 0.5, 7: 1.0})
            assert (told.status, told.loss, told.values) == ("done", 0.5, {"7": 1.0})
    for row, (case, (_, message)) in zip(read_journal(journal)[1], FURTHER.items(), strict=True):
        assert row.outcome["more"].status == "failed"
        assert message in row.outcome["more"].message, case


def test_a_further_value_that_cannot_be_kept_is_named_once(space: mc.Space) -> None:
    def objective(config: Any) -> dict[str, Any]:
        return {"loss": 0.5, "seen": {1, 2}, "big": np.zeros((500, 500)), "why": mc.Failed("no battery")}

    with pytest.warns(UserWarning, match="is not kept") as warned:
        mc.minimize(objective, space, 3, optimizer=tiny.Sampler(space), progress=False)
    texts = sorted(str(w.message) for w in warned)
    assert [text.split(":")[0] for text in texts] == ["output 'big' is not kept", "output 'seen' is not kept"]
    assert "write it to a file" in texts[0]


def test_a_text_instead_of_the_loss_or_a_requested_output_is_a_failure() -> None:
    read = read_outcome({"loss": "low", "note": "x"})
    assert (read.status(), read["note"].status) == ("failed", "text")
    assert "'loss': str 'low', which is not a loss" in read.message
    asked = read_outcome({"ms": "slow"}, ("ms",))
    assert asked.status(("ms",)) == "failed"
    assert asked.message == "the objective returned 'ms': str 'slow'; a further value is a number"


def test_a_loss_of_too_large_magnitude_is_a_failure() -> None:
    assert read_outcome(-LOSS_LIMIT).status() == "done"
    assert read_outcome(np.nextafter(LOSS_LIMIT, np.inf)).status() == "failed"
    assert read_outcome({"loss": 1.0, "memory": 1e308}).values == {"memory": 1e308}  # no surrogate models this output


def test_invalid_seconds_are_refused_before_anything_is_recorded(space: mc.Space, journal: Path) -> None:
    with mc.Study(space, tiny.Sampler(space), storage=journal) as study:
        trial = study.ask()
        for seconds in (float("nan"), float("inf"), "long", 1j):
            with pytest.raises(ValueError, match="seconds must be a finite number"):
                study.tell(trial, 1.0, seconds)  # type: ignore[arg-type]
        assert study.tell(trial, 1.0, np.float32(0.5)).duration == 0.5  # type: ignore[arg-type]
    assert read_journal(journal)[1][0].duration == 0.5


def test_a_budget_beyond_the_integers_of_sqlite_is_accepted(space: mc.Space, journal: Path) -> None:
    result = minimize(tiny.loss, space, 10**30, optimizer=tiny.Finite(space), storage=journal, progress=False)
    assert result.n_done == 3


def test_names_with_lone_surrogates_are_stored(journal: Path) -> None:
    """Assert that a space, a parameter and a category may have lone surrogates, as from an undecodable command line."""

    def space() -> mc.Space:
        made = tiny.tiny_space(name="\udcff")
        made.categorical("\udcfe", ["\udcfd", "b"])
        return made

    for number in range(3):
        made = space()
        with mc.Study(made, tiny.Sampler(made), storage=journal) as study:
            assert study.tell(study.ask(), 1.0).number == number
    assert read_journal(journal)[0].space == "\\udcff"


def test_a_trial_may_be_told_again_after_a_failed_write(
    space: mc.Space, journal: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sql, "PATIENCE", -1.0)
    with mc.Study(space, tiny.Sampler(space), storage=journal) as study:
        trial = study.ask()
        with sqlite3.connect(journal) as reader:
            reader.execute("BEGIN")
            reader.execute("SELECT * FROM trial").fetchall()
            study._storage._database._connection.execute("PRAGMA busy_timeout = 10")
            with (
                pytest.warns(UserWarning, match="waiting|is kept in"),
                pytest.raises(StorageError, match="cannot be used: database is locked"),
            ):
                study.tell(trial, 1.0)
            reader.execute("COMMIT")
        assert study.tell(trial, 2.0).loss == 2.0


def test_a_write_waits_for_a_program_that_reads_the_journal(
    space: mc.Space, journal: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with mc.Study(space, tiny.Sampler(space), storage=journal) as study, sqlite3.connect(journal) as reader:
        trial = study.ask()
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM trial").fetchall()
        study._storage._database._connection.execute("PRAGMA busy_timeout = 10")
        monkeypatch.setattr(sql.time, "sleep", lambda seconds: reader.execute("COMMIT"))
        with pytest.warns(UserWarning, match="database is locked|is kept in|reached again") as noted:
            assert study.tell(trial, 1.0).loss == 1.0
    assert len(noted) == 3


def test_a_journal_may_be_named_like_a_home_and_there_may_be_none(
    space: mc.Space, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("HOME")
    monkeypatch.setattr("pwd.getpwuid", lambda number: {}[number])
    with mc.Study(space, tiny.Sampler(space), storage="~nobody.db") as study:
        study.tell(study.ask(), 1.0)
    assert len(read_journal("~nobody.db")[1]) == 1
    shared = f"sqlite:///{tmp_path / 'shared.db'}"
    with mc.Study(space, tiny.Sampler(space), storage=shared) as study:
        assert study.tell(study.ask(), 1.0).loss == 1.0


def test_an_outcome_that_could_not_be_written_is_recorded_by_the_next_run(
    space: mc.Space, journal: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with mc.Study(space, tiny.Sampler(space), storage=journal) as study:
        trial = study.ask()
        with sqlite3.connect(journal) as reader:
            reader.execute("BEGIN")
            reader.execute("SELECT * FROM trial").fetchall()
            study._storage._database._connection.execute("PRAGMA busy_timeout = 10")
            study._storage.patient = False
            with pytest.warns(UserWarning, match="is kept in"), pytest.raises(StorageError, match="database is locked"):
                study.tell(trial, 1.0)
            reader.execute("COMMIT")
    with (
        pytest.warns(UserWarning, match="the outcome of trial 0, left in .*, is recorded"),
        mc.Study(space, tiny.Sampler(space), storage=journal) as study,
    ):
        assert study.trials[0].loss == 1.0
    journal.unlink()
    with mc.Study(space, tiny.Sampler(space), storage=journal) as study:  # another study of that name
        assert study.ask().number == 0
        assert study.n_evaluated == 0
