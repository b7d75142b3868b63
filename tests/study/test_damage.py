"""Damaged and edited journals: they work, or a StorageError names the file, the cause and the remedy."""

from __future__ import annotations

import math
import random
import shutil
import sqlite3
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import tiny
from typer.testing import CliRunner

import mipcash as mc
from mipcash.cli.main import app
from mipcash.errors import ModelError, StorageError
from mipcash.study.storage.sqlite import read_journal
from tests.forging import TABLES, forge

DAMAGES = 18

MODEL = """import sys
sys.path.insert(0, {folder!r})
import tiny
import mipcash as mc
space = tiny.tiny_space()
objective = tiny.loss
"""

ODD: list[Any] = [
    None,
    "",
    "nan",
    "{}",
    b"\xff\xfe",
    -1,
    2**62,
    1.5,
    float("inf"),
    "[" * 100_000,
    "9" * 10_000,
    "\x1b[2J",
    "pending",
]
"""Values that an edit may write into a column."""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with journals of real runs: done, failed and pending trials, certificates, state and model."""
    folder = tmp_path_factory.mktemp("made")
    model = folder / "tiny_model.py"
    model.write_text(MODEL.format(folder=str(Path(__file__).parent)))
    space, path = tiny.tiny_space(), folder / "run.db"
    with mc.Study(space, tiny.Counter(space), storage=path, model=str(model), options={}) as study:
        study.plan(8, None)
        for number in range(6):
            outcome = mc.Failed("out of memory") if number == 2 else {"loss": 0.5 + number, "ms": 3}
            study.tell(study.ask(), outcome)
        study.ask()
    mc.minimize(tiny.loss, space, 6, optimizer="random", storage=folder / "proofs.db", progress=False)
    return folder


def scribble(path: Path, rng: random.Random) -> str:
    """Change up to eight bytes, mostly in used parts of pages, or one byte of the header."""
    content = bytearray(path.read_bytes())
    used = [i for i, byte in enumerate(content) if byte]  # a page is mostly free space
    places = [rng.choice(used) if rng.random() < 0.7 else rng.randrange(len(content)) for _ in range(rng.randint(1, 8))]
    places = [rng.randrange(100)] if rng.random() < 0.3 else places
    for place in places:
        content[place] = rng.randrange(256)
    path.write_bytes(content)
    return f"bytes {places}"


def cut(path: Path, rng: random.Random) -> str:
    length = rng.randrange(1, path.stat().st_size)
    length -= length % 4096 if length > 4096 and rng.random() < 0.3 else 0
    path.write_bytes(path.read_bytes()[:length])
    return f"cut at {length}"


def swap(path: Path, rng: random.Random) -> str:
    """Overwrite one page with another page or with zeros."""
    content = bytearray(path.read_bytes())
    a, b = rng.sample(range(len(content) // 4096), 2)
    page = bytes(4096) if rng.random() < 0.5 else content[b * 4096 : (b + 1) * 4096]
    content[a * 4096 : (a + 1) * 4096] = page
    path.write_bytes(content)
    return f"page {b} over page {a}"


def edit(path: Path, rng: random.Random) -> str:
    with sqlite3.connect(path) as database:
        table = rng.choice(["study", "trial", "trial", "evaluation"])
        columns = [row[1] for row in database.execute(f"PRAGMA table_info({table})")]
        column, value = rng.choice(columns), rng.choice(ODD)
        key = {"trial": "number", "evaluation": "trial"}.get(table, "1")
        with suppress(sqlite3.Error):  # the edit violates NOT NULL or the type of a key
            database.execute(f'UPDATE {table} SET "{column}" = ? WHERE {key} = ?', (value, rng.randrange(6)))
    database.close()
    return f"{table}.{column} = {repr(value)[:40]}"


STATEMENTS = {
    "DROP TABLE trial": "no such table: trial",
    "DROP TABLE study": "no such table: study",
    "UPDATE study SET schema = 99": "has journal format 99 and",
    "DELETE FROM study": "0 studies instead of one",
    "DELETE FROM trial WHERE number = 3": "trial int 4 stands where trial 3 belongs",
    "UPDATE trial SET number = -1 WHERE number = 2": "trial int -1 stands where trial 0 belongs",
    "ALTER TABLE trial DROP COLUMN state": "no such column: trial.state",
    "CREATE TRIGGER t AFTER INSERT ON trial BEGIN DELETE FROM trial; END": "it has a trigger 't'",
    "CREATE VIEW w AS SELECT 1": "it has a view 'w'",
    "UPDATE evaluation SET value = NULL WHERE trial = 1": "a present output needs a finite value, got None",
    "UPDATE evaluation SET value = 9e999 WHERE trial = 1": "a present output needs a finite value, got inf",
    "UPDATE evaluation SET status = 'odd' WHERE trial = 1": "and not 'odd'",
    "UPDATE evaluation SET status = 'lost' WHERE trial = 1": "is 'done', which its evaluations contradict",
    "UPDATE evaluation SET trial = 99 WHERE trial = 6": "an evaluation of trial 99, which is not there",
    "UPDATE study SET limits = '{\"ms\": 5}'": "the study has a value that mipcash did not write: 'int' object is not iterable",
    "UPDATE trial SET finished = NULL WHERE number = 1": "is 'done', which its evaluations contradict",
    "UPDATE trial SET status = 'failed' WHERE number = 1": "is 'failed', which its evaluations contradict",
    "UPDATE trial SET exact = '{\"act\": -1}' WHERE number = 1": "trial 1 is illegal",
    """UPDATE trial SET exact = '{"layers": 3}', config = '{"layers": 3}' WHERE number = 1""": "trial 1 is illegal",
    "UPDATE trial SET origin = CAST(X'ff' AS TEXT) WHERE number = 1": "Could not decode to UTF-8",
    "UPDATE study SET seed = '1e3'": "the study has a value that mipcash did not write: invalid literal for int()",
    "UPDATE evaluation SET variance = -1.0": "the variance of an estimate is a finite number, at least 0",
    "PRAGMA application_id = 0": "not a journal of mipcash",
}
"""SQL statements that damage a journal, and the error message for each of them."""

HARMLESS = ["CREATE TABLE notes (text)", "PRAGMA user_version = 7", "PRAGMA journal_mode = WAL", "VACUUM"]


def rewrite(path: Path, rng: random.Random) -> str:
    statement = rng.choice([*STATEMENTS, *HARMLESS])
    forge(path, statement)
    return statement


KINDS: list[Callable[[Path, random.Random], str]] = [scribble, cut, swap, edit, edit, rewrite]


def attempts(folder: Path, journal: Path, optimizer: Any) -> dict[str, Callable[[], object]]:
    model = str(folder / "tiny_model.py")

    def study() -> None:
        space = tiny.tiny_space()
        with mc.Study(space, "random" if optimizer is None else optimizer(space), storage=journal) as opened:
            opened.tell(opened.ask(), 1.0)

    def command(*arguments: str) -> None:
        done = CliRunner().invoke(app, list(arguments))
        assert done.exit_code in (0, 2), (done.output, done.exception)
        if done.exit_code == 2:
            assert isinstance(done.exception, SystemExit)
            assert done.stderr.startswith("error: "), done.output
            assert "\x1b" not in done.output
            raise StorageError(done.stderr.strip())

    return {
        "read": lambda: read_journal(journal),
        "show": lambda: command("show", str(journal)),
        "resume": lambda: command(
            "resume", str(journal), "--model", model, "--budget", "3" if optimizer else "7", "-q"
        ),
        "study": study,
    }


def test_random_damage_is_reported_or_harmless(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mipcash.report.convergence.save_convergence", lambda *_, **__: "no picture")
    answers: Counter[str] = Counter()
    wrong = []
    for seed in range(DAMAGES):
        rng = random.Random(seed)
        source, optimizer = rng.choice([("run.db", tiny.Counter), ("proofs.db", None)])
        journal = tmp_path / f"{seed}.db"
        shutil.copy(made / source, journal)
        what = KINDS[seed % len(KINDS)](journal, rng)
        for name, attempt in attempts(made, journal, optimizer).items():
            try:
                attempt()
                answers[f"{name} works"] += 1
            except (StorageError, ModelError) as error:
                answers[f"{name} refuses"] += 1
                if journal.name not in str(error) or not any(cure in str(error) for cure in CURES):
                    wrong.append(f"seed {seed}, {what}: {name} said {error}")
            except Exception as error:
                wrong.append(f"seed {seed}, {what}: {name} raised {error!r}")
    print(dict(answers))
    assert not wrong, "\n".join(wrong)
    assert answers["study refuses"] > DAMAGES / 3
    assert answers["read works"] > 0  # some damage hits free space, or makes another legal journal


CURES = ("move it aside", "give another storage", "start a new", "use the version", "check permissions", "was stopped")


@pytest.mark.parametrize(("statement", "message"), STATEMENTS.items())
def test_an_sql_edit_is_detected_and_named(made: Path, tmp_path: Path, statement: str, message: str) -> None:
    journal = tmp_path / "run.db"
    shutil.copy(made / "run.db", journal)
    forge(journal, statement)
    space = tiny.tiny_space()
    with pytest.raises(StorageError) as refusal:
        mc.Study(space, tiny.Counter(space), storage=journal)
    assert message in str(refusal.value)
    assert str(journal) in str(refusal.value)
    assert any(cure in str(refusal.value) for cure in CURES)
    assert not journal.with_name("run.db.lock").exists()


def test_harmless_sql_statements_are_accepted(made: Path, tmp_path: Path) -> None:
    journal, space = tmp_path / "run.db", tiny.tiny_space()
    shutil.copy(made / "run.db", journal)
    for statement in HARMLESS:
        forge(journal, statement)
    with mc.Study(space, tiny.Counter(space), storage=journal) as study:
        assert len(study.trials) == 7


def changed(value: Any) -> list[Any]:
    """Return other values of a column, the smallest change first."""
    if value is None or isinstance(value, str):
        return [0.5 if value is None else f"{value} "]
    return [math.nextafter(value, math.inf)] if isinstance(value, float) else [value + 1, -value - 1]


def columns_of(path: Path) -> list[tuple[str, str, int, Any]]:
    """Return table, column, row and value for each column of a journal."""
    found = []
    with sqlite3.connect(path) as database:
        for table in TABLES:
            for name in [row[1] for row in database.execute(f"PRAGMA table_info({table})")]:
                rows = database.execute(f'SELECT rowid, "{name}" FROM {table}').fetchall()
                # a column that is NULL in some rows only is changed in a NULL row and in another row
                found += [(table, name, *row) for row in {row[1] is None: row for row in rows}.values()]
    database.close()
    return found


def test_a_changed_value_in_any_column_is_refused_with_table_and_row(made: Path, tmp_path: Path) -> None:
    """Assert that every way to open a journal checks the digest of a row before decoding the row."""
    journal, model = tmp_path / "run.db", str(made / "tiny_model.py")
    refused = Counter[str]()
    for table, name, row, value in columns_of(made / "run.db"):
        for other in changed(value):
            shutil.copy(made / "run.db", journal)
            database = sqlite3.connect(journal, isolation_level=None)
            database.execute("PRAGMA ignore_check_constraints = ON")
            before = database.execute(f'SELECT "{name}" FROM {table} WHERE rowid = ?', (row,)).fetchone()
            try:
                database.execute(f'UPDATE {table} SET "{name}" = ? WHERE rowid = ?', (other, row))
            except sqlite3.IntegrityError:  # the column is the rowid, or the value is the key of another row
                continue
            # stored values are compared, since a REAL column stores 1 as 1.0
            after = database.execute(f'SELECT "{name}" FROM {table} WHERE rowid = ?', (row,)).fetchone()
            database.close()
            assert before != after
            with pytest.raises(StorageError) as refusal:
                read_journal(journal)
            said = str(refusal.value)
            assert str(journal) in said
            checked = {("study", "only")}
            expected = "CHECK constraint failed" if (table, name) in checked else f"the row of table {table!r} with "
            assert ("has journal format" if name == "schema" else expected) in said, (table, name, other, said)
            assert "restore it from a copy" in said or name == "schema"
            refused[f"{table}.{name}"] += 1
    space = tiny.tiny_space()
    with pytest.raises(
        StorageError, match="does not match its digest"
    ):  # every way to open the journal refuses the last change
        mc.Study(space, tiny.Counter(space), storage=journal)
    for command in (["show", str(journal)], ["resume", str(journal), "--model", model, "-q"]):
        done = CliRunner().invoke(app, command)
        assert (done.exit_code, "does not match its digest" in done.stderr) == (2, True), done.output
    assert {n for n in refused} == {f"{table}.{name}" for table, name, *_ in columns_of(made / "run.db")}
    shutil.copy(made / "run.db", journal)
    assert len(read_journal(journal)[1]) == 7  # the original journal opens


def test_values_that_sqlite_stores_in_another_form_are_no_damage(journal: Path) -> None:
    space = tiny.tiny_space()
    with mc.Study(space, tiny.Counter(space), storage=journal) as study:
        study.plan(2**70, 5.0)
        for told in ({"loss": -0.0, "a": math.nan, "b": -math.inf}, {"loss": 3, "a": 2**60}):
            study.tell(study.ask(), told, 2)
    record, rows = read_journal(journal)
    assert (record.budget, [row.loss for row in rows]) == (2**63 - 1, [0.0, 3.0])
