"""The tables of studies, and the statements on them as text of one dialect.

A journal holds one study. A database of a server holds several: its tables have a prefix, and the first column of a row is its
study. The row of a study, a trial or an evaluation has the fields of its class and a digest (see
``mipcash.study.storage.checks``). Studies and trials also have the revision of their latest change: 1, 2, ... of the study, in
the order in which changes are committed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from typing import Any

import sqlalchemy as sa
from sqlalchemy.schema import CreateIndex, CreateTable

from mipcash.study.storage.checks import DIGEST
from mipcash.study.storage.protocol import NOTED, RUNNING, EvaluationRow, StudyRecord, TrialRow

REVISION = "revision"
FIELDS = {
    table: [f.name for f in fields(row) if f.name != "evaluations"]
    for table, row in (("study", StudyRecord), ("trial", TrialRow), ("evaluation", EvaluationRow))
}
KEYS = {"study": ["id"], "trial": ["number"], "evaluation": ["trial", "attempt", "output"], "worker": ["name"]}

_INTEGER = sa.BigInteger().with_variant(sa.INTEGER(), "sqlite")
_REAL = sa.Double().with_variant(sa.REAL(), "sqlite")


class Tables:
    """Tables and statements of a dialect.

    Args:
        dialect: SQLAlchemy dialect with named parameters.
        insert: insert construct of the dialect, which supports ``ON CONFLICT DO UPDATE``.
        prefix: prefix of the table names in a database that holds several studies; empty for a journal.

    Attributes:
        names: table -> names of the columns that are read, in the order of the statements.
        create: statements that create the tables.
        texts: name -> any other statement. A selection is named by its table and its choice of rows.
    """

    def __init__(self, dialect: Any, insert: Any, prefix: str = "") -> None:
        metadata = _declared(prefix)
        tables = {name: metadata.tables[prefix + name] for name in KEYS}
        made = (
            *map(CreateTable, metadata.sorted_tables),
            *(CreateIndex(i) for t in tables.values() for i in t.indexes),
        )
        self.prefix = prefix
        self.names = {name: [c.name for c in table.c if c.name != "place"] for name, table in tables.items()}
        self.create = [str(each.compile(dialect=dialect)) for each in made]
        statements = {**_selections(tables, bool(prefix)), **_changes(tables, self.names, insert, bool(prefix))}
        self.texts = {name: str(each.compile(dialect=dialect)) for name, each in statements.items()}


def _declared(prefix: str) -> sa.MetaData:
    metadata = sa.MetaData()

    def table(name: str, *columns: sa.SchemaItem) -> sa.Table:
        whose = sa.ForeignKey(f"{prefix}study.id", ondelete="CASCADE")
        key = sa.PrimaryKeyConstraint(*(["study"] if prefix and name != "study" else []), *KEYS[name])
        study = [_column("study", sa.TEXT, whose)] if prefix and name != "study" else []
        return sa.Table(prefix + name, metadata, *study, *columns, key)

    named = [_column("name", sa.TEXT, unique=True)] if prefix else []
    table("study", *named, *_columns(StudyRecord), _column(REVISION, _INTEGER))
    trial = table("trial", *_columns(TrialRow), _column(REVISION, _INTEGER))
    # keeps the order of a trial's outputs; in SQLite the rowid does
    place = [_column("place", _INTEGER, sa.Identity())] if prefix else []
    own = ["study"] if prefix else []
    of_trial = sa.ForeignKeyConstraint(
        [*own, "trial"], [trial.c[name] for name in (*own, "number")], ondelete="CASCADE" if prefix else None
    )
    evaluation = table("evaluation", *_columns(EvaluationRow), *place, of_trial)
    table("worker", _column("name", sa.TEXT), *(_column(name, _REAL) for name in ("since", "seen", "promised")))
    sa.Index(f"{prefix}trial_revision", *(trial.c[name] for name in (*own, REVISION)))
    if prefix:
        sa.Index(f"{prefix}evaluation_running", evaluation.c.study, postgresql_where=_running(evaluation))
    return metadata


def _column(name: str, kind: Any, *more: Any, **options: Any) -> sa.Column[Any]:
    return sa.Column(name, kind, *more, **{"nullable": False, **options})


def _columns(row: type) -> Iterator[sa.Column[Any]]:
    """Yield the columns of the fields of a row, which are part of the format. Fields other than numbers are texts."""
    for each in fields(row):
        kind, _, none = str(each.type).partition(" | ")
        if each.name != "evaluations":
            # a seed may have more than 64 bits
            number = {"int": _INTEGER, "float": _REAL}.get(kind) if each.name != "seed" else None
            yield _column(each.name, number or sa.TEXT, nullable=bool(none))
    yield _column(DIGEST, sa.TEXT)


def _running(evaluation: sa.Table) -> Any:
    return evaluation.c.status == sa.literal_column(f"'{RUNNING}'")


def _mine(table: sa.Table, several: bool) -> Any:
    """Return the condition that a row belongs to the study."""
    if not several:
        return sa.true()
    return (table.c.study if "study" in table.c else table.c.id) == sa.bindparam("study", type_=sa.TEXT)


def _now(several: bool) -> Any:
    """Return seconds since the epoch by a clock that all writers share: the machine's for a file, or the server's."""
    if not several:
        return sa.bindparam("now", type_=_REAL)
    return sa.cast(sa.extract("epoch", sa.func.clock_timestamp()), _REAL)


def _selections(tables: dict[str, sa.Table], several: bool) -> dict[str, Any]:
    s, t, e, w = (tables[name] for name in KEYS)
    place = e.c.place if several else sa.literal_column("rowid")
    running = sa.select(e.c.trial).where(_mine(e, several), _running(e))
    chosen = {
        "all": sa.true(),
        "new": t.c.revision > sa.bindparam("seen", type_=_INTEGER),
        "one": t.c.number == sa.bindparam("number", type_=_INTEGER),
        "running": t.c.number.in_(running),
    }
    found: dict[str, Any] = {}
    for name, choice in chosen.items():
        numbers = sa.select(t.c.number).where(_mine(t, several), choice)
        among = sa.true() if name == "all" else e.c.trial.in_(numbers)
        evaluations = sa.select(*(c for c in e.c if c.name != "place")).where(_mine(e, several), among)
        found[f"evaluation {name}"] = evaluations.order_by(e.c.trial, e.c.attempt, place)
        found[f"trial {name}"] = sa.select(t).where(_mine(t, several), choice).order_by(t.c.number)
    latest = sa.select(sa.func.max(t.c.revision)).where(_mine(t, several)).scalar_subquery()
    return found | {
        "study all": sa.select(s).where(_mine(s, several)),
        "format": sa.select(s.c.schema).where(_mine(s, several)),
        "latest": sa.select(latest, s.c.revision).where(_mine(s, several)),
        "workers": sa.select(w.c.name, w.c.since, w.c.seen, w.c.promised, _now(several)).where(_mine(w, several)),
        "at work": sa.select(e.c.worker).where(_mine(e, several), _running(e)).distinct(),
        "now": sa.select(_now(several)),
    }


def _changes(
    tables: dict[str, sa.Table], names: Mapping[str, Sequence[str]], insert: Any, several: bool
) -> dict[str, Any]:
    s, t, e, w = (tables[name] for name in KEYS)

    def given(*columns: str) -> dict[str, Any]:
        return {name: sa.bindparam(name) for name in columns}

    def put(table: sa.Table, name: str, *but: str) -> Any:
        """Insert a row, or update the existing one with its key."""
        row = insert(table).values(given(*names[name]))
        key = [column.name for column in table.primary_key]
        new = {n: row.excluded[n] for n in names[name] if n not in (*key, *but)}
        return row.on_conflict_do_update(index_elements=key, set_=new)

    this = (_mine(t, several), t.c.number == sa.bindparam("number"), t.c.revision == sa.bindparam("known"))
    changed = given("status", "finished", "duration", REVISION, DIGEST)
    return {
        "insert study": sa.insert(s),
        "insert trial": sa.insert(t),
        "put evaluation": put(e, "evaluation"),
        "put worker": put(w, "worker", "since"),
        "update study": sa.update(s).where(_mine(s, several)).values(given(*NOTED, REVISION, DIGEST)),
        "update trial": sa.update(t).where(*this).values(changed),
        "forget worker": sa.delete(w).where(_mine(w, several), w.c.name == sa.bindparam("worker")),
        "forget workers": sa.delete(w).where(_mine(w, several)),
    }
