"""The harness itself: each real CLI starts, asks the scripted model, and says what the script says."""

import asyncio
from pathlib import Path

import pytest

from agent_mux.testing.environments import ENVIRONMENTS
from agent_mux.testing.model_server import Script, ScriptedModelServer, say
from agent_mux.testing.provision import PINNED, find_agent

pytestmark = pytest.mark.anyio
BOUND = 60.0
ARGUMENTS = {
    "claude": ("-p", "say hello", "--output-format", "stream-json", "--verbose"),
    "codex": ("exec", "--json", "--skip-git-repo-check", "say hello"),
}


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(params=sorted(PINNED))
def agent(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def program(agent: str) -> Path:
    found = find_agent(agent)
    if found is None:
        pytest.skip(f"{agent} is not there; try: python -m agent_mux.testing.provision {agent}")
    return found


async def test_a_real_cli_says_what_the_script_says(agent: str, program: Path, tmp_path: Path) -> None:
    async with asyncio.timeout(BOUND), ScriptedModelServer(Script(steps=(say("Hello from the script."),))) as server:
        process = await asyncio.create_subprocess_exec(
            program,
            *ARGUMENTS[agent],
            cwd=tmp_path,
            env=ENVIRONMENTS[agent](server.url, tmp_path / "home"),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        stdout, stderr = await process.communicate()
    assert process.returncode == 0, stderr
    assert b"Hello from the script." in stdout
    assert server.unused_steps == ()
    assert "sk-dummy" not in str(server.requests)
