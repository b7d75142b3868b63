"""Hypothesis profiles: ``ci`` (the default) draws the same examples every time, ``dev`` looks for new ones.

``HYPOTHESIS_PROFILE=dev pytest ...`` selects ``dev``. ``MIPCASH_PASSED=file pytest ...`` writes the names of the
passed tests to the file. If the file exists, the tests named in it are skipped, so `make test` repeats no test in a
second environment.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.internal.conjecture import providers

from tests import servers

_COMMON = {
    "deadline": None,
    "database": None,
    "suppress_health_check": list(HealthCheck),
    "phases": (Phase.explicit, Phase.generate, Phase.shrink),
}
settings.register_profile("ci", derandomize=True, max_examples=40, **_COMMON)
settings.register_profile("dev", derandomize=False, max_examples=300, print_blob=True, **_COMMON)
PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "ci")
settings.load_profile(PROFILE)
if PROFILE == "ci" and hasattr(providers, "_get_local_constants"):
    # Hypothesis also draws constants of all loaded modules, so examples would depend on the other tests of a worker.
    providers._get_local_constants = lambda: providers._local_constants
PASSED = Path(os.environ["MIPCASH_PASSED"]).resolve() if "MIPCASH_PASSED" in os.environ else None


class Passed:
    """Names of the passed tests, written to a file at the end of the session."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.names: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" and report.passed:
            self.names.append(report.nodeid)

    def pytest_sessionfinish(self) -> None:
        self.path.write_text("\0".join(self.names), encoding="utf-8")


def pytest_configure(config: pytest.Config) -> None:
    if PASSED is not None and not PASSED.exists() and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Passed(PASSED))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    passed = set(PASSED.read_text(encoding="utf-8").split("\0")) if PASSED is not None and PASSED.exists() else set()
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid in passed])
    items[:] = [item for item in items if item.nodeid not in passed]


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """Address of an empty database on a PostgreSQL server that runs for this session."""
    pytest.importorskip("sqlalchemy")
    pytest.importorskip("psycopg")
    if servers.binaries() is None:
        pytest.skip("PostgreSQL's binaries (initdb, postgres) are not installed")
    with servers.postgres() as address:
        yield address


@pytest.fixture
def postgres(postgres_server: str) -> str:
    """Address of a study that does not exist yet."""
    return f"{postgres_server}?study={uuid.uuid4().hex}"
