"""Studies with ``ask`` and ``tell``: values that a journal restores, and calls that are refused."""

from __future__ import annotations

import math
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny

import mipcash as mc
from mipcash.errors import IllegalProposalError, StorageError, TellError, UndecidedError
from mipcash.optimizers.optimizer import Proposal, Request
from mipcash.study.storage.sqlite import read_journal
from mipcash.study.study import record_returned


def configs(study: mc.Study) -> list[dict[str, Any]]:
    return [t.config for t in study.trials]


def test_a_resumed_study_restores_exactly_the_same_values(space: mc.Space, journal: Path) -> None:
    with mc.Study(space, tiny.Sampler(space), storage=journal) as study:
        for _ in range(30):
            study.tell(study.ask(), {"loss": 0.1, "memory": 1 / 3, "odd": math.nan})
        before = study.trials
    again_space = tiny.tiny_space()
    with mc.Study(again_space, tiny.Sampler(again_space), storage=journal) as again:
        after = again.trials
    assert {type(t.config["act"]) for t in after} == {type(None), bool, int, tuple, str}
    for a, b in zip(before, after, strict=True):
        assert [(n, v, type(v)) for n, v in a.config.items()] == [(n, v, type(v)) for n, v in b.config.items()]
        for name in [
            "number",
            "status",
            "loss",
            "message",
            "origin",
            "duration",
            "started",
            "finished",
            "seconds",
            "proof",
        ]:
            assert getattr(a, name) == getattr(b, name)
        assert a.proof is not None
        assert a.proof.config == a.config
        assert b.values["memory"] == 1 / 3
        assert math.isnan(b.values["odd"])


def test_categories_that_are_objects_are_restored_as_the_same_objects(journal: Path) -> None:
    def space() -> mc.Space:
        made = mc.Space("objects")
        made.categorical("function", [math.sqrt, np.mean, object])
        made.integer("layers", 0, 3)
        made.real("lr", 0.1, 1.0)
        return made

    first = space()
    with mc.Study(first, tiny.Sampler(first), storage=journal) as study:
        drawn = [study.tell(study.ask(), 0.0).config["function"] for _ in range(8)]
    second = space()
    with mc.Study(second, tiny.Sampler(second), storage=journal) as study:
        assert all(a is t.config["function"] for a, t in zip(drawn, study.trials, strict=True))


@pytest.mark.parametrize(("kind", "n"), [(tiny.Counter, 6), ("hybrid", 9), ("mivabo-paper", 9)])
def test_a_resumed_study_proposes_like_an_uninterrupted_study(journal: Path, kind: Any, n: int) -> None:
    """Reopen the study for each trial, and go beyond the initial design, so that surrogates are used."""

    def opened(storage: Path | None) -> mc.Study:
        space = tiny.tiny_space()
        method = kind if isinstance(kind, str) else kind(space)
        return mc.Study(space, mc.Method(method, seconds_per_proposal=None), seed=3, storage=storage)

    unbroken = opened(None)
    for _ in range(n):
        trial = unbroken.ask()
        assert unbroken.space.is_legal(trial.config)
        unbroken.tell(trial, tiny.loss(trial.config))
        with opened(journal) as study:
            trial = study.ask()
            study.tell(trial, tiny.loss(trial.config))
    with opened(journal) as study:
        assert configs(study) == configs(unbroken)
        assert [t.origin for t in study.trials] == [t.origin for t in unbroken.trials]


def test_two_method_names_of_one_optimizer_class_are_different_studies(space: mc.Space, journal: Path) -> None:
    with mc.Study(space, "mivabo-paper", storage=journal) as study:
        assert study.record.optimizer == "mivabo-paper"
        assert study.record.settings is not None
        assert study.record.settings["preset"] == "paper"
    with pytest.raises(StorageError, match="optimizer was 'mivabo-paper' and is 'mivabo' now"):
        mc.Study(space, "mivabo", storage=journal)


def test_trials_left_running_or_given_back_are_handed_out_first_and_in_order(space: mc.Space, journal: Path) -> None:
    with mc.Study(space, tiny.Sampler(space), storage=journal) as study:
        asked = [study.ask() for _ in range(4)]
        study.tell(asked[2], 1.0)
    with mc.Study(space, tiny.Sampler(space), storage=journal) as study:
        again = [study.ask() for _ in range(4)]
        assert [t.number for t in again] == [0, 1, 3, 4]
        assert [t.config for t in again[:3]] == [asked[i].config for i in (0, 1, 3)]
        study.give_back(again[2])
        study.give_back(again[0])
        assert [study.ask().number for _ in range(3)] == [0, 3, 5]


