"""Hypothesis profiles: ``ci`` (the default) draws the same examples every time, ``dev`` looks for new ones.

``HYPOTHESIS_PROFILE=dev pytest ...`` selects the second.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator

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
settings.register_profile("ci", derandomize=True, max_examples=100, **_COMMON)
settings.register_profile("dev", derandomize=False, max_examples=300, print_blob=True, **_COMMON)
PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "ci")
settings.load_profile(PROFILE)
if PROFILE == "ci" and hasattr(providers, "_get_local_constants"):
    # hypothesis mixes in constants of whatever modules are loaded: examples would depend on what else a worker ran
    providers._get_local_constants = lambda: providers._local_constants


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """The address of an empty database of a PostgreSQL server that runs for this session."""
    pytest.importorskip("sqlalchemy")
    pytest.importorskip("psycopg")
    if servers.binaries() is None:
        pytest.skip("PostgreSQL's binaries (initdb, postgres) are not installed")
    with servers.postgres() as address:
        yield address


@pytest.fixture
def postgres(postgres_server: str) -> str:
    """The address of a study that is not there yet."""
    return f"{postgres_server}?study={uuid.uuid4().hex}"
