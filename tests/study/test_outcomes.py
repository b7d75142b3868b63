"""What an objective may do without ending a run: each is a failure that can be read, by every way through the loop."""

from __future__ import annotations

import itertools
import sqlite3
import warnings
from collections.abc import Callable, Iterator, Mapping
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
from mipcash.study.storage.sqlite import read_journal
from mipcash.study.text import MESSAGE_LIMIT


class MuteError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")

    __repr__ = __str__


class NoStringError(Exception):
    def __str__(self) -> str:
        return 3  # type: ignore[return-value]


class Panic(BaseException):
    """As extensions written in Rust raise it."""


class Nameless(type):
    @property
    def __name__(cls) -> str:  # type: ignore[override]
        raise RuntimeError("no name")


class NamelessError(Exception, metaclass=Nameless):
    pass


class BadFloat:
    def __float__(self) -> float:
        raise RuntimeError("no number")


class PanickingFloat:
    def __float__(self) -> float:
        raise Panic("in float")


class BadRepr:
    def __repr__(self) -> str:
        raise RuntimeError("no text")


class BadShape:
    @property
    def ndim(self) -> int:
        raise RuntimeError("no shape")

    dtype = ndim

    def __float__(self) -> float:
        return 1.0


class BadMapping(Mapping[str, float]):
    def __len__(self) -> int:
        raise RuntimeError("no length")

    def __iter__(self) -> Iterator[str]:
        raise RuntimeError("no items")

    def __getitem__(self, key: str) -> float:
        raise RuntimeError("no item")


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
    "str raises": (raising(MuteError()), "MuteError: (MuteError, whose text cannot be had: it raised RuntimeError)"),
    "str is no string": (raising(NoStringError()), "whose text cannot be had: it raised TypeError"),
    "no name": (raising(NamelessError("x")), "NamelessError: x"),
    "a panic": (raising(Panic("index out of range")), "Panic: index out of range"),
    "a long text": (raising(ValueError("x" * 10**7)), "more characters) (" + __file__),
    "deep recursion": (lambda: (lambda f: f(f))(lambda f: f(f)), "RecursionError: maximum recursion depth"),
    "float raises": (BadFloat, "BadFloat, which cannot be read: RuntimeError: no number ("),
    "float panics": (PanickingFloat, "PanickingFloat, which cannot be read: Panic: in float"),
    "repr raises": (BadRepr, "BadRepr"),
    "ndim raises": (BadShape, "BadShape, which cannot be read: RuntimeError: no shape"),
    "items raise": (BadMapping, "BadMapping, which cannot be read: RuntimeError: no items"),
    "complex": (lambda: np.complex128(1 + 0j), "complex128 np.complex128(1+0j), which is not a loss"),
    "complex array": (lambda: np.array(1 + 2j), "which is not a loss"),
    "huge": (lambda: 1e308, "1e+308; a loss must lie within 1e+100 of 0: rescale it"),
    "huge and low": (lambda: {"loss": -1e101}, "'loss': -1e+101; a loss must lie within"),
    "huge integer": (lambda: 10**5000, "int "),
    "huge list": (lambda: [0.0] * 10**6, "list [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, ...]"),
    "surrogate string": (lambda: "\ud800", "str '\\ud800'"),
    "failed without a text": (lambda: mc.Failed(""), "failed"),
    "failed with an object": (lambda: mc.Failed({"code": 3}), "{'code': 3}"),  # type: ignore[arg-type]
    "failed with a mute object": (lambda: mc.Failed(MuteError()), "whose text cannot be had"),  # type: ignore[arg-type]
    "failed and forgot": (Silent, "failed"),
    "raised a mute failure": (raising(mc.Failed(BadRepr())), "whose text cannot be had"),  # type: ignore[arg-type]
    "no loss among many": (lambda: {str(k): 1.0 for k in range(1000)}, "without 'loss', only ['0', '1'"),
}


def loop(space: mc.Space, journal: Path, objective: Any, **options: Any) -> list[mc.Trial]:
    return list(minimize(objective, space, 3, optimizer=tiny.Sampler(space), storage=journal, **options).history)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("workers", [1, 2])
def test_each_is_a_recorded_failure_with_a_text(space: mc.Space, journal: Path, case: str, workers: int) -> None:
    objective, message = CASES[case]
    calls = itertools.count()
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # and its lines are printed
        trials = loop(space, journal, lambda config: objective() if next(calls) else 1.0, execution=workers)
    assert sorted(t.status for t in trials) == ["done", "failed", "failed"]  # with no success it would be a defect
    for trial in (t for t in trials if t.failed):
        assert message in trial.message
        assert len(trial.message) <= MESSAGE_LIMIT + 50
        trial.message.encode()
    assert [row.outcome.message for row in read_journal(journal)[1]] == [t.message for t in trials]
    with mc.Study(space, tiny.Sampler(space), storage=journal) as study:  # and the run can be resumed
        assert study.ask().number == 3


