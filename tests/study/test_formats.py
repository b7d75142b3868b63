"""Journals of earlier formats, written by the versions that had them: looked at as they are, made into the present one when
resumed.

``journals/*-format-N.journal`` are their own files: runs with seed 7 whose objective is ``outcome`` below, killed before the end.
"""

from __future__ import annotations

import math
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pytest
import tiny
from typer.testing import CliRunner

import mipcash as mc
from mipcash.cli.main import app
from mipcash.errors import StorageError
from mipcash.study.records.encoding import encode_config
from mipcash.study.storage.base import FORMAT
from mipcash.study.storage.sqlite import schema as tables
from mipcash.study.storage.sqlite.reading import read_journal

FOLDER = Path(__file__).parent / "journals"
OPTIMIZERS = {"counter": tiny.Counter, "sampler": tiny.Sampler}


def outcome(config: dict[str, Any]) -> Any:
    if config["layers"] == 3:
        return mc.Failed("out of memory")
    odd = math.nan if config["layers"] == 0 else math.inf
    return {"loss": tiny.loss(config), "rounds": config["rounds"], "odd": odd}


@pytest.fixture(params=list(OPTIMIZERS))
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def old(name: str, journal: Path) -> Path:
    shutil.copy(FOLDER / f"{name}-format-1.journal", journal)
    return journal


def opened(journal: Path, name: str, **changed: Any) -> mc.Study:
    space = tiny.tiny_space()
    given = {"seed": 7, "model": "models/tiny.py", "options": {"folds": "5"}, **changed}
    return mc.Study(space, OPTIMIZERS[name](space), storage=journal, **given)


def schema(journal: Path) -> int:
    with sqlite3.connect(journal) as database:
        return int(database.execute("SELECT schema FROM study").fetchone()[0])


def test_looking_at_one_changes_nothing(old: Path, name: str, tmp_path: Path) -> None:
    before = old.read_bytes()
    record, rows = read_journal(old)
    assert (record.schema, record.seed, record.budget, record.timeout) == (1, 7, 12, 60.0)
    assert (dict(record.limits), record.recommended) == ({}, None)
    shown = CliRunner().invoke(app, ["show", str(old), "--plot", str(tmp_path / "picture.svg")])
    assert shown.exit_code == 0, shown.output
    assert "out of memory" in shown.output
    assert f"{min(r.loss for r in rows if r.loss is not None):.6g}" in shown.output
    assert old.read_bytes() == before
    assert sorted(p.name for p in tmp_path.iterdir()) == ["picture.svg", old.name]


def test_resumed_it_goes_on_as_an_unbroken_run(old: Path, name: str) -> None:
    space = tiny.tiny_space()
    unbroken = mc.Study(space, OPTIMIZERS[name](space), seed=7)
    there = len(read_journal(old)[1])
    with opened(old, name) as study:
        assert schema(old) == study.record.schema == FORMAT
        assert len(study.trials) == there
        if name == "sampler":  # its last outcome was another one, under a name that UTF-8 cannot hold
            assert study.trials[-1].values == {"\ud800": 2.0}
            assert study.record.stopped == "timeout"
        for number in range(12):
            trial = unbroken.ask()
            told: Any = outcome(trial.config)
            if name == "sampler" and number == there - 1:
                told = {"loss": 1.0, "\ud800": 2.0}
            trial = unbroken.tell(trial, told)
            same = study.trials[number] if number < there else study.ask()
            assert encode_config(space, same.config) == encode_config(space, trial.config)
            if same.pending:
                assert same.number == number
                same = study.tell(same, told)
            assert (same.status, same.loss, same.message) == (trial.status, trial.loss, trial.message)
            assert str(same.values) == str(trial.values)
            assert same.proof == trial.proof
    with opened(old, name) as study:  # and what was migrated is as good as what was not
        assert [t.config for t in study.trials] == [t.config for t in unbroken.trials]
        assert study.result.value == unbroken.result.value


def test_an_outcome_becomes_the_evaluations_of_a_first_attempt(old: Path, name: str) -> None:
    before = read_journal(old)[1]
    opened(old, name).close()
    after = read_journal(old)[1]
    assert repr(after) == repr(before)  # nan is not equal to itself
    told = next(r for r in after if r.status == "done")
    assert {(e.output, e.attempt, e.worker, e.status) for e in told.evaluations} == {
        ("loss", 1, "", "present"),
        ("rounds", 1, "", "present"),
        ("odd", 1, "", "failed"),
    }
    assert {e.cost for e in told.evaluations} == {0.25}
    failed = next(r for r in after if r.status == "failed")
    assert [(e.output, e.status, e.message) for e in failed.evaluations] == [("loss", "failed", "out of memory")]
    if name == "counter":
        assert (after[-1].status, [e.status for e in after[-1].evaluations]) == ("pending", ["returned"])


