"""Workers of the searches of scikit-learn, and Ray's: joblib's backends, time limits, missing packages."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import joblib
import pytest
from sklearn.datasets import load_iris
from sklearn.dummy import DummyClassifier

from mipcash.errors import MipcashError
from mipcash.integrations.sklearn import SpaceSearchCV
from mipcash.integrations.sklearn.search.executors import executor_of

X, Y = load_iris(return_X_y=True)


def test_another_backend_of_joblib_is_warned_of() -> None:
    with (
        joblib.parallel_config("multiprocessing", n_jobs=2),
        pytest.warns(UserWarning, match="MultiprocessingBackend is"),
    ):
        executor_of(None)


class FastOnce(DummyClassifier):
    """Fits the first parameter that it sees at once, and never ends with another."""

    def __init__(self, first: str = "", constant: int = 0) -> None:
        super().__init__(strategy="constant", constant=constant)
        self.first = first

    def fit(self, X: Any, y: Any) -> FastOnce:
        known, mine = Path(self.first), str(self.constant)
        if not known.exists():
            known.write_text(mine)
        while known.read_text() != mine:
            time.sleep(0.1)
        return super().fit(X, y)  # type: ignore[return-value]


@pytest.mark.parametrize("jobs", [None, 2])
def test_a_timeout_interrupts_running_evaluations(jobs: int | None, tmp_path: Path) -> None:
    endless = FastOnce(str(tmp_path / "first"))
    told: dict[str, Any] = {"n_iter": 3, "optimizer": "random", "random_state": 0, "cv": 3, "refit": False}
    for seconds in (2.0, 10.0, 50.0):  # a busy machine may take longer to begin than the timeout
        found = SpaceSearchCV(endless, {"constant": [0, 1, 2]}, n_jobs=jobs, timeout=seconds, **told).fit(X, Y)
        if (tmp_path / "first").exists():
            break
    first = int((tmp_path / "first").read_text())
    assert found.result_.stopped == "timeout"
    assert [trial.config for trial in found.result_.history if trial.done] == [{"constant": first}]
    assert not any(trial.failed or trial.lost for trial in found.result_.history)


def test_an_executor_of_ray_without_ray_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    from mipcash.integrations.ray import RayExecutor

    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MipcashError, match=r"needs ray: pip install 'mipcash\[ray\]'"):
        RayExecutor()
