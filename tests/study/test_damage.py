"""Journals that were cut, flipped, edited or made up: they work, or a StorageError names file, cause and cure."""

from __future__ import annotations

import json
import random
import shutil
import sqlite3
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tiny
from typer.testing import CliRunner

import mipcash as mc
from mipcash.cli.main import app
from mipcash.errors import ModelError, StorageError
from mipcash.study.storage.sqlite.reading import read_journal

DAMAGES = 200

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
    "x",
    "nan",
    "[]",
    "{}",
    "null",
    "-1",
    b"\xff\xfe",
    b"",
    -1,
    0,
    2**62,
    1.5,
    float("inf"),
    -1e308,
    "[" * 100_000,
    '{"a":' * 50_000 + "1" + "}" * 50_000,
    "9" * 10_000,
    '{"lr": 1, "lr": 2}',
    '{"ask": "soon"}',
    '{"ask": 1e999}',
    '{"ask": null}',
    '{"layers": -1}',
    '{"act": -1}',
    '{"layers": true}',
    '{"layers": 2.5}',
    '{"nothing": 1}',
    "\x1b[2J",
    "pending",
    "running",
    "done",
    "failed",
]
"""What an edit may put into a column."""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A journal of a real run: done and failed trials and one without an outcome, proofs, a state, a model."""
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
    command = [
        "run",
        str(model),
        "--storage",
        str(folder / "proofs.db"),
        "--optimizer",
        "random",
        "--budget",
        "6",
        "-q",
    ]
    assert CliRunner().invoke(app, command).exit_code == 0
    return folder


def flip(path: Path, rng: random.Random) -> str:
    content = bytearray(path.read_bytes())
    # a page is mostly free space; half of the flips go where text is
    used = [i for i, byte in enumerate(content) if byte]
    places = [rng.choice(used) if rng.random() < 0.7 else rng.randrange(len(content)) for _ in range(rng.randint(1, 8))]
    for place in places:
        content[place] = rng.randrange(256)
    path.write_bytes(content)
    return f"bytes {places}"


def head(path: Path, rng: random.Random) -> str:
    content = bytearray(path.read_bytes())
    place = rng.randrange(100)
    content[place] = rng.randrange(256)
    path.write_bytes(content)
    return f"header byte {place}"


def cut(path: Path, rng: random.Random) -> str:
    length = rng.randrange(1, path.stat().st_size)
    length -= length % 4096 if length > 4096 and rng.random() < 0.3 else 0
    path.write_bytes(path.read_bytes()[:length])
    return f"cut at {length}"


def blank(path: Path, rng: random.Random) -> str:
    content = bytearray(path.read_bytes())
    page = rng.randrange(len(content) // 4096)
    content[page * 4096 : (page + 1) * 4096] = bytes(4096)
    path.write_bytes(content)
    return f"page {page} zeroed"


def swap(path: Path, rng: random.Random) -> str:
    content = bytearray(path.read_bytes())
    pages = len(content) // 4096
    a, b = rng.sample(range(pages), 2)
    content[a * 4096 : (a + 1) * 4096] = content[b * 4096 : (b + 1) * 4096]
    path.write_bytes(content)
    return f"page {b} over page {a}"


def edit(path: Path, rng: random.Random) -> str:
    with sqlite3.connect(path) as database:
        database.execute("PRAGMA ignore_check_constraints = ON")
        table = rng.choice(["study", "trial", "trial", "evaluation"])
        columns = [row[1] for row in database.execute(f"PRAGMA table_info({table})")]
        column, value = rng.choice(columns), rng.choice(ODD)
        where = {"trial": f"WHERE number = {rng.randrange(6)}", "evaluation": f"WHERE trial = {rng.randrange(6)}"}.get(
            table, ""
        )
        try:
            database.execute(f'UPDATE {table} SET "{column}" = ? {where}', (value,))
        except sqlite3.Error:  # NOT NULL, or a key that is no number: an editor cannot do that, but something else
            database.execute("UPDATE trial SET status = 'odd' WHERE number = 3")
    database.close()
    return f"{table}.{column} = {repr(value)[:40]}"


STATEMENTS = {
    "DROP TABLE trial": "table 'trial' is missing",
    "DROP TABLE study": "no such table: study",
    "DROP TABLE evaluation": "table 'evaluation' is missing",
    "DELETE FROM study": "0 studies instead of one",
    "DELETE FROM trial WHERE number = 3": "trial int 4 stands where trial 3 belongs",
    "UPDATE trial SET number = -1 WHERE number = 2": "trial int -1 stands where trial 0 belongs",
    "UPDATE trial SET number = 4611686018427387904 WHERE number = 5": "stands where trial 5 belongs",
    "ALTER TABLE trial DROP COLUMN state": "table 'trial' has other columns",
    "ALTER TABLE trial RENAME COLUMN stop TO halt": "table 'trial' has other columns",
    "ALTER TABLE evaluation RENAME COLUMN value TO score": "table 'evaluation' has other columns",
    "ALTER TABLE study ADD COLUMN more TEXT": "table 'study' has other columns",
    "ALTER TABLE trial RENAME TO trials": "table 'evaluation' has other columns",
    "CREATE TRIGGER t AFTER INSERT ON trial BEGIN DELETE FROM trial; END": "it has a trigger 't'",
    "CREATE VIEW w AS SELECT 1": "it has a view 'w'",
    "UPDATE evaluation SET value = NULL WHERE trial = 1": "evaluation str 'loss' of trial 1 is 'present' and has no value",
    "UPDATE evaluation SET value = 9e999 WHERE trial = 1": "the value of evaluation str 'loss' of trial 1 is float inf and no f",
    "UPDATE evaluation SET value = 'low' WHERE trial = 1": "the value of evaluation str 'loss' of trial 1 is str 'low' and no",
    "UPDATE evaluation SET status = 'odd' WHERE trial = 1": "CHECK constraint failed",
    "UPDATE evaluation SET status = 'lost' WHERE trial = 1": "the status of trial 1 is 'done', which its evaluations contrad",
    "UPDATE evaluation SET status = 'failed' WHERE trial = 1 AND output = 'loss'": "which its evaluations contradict",
    "UPDATE evaluation SET status = 'running' WHERE trial = 1": "is 'running', which the time of its end contradicts",
    "UPDATE evaluation SET attempt = 0 WHERE trial = 1": "the attempt of evaluation str 'loss' of trial 1 is int 0",
    "UPDATE evaluation SET cost = 'dear' WHERE trial = 1": "the cost of evaluation str 'loss' of trial 1 is str 'dear'",
    "UPDATE evaluation SET output = '\"loss' WHERE trial = 1 AND output = 'ms'": "which mipcash did not write",
    "UPDATE evaluation SET output = '\"ms\"' WHERE trial = 1 AND output = 'ms'": "which mipcash did not write",
    "DELETE FROM evaluation WHERE trial = 1": "the status of trial 1 is 'done', which its evaluations contradict",
    "UPDATE evaluation SET trial = 99 WHERE trial = 6": "an evaluation of trial 99, which is not there",
    "UPDATE trial SET outputs = '[\"gain\"]' WHERE number = 1": "which its evaluations contradict",
    "UPDATE trial SET outputs = '{}' WHERE number = 1": "the outputs of trial 1 is dict {}, which is JSON of another kind",
    "UPDATE trial SET trace = '[]' WHERE number = 1": "the trace of trial 1 is list [], which is JSON of another kind",
    "UPDATE study SET recommended = 99": "the recommended trial is int 99, which is not there",
    "UPDATE study SET limits = '{\"ms\": 5}'": "the limit 'ms' is int 5 and no pair",
    "UPDATE trial SET finished = NULL WHERE number = 1": "which the time of its end contradicts",
    "UPDATE trial SET status = 'pending' WHERE number = 1": "is 'pending', which the time of its end contradicts",
    "UPDATE trial SET status = 'failed' WHERE number = 1": "is 'failed', which its evaluations contradict",
    "UPDATE trial SET status = 'odd' WHERE number = 1": "CHECK constraint failed",
    "UPDATE trial SET exact = (SELECT exact FROM trial WHERE number = 0) WHERE number = 1": "two records of the configu",
    """UPDATE trial SET exact = replace(exact, '"layers": ', '"layers": 9')""": "two records of the configuration of tri",
    "UPDATE trial SET exact = '{\"layers\": -1}' WHERE number = 1": "two records of the configuration of trial 1 diffe",
    "UPDATE trial SET exact = '{\"act\": -1}' WHERE number = 1": "it holds 'act': int -1, which space 'tiny' does not have",
    "UPDATE trial SET exact = '{\"layers\": 1.5}' WHERE number = 1": "it holds 'layers': float 1.5",
    "UPDATE trial SET exact = '{\"nothing\": 1}' WHERE number = 1": "it holds 'nothing': int 1",
    """UPDATE trial SET exact = '{"layers": 3}', config = '{"layers": 3}' WHERE number = 1""": "trial 1 is illegal",
    "UPDATE trial SET seconds = '{\"ask\": null}' WHERE number = 1": "the seconds 'ask' of trial 1 is None",
    "UPDATE trial SET origin = X'00ff' WHERE number = 1": "the origin of trial 1 is bytes",
    "UPDATE trial SET origin = CAST(X'ff' AS TEXT) WHERE number = 1": "Could not decode to UTF-8",
    "UPDATE evaluation SET message = X'00ff' WHERE trial = 1": "the message of evaluation str 'loss' of trial 1 is bytes",
    "UPDATE trial SET state = '[' WHERE number = 1": "the state of trial 1 is not JSON that mipcash wrote",
    "UPDATE study SET listing = replace(listing, '10', '11')": "does not agree with its fingerprint",
    "UPDATE study SET fingerprint = 'none'": "does not agree with its fingerprint",
    "UPDATE study SET seed = '1e3'": "the seed is str '1e3' and no whole number",
    "UPDATE study SET budget = 'many'": "the budget is str 'many'",
    "UPDATE study SET schema = 'one'": "its format is str 'one'",
    "PRAGMA application_id = 0": "not a journal of mipcash",
}
"""What SQL can do to a journal, and what is said of it."""

HARMLESS = ["CREATE TABLE notes (text)", "PRAGMA user_version = 7", "PRAGMA journal_mode = WAL", "VACUUM"]


def rewrite(path: Path, rng: random.Random) -> str:
    statement = rng.choice([*STATEMENTS, *HARMLESS])
    execute(path, statement)
    return statement


def execute(path: Path, statement: str) -> None:
    database = sqlite3.connect(path, isolation_level=None)
    database.execute("PRAGMA ignore_check_constraints = ON")
    database.execute(statement)
    database.close()


def nested(path: Path, rng: random.Random) -> str:
    """Random JSON in a place that holds JSON."""

    def value(depth: int) -> Any:
        kind = rng.randrange(8 if depth < 4 else 5)
        if kind == 5:
            return [value(depth + 1) for _ in range(rng.randrange(3))]
        if kind > 5:
            names = ["layers", "lr", "act", "ask", "config", "status", "value", "ms", "\x1b[31m", "count"]
            return {rng.choice(names): value(depth + 1) for _ in range(rng.randrange(4))}
        return [None, True, rng.randint(-3, 10), rng.random(), "text"][kind]

    table, column = rng.choice(
        [("trial", c) for c in ("config", "exact", "proof", "seconds", "state", "outputs", "trace")]
        + [("study", c) for c in ("listing", "settings", "options", "limits")]
    )
    text = json.dumps({rng.choice(["layers", "ask", "ms"]): value(0)} if rng.random() < 0.5 else value(0))
    where = f"WHERE number = {rng.randrange(6)}" if table == "trial" else ""
    with sqlite3.connect(path) as database:
        database.execute(f'UPDATE {table} SET "{column}" = ? {where}', (text,))
    database.close()
    return f"{table}.{column} = {text[:60]}"


KINDS: list[Callable[[Path, random.Random], str]] = [flip, head, cut, blank, swap, edit, edit, rewrite, nested]


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


def test_random_damage_is_told_or_harmless(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mipcash.report.convergence.save_convergence", lambda *_, **__: "no picture")
    answers: Counter[str] = Counter()
    wrong, accepted, slowest = [], [], 0.0
    for seed in range(DAMAGES):
        rng = random.Random(seed)
        source, optimizer = rng.choice([("run.db", tiny.Counter), ("proofs.db", None)])
        journal = tmp_path / f"{seed}.db"
        shutil.copy(made / source, journal)
        what = KINDS[seed % len(KINDS)](journal, rng)
        for name, attempt in attempts(made, journal, optimizer).items():
            began = time.monotonic()
            try:
                attempt()
                answers[f"{name} works"] += 1
                accepted.append(f"{name}: {what}")
            except (StorageError, ModelError) as error:
                answers[f"{name} refuses"] += 1
                if journal.name not in str(error) or not any(cure in str(error) for cure in CURES):
                    wrong.append(f"seed {seed}, {what}: {name} said {error}")
            except Exception as error:
                wrong.append(f"seed {seed}, {what}: {name} raised {error!r}")
            slowest = max(slowest, time.monotonic() - began)
        for left in tmp_path.glob(f"{seed}.*"):
            left.unlink()
    assert slowest < 20, slowest  # nothing waits for what will not come
    print(slowest, dict(answers), *accepted, sep="\n")
    assert not wrong, "\n".join(wrong)
    assert answers["study refuses"] > DAMAGES / 3
    assert answers["read works"] > DAMAGES / 20  # some damages hit free space, or make another legal journal


CURES = ("move it aside", "give another storage", "start a new", "use the version", "check permissions", "was stopped")


@pytest.mark.parametrize(("statement", "message"), STATEMENTS.items())
def test_an_edit_by_sql_is_seen_and_named(made: Path, tmp_path: Path, statement: str, message: str) -> None:
    journal = tmp_path / "run.db"
    shutil.copy(made / "run.db", journal)
    execute(journal, statement)
    space = tiny.tiny_space()
    with pytest.raises(StorageError) as refusal:
        mc.Study(space, tiny.Counter(space), storage=journal)
    assert message in str(refusal.value)
    assert str(journal) in str(refusal.value)
    assert any(cure in str(refusal.value) for cure in CURES)
    assert not journal.with_name("run.db.lock").exists()


@pytest.mark.parametrize("statement", HARMLESS)
def test_what_does_no_harm_is_no_damage(made: Path, tmp_path: Path, statement: str) -> None:
    journal = tmp_path / "run.db"
    shutil.copy(made / "run.db", journal)
    execute(journal, statement)
    space = tiny.tiny_space()
    with mc.Study(space, tiny.Counter(space), storage=journal) as study:
        assert len(study.trials) == 7


def test_a_loss_that_was_admitted_once_is_read_as_a_failure(made: Path, tmp_path: Path) -> None:
    journal = tmp_path / "run.db"
    shutil.copy(made / "run.db", journal)
    execute(journal, "UPDATE evaluation SET value = -1e308 WHERE trial = 1 AND output = 'loss'")
    assert (read_journal(journal)[1][1].status, read_journal(journal)[1][1].loss) == ("failed", None)
    space = tiny.tiny_space()
    with mc.Study(space, tiny.Counter(space), storage=journal) as study:
        assert study.trials[1].failed
        assert "a loss must lie within 1e+100 of 0" in study.trials[1].message
