from pathlib import Path

import pytest
from tests.process.scripted import MakeClient, ScriptedMux


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def make_client(tmp_path: Path) -> MakeClient:
    return ScriptedMux(tmp_path / "config").client
