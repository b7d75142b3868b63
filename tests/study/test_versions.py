"""Versions of packages that a journal keeps."""

from __future__ import annotations

import re
import warnings
from dataclasses import replace
from pathlib import Path

import pytest
import tiny

import mipcash as mc
from mipcash.errors import StorageError
from mipcash.study.storage.compare import compare


def test_a_journal_of_other_versions_is_resumed_with_a_warning(space: mc.Space, journal: Path) -> None:
    with mc.Study(space, tiny.Sampler(space), storage=journal) as study:
        record = study.record
    assert re.fullmatch(
        r"[\d.]+ \(python 3[.]\d+, numpy [\d.]+, scipy [\d.]+, highspy [\d.]+(, \w+ [\d.]+)*\)", record.version
    )
    older = replace(record, version=re.sub("numpy [^,]+", "numpy 1.0", record.version))
    with pytest.warns(UserWarning, match=r"run.db was written with numpy 1[.]0 \(now [\d.]+\): proposals may differ"):
        compare("run.db", older, record)
    with pytest.raises(StorageError, match=r"seed was 0 and is 1 now[.] It was written with numpy 1[.]0 \(now"):
        compare("run.db", older, replace(record, seed=1))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        compare("run.db", record, record)
        compare("run.db", replace(record, version=record.version.split(" (")[0]), record)  # says nothing of the others
        mc.Study(space, tiny.Sampler(space), storage=journal).close()