def test_the_optimizer_sees_pending_failed_and_done_trials(space: mc.Space) -> None:
    optimizer = tiny.Sampler(space)
    study = mc.Study(space, optimizer)
    first, second, third = study.ask(), study.ask(), study.ask()
    study.tell(third, {"loss": 2.5, "ms": 7})
    study.tell(first, mc.Failed("out of memory"))
    study.ask()
    seen = optimizer.histories[-1]
    assert [o.status for o in seen] == ["failed", "pending", "done"]
    assert [o.config for o in seen] == [first.config, second.config, third.config]
    assert seen[2].loss == 2.5
    assert seen[2].values == {"ms": 7.0}


OUTCOMES: list[tuple[Any, float | None, str]] = [
    (1, 1.0, ""),
    (np.float32(0.5), 0.5, ""),
    (np.array(2.0), 2.0, ""),
    ({"loss": np.int64(3), "ms": True}, 3.0, ""),
    ({"loss": 1.0, "name": "x"}, 1.0, ""),
    (None, None, "returned None"),
    (math.nan, None, "nan; a loss must be finite"),
    (-math.inf, None, "-inf; a loss must be finite"),
    ({"loss": math.inf}, None, "'loss': inf"),
    ({"loss": None}, None, "'loss': None"),
    ({"score": 1.0}, None, "without 'loss', only ['score']"),
    ("0.5", None, "str '0.5'"),
    (True, None, "a bool"),
    (np.array([1.0]), None, "ndarray"),
    (1j, None, "complex"),
    (10**400, None, "int 1"),
    ([0.1], None, "list"),
    (mc.Failed("out of memory"), None, "out of memory"),
]


def test_outcomes_are_read_and_stored(space: mc.Space, journal: Path) -> None:
    with mc.Study(space, tiny.Sampler(space), storage=journal) as study:
        for outcome, loss, message in OUTCOMES:
            told = record_returned(study, study.ask(), outcome, None, None, None, "")
            assert (told.status, told.loss) == ("failed" if loss is None else "done", loss), outcome
            assert message in told.message
        expected = [(t.status, t.loss, t.message) for t in study.trials]
    assert [(row.status, row.loss, row.outcome.message) for row in read_journal(journal)[1]] == expected


@pytest.mark.parametrize("outcome", [None, "0.3", {"los": 0.3}, {"loss": None}, {}, np.array([3.0, 4.0])])
def test_what_is_no_outcome_is_refused_and_the_trial_stays_pending(space: mc.Space, outcome: object) -> None:
    study = mc.Study(space, tiny.Sampler(space))
    trial = study.ask()
    with pytest.raises(TellError, match=r"tell\(\) got .*, which is no outcome; .*Trial 0 is still pending"):
        study.tell(trial, outcome)
    assert study.trials[0].pending
    assert study.tell(trial, float("nan")).failed


def test_nothing_is_no_outcome_after_a_report(space: mc.Space) -> None:
    study = mc.Study(space, tiny.Sampler(space))
    trial = study.ask()
    trial.report(0, 1.0)
    with pytest.raises(TellError, match="Trial 0 is still pending"):
        study.tell(trial, None)
    assert study.tell(trial, 2.0).loss == 2.0


@pytest.mark.parametrize("error", [UndecidedError("no time"), KeyboardInterrupt()])
def test_the_trials_of_a_batch_that_ends_early_are_handed_out_again(space: mc.Space, error: BaseException) -> None:
    class Interrupted(tiny.Sampler):
        def propose(self, request: Request) -> Proposal:
            if len(self.histories) == 2:
                self.histories.append(())
                raise error
            return super().propose(request)

    study = mc.Study(space, Interrupted(space))
    with pytest.raises(type(error)):
        study.ask(4)
    assert [trial.number for trial in study.ask(3)] == [0, 1, 2]


def test_ctrl_c_within_a_group_of_exceptions_stops_the_run(space: mc.Space) -> None:
    def stopped(config: object) -> float:
        raise BaseExceptionGroup("tasks", [KeyboardInterrupt()])

    with pytest.raises(BaseExceptionGroup):
        mc.minimize(stopped, space, 3, optimizer=tiny.Sampler(space), progress=False)


def test_a_second_kill_in_the_same_trial_is_noted(journal: Path) -> None:
    """A configuration that ends the process is handed out by each run that goes on."""
    space = tiny.tiny_space()
    with mc.Study(space, tiny.Sampler(space), storage=journal) as study:
        study.ask()
    for k in range(3):
        run = [sys.executable, "-c", KILLED.format(journal=str(journal))]
        done = subprocess.run(run, capture_output=True, text=True, cwd=Path(__file__).parent, check=False)
        assert done.returncode == -signal.SIGKILL
        assert ("trial 0 was running each of the" in done.stdout + done.stderr) == (k > 1)


