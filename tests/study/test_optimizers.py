"""Every optimizer of the registry in the loop: legal proposals, and a resumed run that proposes as an unbroken one."""

from __future__ import annotations

from pathlib import Path

import pytest
import tiny

import mipcash as mc
from mipcash.errors import StorageError
from mipcash.study.records.encoding import encode_config
from tests.named import OPTIMIZERS

N = 13
"""Past the initial design, so that surrogates are at work."""


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_study_opened_anew_for_each_trial_proposes_as_an_unbroken_one(name: str, journal: Path) -> None:
    space = tiny.tiny_space()
    unbroken = mc.Study(space, mc.Method(name, seconds_per_proposal=None), seed=1)
    for _ in range(N):
        trial = unbroken.ask()
        assert space.is_legal(trial.config)
        unbroken.tell(trial, tiny.loss(trial.config))
    for _ in range(N):
        again = tiny.tiny_space()
        with mc.Study(again, mc.Method(name, seconds_per_proposal=None), seed=1, storage=journal) as study:
            trial = study.ask()
            study.tell(trial, tiny.loss(trial.config))
    with mc.Study(space, name, seed=1, storage=journal) as study:
        resumed = study.trials
    expected = [encode_config(space, t.config) for t in unbroken.trials]
    assert [encode_config(space, t.config) for t in resumed] == expected
    assert len(set(expected)) == N


def test_two_names_of_one_class_are_two_studies(space: mc.Space, journal: Path) -> None:
    with mc.Study(space, "mivabo-paper", storage=journal) as study:
        assert study.record.optimizer == "mivabo-paper"
        assert study.record.settings is not None
        assert study.record.settings["preset"] == "paper"
    with mc.Study(space, "mivabo-paper", storage=journal) as study:
        assert study.trials == ()
    with pytest.raises(StorageError, match="optimizer was 'mivabo-paper' and is 'mivabo' now"):
        mc.Study(space, "mivabo", storage=journal)
