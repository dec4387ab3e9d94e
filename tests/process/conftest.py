from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.process.everywhere import PLACES, Served, clients_of, served
from tests.process.scripted import MakeClient, ScriptedMux


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Tests of modules that are marked `everywhere` are played in both places."""
    marks = {mark.name for mark in metafunc.definition.iter_markers()}
    if "make_client" in metafunc.fixturenames and "everywhere" in marks and "here_alone" not in marks:
        metafunc.parametrize("make_client", PLACES, indirect=True)


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="session")
def shared_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("shared")) as server:
        yield server


@pytest.fixture
def make_client(request: Any, tmp_path: Path) -> Iterator[MakeClient]:
    if getattr(request, "param", "local") == "local":
        yield ScriptedMux(tmp_path / "config").client
        return
    with clients_of(request.getfixturevalue("shared_server"), tmp_path / "config") as make:
        yield make