KILLED = """
import os, signal
import mipcash as mc
import tiny
space = tiny.tiny_space()
mc.minimize(lambda config: os.kill(os.getpid(), signal.SIGKILL), space, 3, optimizer=tiny.Sampler(space), storage={journal!r})
"""


def test_telling_twice_or_to_another_study_is_refused(space: mc.Space) -> None:
    study, other = mc.Study(space, tiny.Sampler(space)), mc.Study(space, tiny.Sampler(space))
    trial = study.ask()
    other.ask()
    with pytest.raises(TellError, match="another study"):
        other.tell(trial, 1.0)
    study.tell(trial, 1.0)
    with pytest.raises(TellError, match="has an outcome already"):
        study.tell(trial, 2.0)
    with pytest.raises(TellError, match=r"a trial that ask\(\) returned is needed"):
        study.tell(trial.config, 2.0)  # type: ignore[arg-type]
    assert study.trials[0].loss == 1.0


def test_an_illegal_proposal_is_refused(space: mc.Space, journal: Path) -> None:
    class Broken(tiny.Sampler):
        def propose(self, request: Request) -> Proposal:
            proposal = super().propose(request)
            return Proposal({**proposal.config, "layers": 99})

    with mc.Study(space, Broken(space), storage=journal) as study, pytest.raises(IllegalProposalError, match="layers"):
        study.ask()
    assert read_journal(journal)[1] == []


# -- journals of other studies, and other files -----------------------------------------------------------------


def start(journal: Path, space: mc.Space | None = None, **arguments: Any) -> None:
    space = space or tiny.tiny_space()
    optimizer = arguments.pop("optimizer", tiny.Sampler)(space, arguments.pop("settings", None))
    method = mc.Method(optimizer, solver=arguments.pop("solver", "auto"))
    with mc.Study(space, method, storage=journal, **arguments) as study:
        study.tell(study.ask(), 1.0)


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"seed": 1}, "seed was 0 and is 1 now"),
        ({"optimizer": tiny.Counter}, "optimizer was 'sampler' and is 'counter' now"),
        ({"solver": "scip"}, "solver was 'auto' and is 'scip' now"),
        ({"settings": {"alpha": 2.0}}, "setting alpha was 'not given' and is 2.0 now"),
        ({"options": {"data": "a.csv"}}, "option data was 'not given' and is 'a.csv' now"),
        ({"space": tiny.tiny_space(cap=11.0)}, "rule 'layers are capped' was .*10.* and is .*11.* now"),
    ],
)
def test_a_journal_of_another_study_is_refused_and_the_difference_named(
    journal: Path, changed: dict[str, Any], named: str
) -> None:
    journal.touch()  # an empty file becomes a journal
    start(journal)
    with pytest.raises(StorageError, match=named):
        start(journal, **changed)
    start(journal)  # its own study can still use it
    assert len(read_journal(journal)[1]) == 2


def test_files_that_are_no_journals_are_refused_and_left_unchanged(space: mc.Space, tmp_path: Path) -> None:
    text, foreign, cut = tmp_path / "notes.txt", tmp_path / "other.db", tmp_path / "cut.db"
    text.write_text("not a database, but long enough to look at" * 50)
    with sqlite3.connect(foreign) as database:
        database.execute("CREATE TABLE trial (number INTEGER)")
    start(cut)
    cut.write_bytes(cut.read_bytes()[:6000])
    for path, message in (
        (text, "not a journal of mipcash, or is damaged"),
        (foreign, "a SQLite database but not a journal"),
        (cut, "damaged"),
        (tmp_path, "is a folder"),
        (tmp_path / "missing" / "run.db", "mkdir -p"),
    ):
        before = path.read_bytes() if path.is_file() else None
        with pytest.raises(StorageError, match=message):
            mc.Study(space, tiny.Sampler(space), storage=path)
        assert before is None or path.read_bytes() == before
        assert not path.with_name(path.name + ".lock").exists()
    with pytest.raises(StorageError, match="does not exist"):
        read_journal(tmp_path / "nothing.db")


def test_seeds_and_settings_are_checked(space: mc.Space) -> None:
    with pytest.raises(ValueError, match="settings="):
        mc.Study(space, mc.Method(tiny.Sampler(space), settings={"alpha": 1.0}))
