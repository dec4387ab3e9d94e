from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.process.local_and_remote import CLIENT_KINDS, ScriptedServer, remote_clients, scripted_server
from tests.process.scripted import MakeClient, ScriptedMux


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run tests of modules marked `local_and_remote` with both kinds of clients."""
    marks = {mark.name for mark in metafunc.definition.iter_markers()}
    if "make_client" in metafunc.fixturenames and "local_and_remote" in marks and "local_only" not in marks:
        metafunc.parametrize("make_client", CLIENT_KINDS, indirect=True)


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(autouse=True)
def work_elsewhere(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work in an empty directory, since a run compares the repository around it; remember no versions of programs."""
    monkeypatch.chdir(tmp_path_factory.mktemp("cwd"))
    monkeypatch.setenv("AGENT_MUX_CONFIG_DIR", str(tmp_path_factory.mktemp("global")))


@pytest.fixture(scope="session")
def shared_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ScriptedServer]:
    with scripted_server(tmp_path_factory.mktemp("shared")) as server:
        yield server


@pytest.fixture
def make_client(request: Any, tmp_path: Path) -> Iterator[MakeClient]:
    if getattr(request, "param", "local") == "local":
        yield ScriptedMux(tmp_path / "config").client
        return
    with remote_clients(request.getfixturevalue("shared_server"), tmp_path / "config") as make:
        yield make