@pytest.mark.parametrize("case", CASES)
def test_tell_records_each_too(space: mc.Space, journal: Path, case: str) -> None:
    """What is told by hand: the value as returned, and of an exception its object in :class:`mipcash.Failed`."""
    objective, message = CASES[case]
    try:
        outcome = objective()
    except mc.Failed as failed:
        outcome = failed
    except (Exception, Panic) as error:
        outcome, message = mc.Failed(error), ""  # type: ignore[arg-type]
    with mc.Study(space, tiny.Sampler(space), storage=journal) as study:
        told = study.tell(study.ask(), outcome)
    assert told.status == "failed"
    assert told.message
    assert message in told.message
    assert read_journal(journal)[1][0].outcome.message == told.message


def test_names_of_values_with_a_surrogate_are_kept(space: mc.Space, journal: Path) -> None:
    with mc.Study(space, tiny.Sampler(space), storage=journal) as study:
        told = study.tell(study.ask(), {"loss": 1.0, "\ud800": 2.0, OddName("n"): 3.0})
    assert (told.status, dict(told.values)) == ("done", {"\ud800": 2.0, "n": 3.0})
    assert all(type(name) is str for name in told.values)
    with mc.Study(space, tiny.Sampler(space), storage=journal) as study:
        assert dict(study.trials[0].values) == dict(told.values)


def test_texts_beside_the_loss_are_kept(space: mc.Space, journal: Path) -> None:
    said = {"loss": 1.0, "note": "early stop at 7", OddName("n"): np.str_("x"), "lone": "\ud800\0", "long": "y" * 10**5}
    with mc.Study(space, tiny.Sampler(space), storage=journal) as study:
        told = study.tell(study.ask(), {**said, "ms": 3.0})
    assert (told.status, told.loss, told.message, told.values) == ("done", 1.0, "", {"ms": 3.0})
    assert {n: told.texts[n] for n in ("note", "n", "lone")} == {
        "note": "early stop at 7",
        "n": "x",
        "lone": "\\ud800\\x00",
    }
    assert len(told.texts["long"]) <= MESSAGE_LIMIT + 50
    assert all(type(text) is str for text in told.texts.values())
    with mc.Study(space, tiny.Sampler(space), storage=journal) as study:
        again = study.trials[0]
        assert (again.texts, again.values, again.loss) == (told.texts, told.values, 1.0)
        row = study.result.to_rows()[0]
        assert (row["texts.note"], row["values.ms"]) == ("early stop at 7", 3.0)
        assert "[note] early stop at 7" in str(study.result)


def test_show_says_the_texts_of_the_best(space: mc.Space, journal: Path) -> None:
    loop(space, journal, lambda config: {"loss": 1.0, "note": "early\n stop \x1b[31m"}, progress=False)
    shown = CliRunner().invoke(app, ["show", str(journal), "--plot", str(journal.with_suffix(".svg"))])
    assert shown.exit_code == 0, shown.output
    assert "texts: note = early stop \\x1b[31m" in shown.output


FURTHER: dict[str, tuple[Any, str]] = {
    "nothing": (None, "the objective returned 'more': None; a further value is a number or a text"),
    "a list": ([1.0, 2.0], "the objective returned 'more': list [1.0, 2.0]; a further value"),
    "a complex number": (np.complex64(1), "'more': complex64"),
    "bytes": (b"x", "'more': bytes b'x'"),
    "float raises": (BadFloat(), "cannot be read: RuntimeError: no number"),
    "float panics": (PanickingFloat(), "cannot be read: Panic: in float"),
    "repr raises": (BadRepr(), "'more': BadRepr"),
    "a failure": (mc.Failed("no battery"), "no battery"),
}


@pytest.mark.parametrize("case", FURTHER)
def test_a_further_value_that_cannot_be_read_does_not_cost_the_loss(space: mc.Space, journal: Path, case: str) -> None:
    value, message = FURTHER[case]
    trials = loop(space, journal, lambda config: {"more": value, "loss": 0.5, 7: 1.0}, progress=False)
    assert [(t.status, t.loss, t.values) for t in trials] == [("done", 0.5, {"7": 1.0})] * 3
    kept = read_journal(journal)[1][0].outcome["more"]
    assert kept.status == "failed"
    assert message in kept.message


def test_a_text_in_the_place_of_the_loss_or_of_what_was_asked_for_is_a_failure(space: mc.Space) -> None:
    read = read_outcome({"loss": "low", "note": "x"})
    assert (read.status(), read["note"].status) == ("failed", "text")
    assert "'loss': str 'low', which is not a loss" in read.message
    asked = read_outcome({"ms": "slow"}, ("ms",))
    assert (asked.status(("ms",)), asked.message) == (
        "failed",
        "the objective returned 'ms': str 'slow'; a further value is a number",
    )


