"""The comparison of samplers of Optuna on spaces with rules."""

from __future__ import annotations

import pytest

pytest.importorskip("optuna", minversion="5")

from benchmarks import optuna_sampler


@pytest.mark.filterwarnings("ignore")
def test_a_small_run() -> None:
    results = optuna_sampler.run("smoke", print)
    legal = {(r["problem"], r["sampler"]): r["legal"] for r in results["rows"]}
    assert legal["spring", "MipcashSampler"] == 1.0
    assert legal["spring", "TPESampler"] < 1.0
    assert "| spring | `MipcashSampler` | 100% |" in optuna_sampler.markdown(results)
