"""The tables of studies in PostgreSQL: those of a journal, each row with its study, and who writes to it."""

from __future__ import annotations

import sqlalchemy as sa

from mipcash.study.storage.checks import DIGEST

METADATA = sa.MetaData()

PLACE = "place"
"""Column that the server fills in: the order of a trial's outputs. It is no part of the digest."""

NOW = sa.func.extract("epoch", sa.func.clock_timestamp()).cast(sa.Double)
"""By the server's clock, which all writers go by."""


def _text(name: str, **options: object) -> sa.Column[str]:
    return sa.Column(name, sa.Text, nullable=False, **options)


def _study() -> sa.Column[str]:
    return sa.Column("study", sa.Text, sa.ForeignKey("mipcash_study.id", ondelete="CASCADE"), primary_key=True)


STUDY = sa.Table(
    "mipcash_study",
    METADATA,
    sa.Column("id", sa.Text, primary_key=True),
    _text("name", unique=True),
    sa.Column("schema", sa.Integer, nullable=False),
    _text("version"),
    sa.Column("created", sa.Double, nullable=False),
    *(_text(n) for n in ("space", "fingerprint", "listing", "seed", "optimizer", "solver", "settings", "limits")),
    sa.Column("model", sa.Text),
    _text("options"),
    sa.Column("budget", sa.BigInteger),
    sa.Column("timeout", sa.Double),
    _text("stopped"),
    sa.Column("recommended", sa.Integer),
    sa.Column("objective", sa.Text),
    _text(DIGEST),
)

TRIAL = sa.Table(
    "mipcash_trial",
    METADATA,
    _study(),
    sa.Column("number", sa.Integer, primary_key=True),
    *(_text(n) for n in ("status", "config", "exact")),
    sa.Column("proof", sa.Text),
    *(_text(n) for n in ("origin", "seconds", "state", "outputs", "trace", "stop")),
    sa.Column("proposed", sa.Double, nullable=False),
    sa.Column("finished", sa.Double),
    sa.Column("duration", sa.Double),
    _text(DIGEST),
)

EVALUATION = sa.Table(
    "mipcash_evaluation",
    METADATA,
    _study(),
    sa.Column("trial", sa.Integer, primary_key=True),
    sa.Column("attempt", sa.Integer, primary_key=True),
    sa.Column("output", sa.Text, primary_key=True),
    sa.Column(PLACE, sa.BigInteger, sa.Identity(), nullable=False),
    *(_text(n) for n in ("worker", "status")),
    sa.Column("value", sa.Double),
    _text("message"),
    sa.Column("started", sa.Double, nullable=False),
    sa.Column("finished", sa.Double),
    sa.Column("cost", sa.Double),
    _text("folds"),
    sa.Column("variance", sa.Double),
    _text(DIGEST),
    sa.ForeignKeyConstraint(["study", "trial"], ["mipcash_trial.study", "mipcash_trial.number"], ondelete="CASCADE"),
    sa.Index("mipcash_evaluation_running", "study", "worker", postgresql_where=sa.text("status = 'running'")),
)

WORKER = sa.Table(
    "mipcash_worker",
    METADATA,
    _study(),
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("since", sa.Double, nullable=False),
    sa.Column("seen", sa.Double, nullable=False),
    sa.Column("promised", sa.Double, nullable=False),
)

CHANGE = sa.Table(
    "mipcash_change",
    METADATA,
    _study(),
    sa.Column("trial", sa.Integer, primary_key=True),
    sa.Column("revision", sa.BigInteger, nullable=False),
    sa.Index("mipcash_change_revision", "study", "revision"),
)