def test_nothing_that_computes_reads_a_text(space: mc.Space) -> None:
    study = mc.Study(space, "random", limits=None)
    trial = study.tell(study.ask(), {"loss": 1.0, "ms": "3.0"})
    assert trial.outcome["ms"].value is None
    assert study.table.history[0].values == {}


def test_the_limit_of_a_loss(space: mc.Space) -> None:
    assert read_outcome(LOSS_LIMIT).status() == "done"
    assert read_outcome(-LOSS_LIMIT).status() == "done"
    assert read_outcome(np.nextafter(LOSS_LIMIT, np.inf)).status() == "failed"
    assert read_outcome({"loss": 1.0, "memory": 1e308}).values == {"memory": 1e308}  # no surrogate sees it


@pytest.mark.parametrize("name", ["hybrid", "mivabo", "jopt"])
def test_huge_losses_do_not_end_a_run_of_a_surrogate(name: str) -> None:
    def objective(config: dict[str, Any]) -> float:
        return {0: 1e308, 1: -1e308, 2: LOSS_LIMIT, 3: -LOSS_LIMIT}.get(config["n"], config["x"])

    space = mc.Space("steep")
    space.integer("n", 0, 7)
    space.real("x", 0, 1)
    result = mc.minimize(objective, space, 14, optimizer=name, progress=False)
    assert {t.status for t in result.history} == {"done", "failed"}
    assert len(result.history) == 14


class Cancelled(BaseException):
    __module__ = "trio._core"


@pytest.mark.parametrize("order", [KeyboardInterrupt, SystemExit, GeneratorExit, Cancelled])
@pytest.mark.parametrize("workers", [1, 2])
def test_an_order_to_stop_gets_through_and_keeps_the_trial(
    space: mc.Space, journal: Path, order: type[BaseException], workers: int
) -> None:
    with pytest.raises(order):
        loop(space, journal, lambda config: raising(order())(), execution=workers)
    assert {row.status for row in read_journal(journal)[1]} == {"pending"}


@pytest.mark.parametrize("workers", [1, 2])
def test_a_loop_that_is_broken_off_leaves_no_trial_behind_in_a_study_that_stays_open(
    space: mc.Space, workers: int
) -> None:
    from mipcash.study.minimize import run

    study = mc.Study(space, tiny.Sampler(space))

    def breaking(study: mc.Study, trial: mc.Trial) -> None:
        raise RuntimeError("disk full")

    with pytest.raises(RuntimeError, match="disk full"):
        run(study, tiny.loss, 6, callbacks=[breaking], execution=mc.Execution(workers=workers), progress=False)
    assert [
        t.status for t in run(study, tiny.loss, 6, execution=mc.Execution(workers=workers), progress=False).history
    ] == ["done"] * 6


def test_seconds_that_are_none_are_refused_before_anything_is_recorded(space: mc.Space, journal: Path) -> None:
    with mc.Study(space, tiny.Sampler(space), storage=journal) as study:
        trial = study.ask()
        for seconds in (float("nan"), float("inf"), "long", 1j):
            with pytest.raises(ValueError, match="seconds must be a finite number"):
                study.tell(trial, 1.0, seconds)  # type: ignore[arg-type]
        assert study.tell(trial, 1.0, np.float32(0.5)).duration == 0.5  # type: ignore[arg-type]
    assert read_journal(journal)[1][0].duration == 0.5


def test_a_budget_beyond_what_sqlite_counts(space: mc.Space, journal: Path) -> None:
    result = minimize(tiny.loss, space, 10**30, optimizer=tiny.Finite(space), storage=journal, progress=False)
    assert result.n_done == 3


def test_names_that_no_file_can_hold(journal: Path) -> None:
    """A space, a parameter and a category with lone surrogates, as an undecodable command line gives them."""

    def space() -> mc.Space:
        made = tiny.tiny_space(name="\udcff")
        made.categorical("\udcfe", ["\udcfd", "b"])
        return made

    for number in range(3):
        made = space()
        with mc.Study(made, tiny.Sampler(made), storage=journal) as study:
            assert study.tell(study.ask(), 1.0).number == number
    assert read_journal(journal)[0].space == "\\udcff"


def test_a_full_disk_leaves_the_trial_to_be_told_again(space: mc.Space, journal: Path) -> None:
    with mc.Study(space, tiny.Sampler(space), storage=journal) as study:
        trial = study.ask()
        with sqlite3.connect(journal) as reader:
            reader.execute("BEGIN")
            reader.execute("SELECT * FROM trial").fetchall()
            study._storage._database._connection.execute("PRAGMA busy_timeout = 10")
            with pytest.raises(StorageError, match="cannot be used: database is locked"):
                study.tell(trial, 1.0)
            reader.execute("COMMIT")
        assert study.tell(trial, 2.0).loss == 2.0
