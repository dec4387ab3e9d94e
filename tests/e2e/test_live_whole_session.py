"""One session of the embedded agent with everything: a skill, a published MCP server, claude as sub-agent, a
compaction, a kill and two resumes.
"""

import os
import signal
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.harness import LiveAgent, finish, wait_for_event
from tests.e2e.native_scenes import raw, with_skill
from tests.e2e.test_live_published_mcp_server import program
from tests.e2e.ways import HEAVY

from agent_mux import McpServer
from agent_mux_testing.live import Say, Shell, Write
from agent_mux_testing.model_server.script import ToolUse
from agent_mux_testing.provision import find_agent

pytestmark = pytest.mark.anyio
TIME = {"source_timezone": "Europe/Rome", "time": "12:00", "target_timezone": "Asia/Tokyo"}
PATIENCE = 300.0
"""Seconds for one run, which starts two agents and a server."""
TASK = "Write sung.txt, with all verses."


@pytest.fixture
def agents(tmp_path: Path) -> Iterator[tuple[LiveAgent, LiveAgent]]:
    """The embedded agent in a project with a skill, and claude in the same directory."""
    found = {name: find_agent(name) for name in ("native", "claude")}
    with ExitStack() as stack:
        live = {}
        for name, provisioned in found.items():
            if provisioned is None:
                pytest.skip(f"{name} is not installed; try: python -m agent_mux_testing.provision {name}")
            (tmp_path / name).mkdir()
            live[name] = LiveAgent(provisioned, tmp_path / name, stack)
        native, claude = live["native"], live["claude"]
        claude.workspace = native.workspace
        native.kit = replace(native.kit, patience=PATIENCE)
        with_skill(native)
        yield native, claude


def options(native: LiveAgent, claude: LiveAgent) -> dict[str, Any]:
    """Return the options of the runs: the skills, the server, and claude with its scripted model."""
    delegate = dict(claude.launch.environment)
    path = os.pathsep.join((native.launch.environment["PATH"], delegate.pop("PATH")))
    for name in ("HOME", "TERM", "LANG"):
        del delegate[name]
    return {
        "mcp_servers": [McpServer("time", command=program(), args=("--local-timezone", "UTC"))],
        "native_options": {"trustProjectSkills": True, "subAgents": ["claude"]},
        "env": {**delegate, "PATH": path},
    }


@HEAVY
async def test_session_with_everything_is_compacted_killed_and_resumed(agents: tuple[LiveAgent, LiveAgent]) -> None:
    native, claude = agents
    claude.script(claude.answer(Write("sung.txt", "la la\n")), claude.answer(Say("It is written.")))
    native.script(
        raw(ToolUse("skills_use", {"name": "singing"})), raw(ToolUse("time__convert_time", TIME)),
        raw(ToolUse("delegate_to_claude", {"task": TASK})), native.answer(Shell("seq 1 2000")),
        native.answer(Shell("seq 1 2000")), native.refusal("context_exceeded"), native.answer(Say("All done.")),
    )  # fmt: skip
    first = await native.run("Sing at noon.", **options(native, claude))
    assert (first.result.exit_reason, first.result.text) == ("completed", "All done.")
    assert first.one("skill_invoked").skill_name == "singing"
    assert "Asia/Tokyo" in str(first.one("mcp_tool_result").output)
    assert first.one("subagent_spawn").agent_name == "delegate_to_claude"
    assert first.one("subagent_result").summary == "It is written."
    assert native.file("sung.txt").read_text() == "la la\n"
    assert claude.model.received(TASK)
    assert first.one("context_compacted").tokens_saved > 0
    session = first.result.session_id

    native.script(native.answer(Shell("touch started; echo here; sleep 300")))
    async with native.running("And again.", session_id=session, **options(native, claude)) as run:
        await wait_for_event(run, "shell_stdout_delta")
        os.kill(native.leader(run.run_id), signal.SIGKILL)
    assert (await finish(run)).result.exit_reason == "killed"
    assert native.processes() == []

    native.script(native.answer(Say("Still here.")))
    last = await native.run("Are you there?", session_id=session, **options(native, claude))
    assert (last.result.exit_reason, last.result.text) == ("completed", "Still here.")
    assert last.result.session_id == session
    for text in ("Sing at noon.", "And again.", "Are you there?", "Sing with sing.sh."):
        assert native.model.received(text), text
