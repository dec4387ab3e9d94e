"""Tests of the harness: each bare CLI starts, requests an answer of the scripted model, and prints it."""

import asyncio
import re
from pathlib import Path

import pytest
from tests.e2e.ways import ALL_AGENTS

from agent_mux_testing.live import KitContext, kit_of, kits
from agent_mux_testing.model_server import Script, ScriptedModelServer, say
from agent_mux_testing.provision import Provisioned

BOUND = 60.0


def test_every_gap_names_a_scenario() -> None:
    sources = [path.read_text("utf-8") for path in Path(__file__).parent.glob("test_live_*.py")]
    scenarios = {name for source in sources for name in re.findall(r"def test_(\w+)\(", source)}
    found = {scenario for kit in kits().values() for pin in kit.pins for scenario in kit.gaps_of(pin.version)}
    gaps = {scenario.partition("/")[0] for scenario in found}
    assert gaps <= scenarios


@ALL_AGENTS
@pytest.mark.anyio
async def test_cli_prints_the_scripted_answer(provisioned: Provisioned, tmp_path: Path) -> None:
    kit = kit_of(provisioned.agent)
    if kit.once is None:
        pytest.skip(f"{kit.agent} takes no prompt on its command line")
    async with asyncio.timeout(BOUND), ScriptedModelServer(Script(steps=(say("Hello from the script."),))) as server:
        process = await asyncio.create_subprocess_exec(
            provisioned.program,
            *kit.once,
            "say hello",
            cwd=tmp_path,
            env=kit.environment(KitContext(url=server.url, home=tmp_path / "home", path=provisioned.path)),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        stdout, stderr = await process.communicate()
    assert process.returncode == 0, stderr
    assert b"Hello from the script." in stdout
    assert server.unused_steps == ()
    assert "sk-dummy" not in str(server.requests)