def test_one_of_another_study_is_refused_and_stays_as_it_is(old: Path, name: str) -> None:
    before = old.read_bytes()
    with pytest.raises(StorageError, match="seed was 7 and is 8 now"):
        opened(old, name, seed=8)
    assert old.read_bytes() == before


def test_a_migration_that_is_broken_off_leaves_it_as_it_was(
    old: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, insert, calls = read_journal(old), tables.insert_trial, []

    def breaking(*arguments: Any) -> None:
        calls.append(1)
        if len(calls) == 4:
            raise KeyboardInterrupt
        insert(*arguments)

    monkeypatch.setattr(tables, "insert_trial", breaking)
    with pytest.raises(KeyboardInterrupt):
        opened(old, name)
    assert repr(read_journal(old)) == repr(before)
    assert not old.with_name(old.name + ".lock").exists()
    monkeypatch.undo()
    with opened(old, name) as study:
        assert len(study.trials) == len(before[1])


STATEMENTS = {
    "DROP TABLE trial": "table 'trial' is missing",
    "DELETE FROM study": "0 studies instead of one",
    "DELETE FROM trial WHERE number = 3": "trial int 4 stands where trial 3 belongs",
    "UPDATE trial SET number = -1 WHERE number = 2": "trial int -1 stands where trial 0 belongs",
    "ALTER TABLE trial DROP COLUMN state": "table 'trial' has other columns or checks than those of format 1",
    "ALTER TABLE study ADD COLUMN more TEXT": "table 'study' has other columns",
    "CREATE TRIGGER t AFTER INSERT ON trial BEGIN DELETE FROM trial; END": "it has a trigger 't'",
    "CREATE VIEW w AS SELECT 1": "it has a view 'w'",
    "UPDATE trial SET loss = NULL WHERE number = 2": "the status of trial 2 is 'done' and its loss is None",
    "UPDATE trial SET loss = 9e999 WHERE number = 2": "the loss of trial 2 is float inf and no finite number",
    "UPDATE trial SET loss = 'low' WHERE number = 2": "the loss of trial 2 is str 'low' and no finite number",
    "UPDATE trial SET finished = NULL WHERE number = 2": "which the time of its end contradicts",
    "UPDATE trial SET status = 'running' WHERE number = 2": "the status of trial 2 is 'running' and its loss is",
    "UPDATE trial SET status = 'odd' WHERE number = 2": "CHECK constraint failed",
    "UPDATE trial SET exact = '{\"layers\": -1}' WHERE number = 2": "two records of the configuration of trial 2 diffe",
    """UPDATE trial SET exact = '{"layers": 3}', config = '{"layers": 3}' WHERE number = 2""": "trial 2 is illegal",
    "UPDATE trial SET seconds = '{\"ask\": null}' WHERE number = 2": "the seconds 'ask' of trial 2 is None",
    'UPDATE trial SET "values" = \'{"ms": "x"}\' WHERE number = 2': "the values 'ms' of trial 2 is str 'x'",
    "UPDATE trial SET message = X'00ff' WHERE number = 2": "the message of trial 2 is bytes",
    "UPDATE trial SET message = CAST(X'ff' AS TEXT) WHERE number = 2": "Could not decode to UTF-8",
    "UPDATE study SET fingerprint = 'none'": "does not agree with its fingerprint",
    "UPDATE study SET budget = 'many'": "the budget is str 'many'",
    "UPDATE study SET schema = 2": "has other columns or checks than those of format 2",
    "UPDATE study SET schema = 'one'": "its format is str 'one'",
    "UPDATE study SET schema = 3": "has other columns or checks than those of format 3",
    "UPDATE study SET schema = 4": "has other columns or checks than those of format 4",
    "UPDATE study SET schema = 5": "has journal format 5 and this mipcash",
    "PRAGMA application_id = 0": "not a journal of mipcash",
}


@pytest.mark.parametrize(
    ("then", "now"),
    [
        ("highs", "auto"),
        ("highs threads=1", "auto solver=highs threads=1"),
        ("highs enumeration=on", "auto"),
        ("highs enumeration=off threads=1", "highs threads=1"),
        ("highs dead_ends=off row_products=on", "auto solver=highs dominated_levels=off rlt_rows=on"),
        ("scip", "scip"),
        ("./highs.toml", "./highs.toml"),
    ],
)
def test_the_solver_goes_by_its_present_name(journal: Path, then: str, now: str) -> None:
    shutil.copy(FOLDER / "counter-format-1.journal", journal)
    with sqlite3.connect(journal) as database:
        database.execute("UPDATE study SET solver = ?", (then,))
    assert read_journal(journal)[0].solver == now
    space = tiny.tiny_space()
    given = {"seed": 7, "model": "models/tiny.py", "options": {"folds": "5"}}
    with mc.Study(space, tiny.Counter(space), now, storage=journal, **given) as study:  # type: ignore[arg-type]
        assert study.record.solver == now


@pytest.mark.parametrize(("statement", "message"), STATEMENTS.items())
def test_a_damaged_one_is_refused_and_stays_as_it_is(journal: Path, statement: str, message: str) -> None:
    shutil.copy(FOLDER / "counter-format-1.journal", journal)
    database = sqlite3.connect(journal, isolation_level=None)
    database.execute("PRAGMA ignore_check_constraints = ON")
    database.execute(statement)
    database.close()
    before = journal.read_bytes()
    with pytest.raises(StorageError) as refusal:
        opened(journal, "counter")
    assert message in str(refusal.value)
    assert str(journal) in str(refusal.value)
    assert not journal.with_name("run.db.lock").exists()
    assert journal.read_bytes() == before


@pytest.fixture
def second(name: str, journal: Path) -> Path:
    """A journal of format 2: an attempt that lost its worker, nan, a part that was told, a name that UTF-8 cannot hold."""
    shutil.copy(FOLDER / f"{name}-format-2.journal", journal)
    return journal


@pytest.fixture
def third(name: str, journal: Path) -> Path:
    """A journal of format 3: that of format 2, and texts."""
    shutil.copy(FOLDER / f"{name}-format-3.journal", journal)
    return journal


def test_format_3_is_migrated_with_nothing_changed_and_takes_folds(third: Path, name: str, tmp_path: Path) -> None:
    raw, (record, rows) = third.read_bytes(), read_journal(third)
    assert (record.schema, record.seed, record.budget, len(rows)) == (3, 7, 12, 7)
    assert rows[2].outcome.texts == {"note": "a text"}
    shown = CliRunner().invoke(app, ["show", str(third), "--plot", str(tmp_path / "picture.svg")])
    assert (shown.exit_code, third.read_bytes()) == (0, raw), shown.output
    with opened(third, name) as study:
        assert schema(third) == FORMAT
        trial = study.ask()
        assert trial.number == (6 if name == "counter" else 7)
        study.tell(trial, mc.Folds([1.0, 2.0]))
    after, kept = read_journal(third)
    assert repr(kept[:6]) == repr(rows[:6])
    assert (kept[trial.number].outcome.folds, after.recommended) == ((1.0, 2.0), None)


def test_format_3_goes_on_as_an_unbroken_run(third: Path, name: str) -> None:
    space = tiny.tiny_space()
    unbroken = mc.Study(space, OPTIMIZERS[name](space), seed=7)
    with opened(third, name) as study:
        for number in range(9):
            trial = unbroken.ask()
            told: Any = {"loss": 1.0, "\ud800": 2.0} if (name, number) == ("sampler", 6) else outcome(trial.config)
            unbroken.tell(trial, told)
            same = study.trials[number] if number < 6 or (name, number) == ("sampler", 6) else study.ask()
            assert (same.number, encode_config(space, same.config)) == (number, encode_config(space, trial.config))
            if same.pending:
                study.tell(same, told)


def test_format_2_is_looked_at_and_migrated_with_nothing_changed(second: Path, name: str, tmp_path: Path) -> None:
    raw, (record, rows) = second.read_bytes(), read_journal(second)
    assert (record.schema, record.seed, record.budget, len(rows)) == (2, 7, 12, 7)
    assert (record.recommended, record.stopped) == ((6, "timeout") if name == "sampler" else (None, ""))
    shown = CliRunner().invoke(app, ["show", str(second), "--plot", str(tmp_path / "picture.svg")])
    assert (shown.exit_code, second.read_bytes()) == (0, raw), shown.output
    opened(second, name).close()
    after, kept = read_journal(second)
    assert (schema(second), after.schema, after.recommended) == (FORMAT, FORMAT, record.recommended)
    assert repr(kept) == repr(rows)


def test_format_2_goes_on_as_an_unbroken_run_and_takes_texts(second: Path, name: str) -> None:
    space = tiny.tiny_space()
    unbroken = mc.Study(space, OPTIMIZERS[name](space), seed=7)
    with opened(second, name) as study:
        for number in range(9):
            trial = unbroken.ask()
            told: Any = outcome(trial.config)
            if name == "sampler" and number == 6:
                told = {"loss": 1.0, "\ud800": 2.0}
            unbroken.tell(trial, told)
            same = study.trials[number] if number < 6 or (name, number) == ("sampler", 6) else study.ask()
            assert (same.number, encode_config(space, same.config)) == (number, encode_config(space, trial.config))
            if same.pending:
                study.tell(same, told if number < 8 else {"loss": 1.0, "note": "written late"})
    assert read_journal(second)[1][8].outcome.texts == {"note": "written late"}


def test_a_text_in_a_journal_of_format_2_is_damage(second: Path, name: str) -> None:
    database = sqlite3.connect(second, isolation_level=None)
    database.execute("PRAGMA ignore_check_constraints = ON")
    database.execute("UPDATE evaluation SET status = 'text', value = 1.0 WHERE output = 'rounds'")
    database.close()
    with pytest.raises(StorageError, match=r"CHECK constraint failed|is a text"):
        opened(second, name)
