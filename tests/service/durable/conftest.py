"""Both databases, for real."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.service.durable.postgres import Cluster, started


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """A PostgreSQL server that runs."""
    with started() as cluster:
        yield cluster


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of an empty database, of each kind."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'databases' / 'service.db'}"
    return str(request.getfixturevalue("cluster").url())
