"""`amux-agent` delegates to other agents of agent-mux: real runs, whose approvals the parent's gates decide."""

import json
import os
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio import to_thread
from tests.process.control_client import wait_for

from agent_loop import Agent, ExecutionLimits, ScriptedProvider
from agent_loop.cli.mux_runner import MuxRunner
from agent_loop.events import SubAgentEnd
from agent_loop.hooks.contexts import ToolGate
from agent_loop.providers.script import call, say
from agent_loop.subagents import SubAgentTool
from agent_loop.suspension import active
from agent_mux import AgentMux

pytestmark = pytest.mark.anyio
WAIT = 90.0


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def scripted(directory: Path, *steps: dict[str, Any]) -> str:
    """Write a script for the model of the other agent, and return the name of the model."""
    path = directory / "script.json"
    path.write_text(json.dumps({"steps": steps}), "utf-8")
    return f"scripted:{path}"


async def delegated(runner: MuxRunner, decide: Any = None) -> tuple[str, list[Any]]:
    """Run an agent that delegates one task; return its answer and the ends of its sub-agents."""
    tool = SubAgentTool("delegate_to_native", runner=runner, limits=ExecutionLimits(max_turns=10))
    model = ScriptedProvider([call("delegate_to_native", task="write it"), say("{{result}}")])
    ends: list[Any] = []

    async def on_event(event: Any) -> None:
        if isinstance(event, SubAgentEnd):
            ends.append(event)

    with anyio.fail_after(WAIT):
        agent = Agent(model, tools=[tool], hooks={} if decide is None else {"tool:gate": decide})
        return (await agent.run("go", on_event=on_event)).text, ends


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
async def test_other_agent_stops_and_continues_with_the_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AMUX_AGENT_HOME", str(tmp_path / "home"))
    model = scripted(tmp_path, {"tool_calls": [{"name": "shell", "arguments": {"command": "echo $$ > pid; sleep 60"}}]})
    runner = MuxRunner("native", tmp_path, {}, {"model": model})
    file = tmp_path / "pid"

    def is_stopped() -> bool:
        return Path(f"/proc/{file.read_text().strip()}/stat").read_text().rpartition(") ")[2][0] == "T"

    with anyio.fail_after(WAIT):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(delegated, runner)
            await to_thread.run_sync(wait_for, lambda: file.exists() and file.read_text())
            (run,) = active()
            await run.pause()
            await to_thread.run_sync(wait_for, is_stopped)
            await run.resume()
            await to_thread.run_sync(wait_for, lambda: not is_stopped())
            tasks.cancel_scope.cancel()
    assert active() == []


@pytest.mark.slow
@pytest.mark.parametrize("is_allowed", [True, False])
async def test_gates_of_the_parent_decide_about_commands_of_another_agent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_allowed: bool
) -> None:
    monkeypatch.setenv("AMUX_AGENT_HOME", str(tmp_path / "home"))
    work = tmp_path / "work"
    work.mkdir()
    model = scripted(
        tmp_path,
        {
            "tool_calls": [{"name": "shell", "arguments": {"command": "touch made"}}],
            "usage": {"input_tokens": 9, "cost_usd": 0.5},
        },
        {"text": "{{result}}"},
    )
    asked: list[tuple[int, Any]] = []

    def decide(gate: ToolGate) -> None:
        if gate.depth:
            asked.append((gate.depth, gate.arguments.get("command")))
            gate.block, gate.reason = not is_allowed, "not here"

    text, (end,) = await delegated(MuxRunner("native", work, {}, {"model": model}), decide)
    assert asked == [(1, "touch made")]
    assert (work / "made").exists() == is_allowed
    assert ("not here" in text) != is_allowed
    assert end.status == "completed"
    assert end.usage.cost_usd == 0.5


@pytest.mark.slow
async def test_command_delegates_to_an_agent_that_a_flag_names(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    model = scripted(
        tmp_path,
        {"tool_calls": [{"name": "delegate_to_native", "arguments": {"task": "inspect"}}]},
        {"text": "The report: {{result}}"},
    )
    environ = {
        **os.environ,
        "AMUX_AGENT_HOME": str(tmp_path / "home"),
        "AMUX_AGENT_MODEL": scripted(tmp_path / "other", {"text": "all is well"}),
    }
    argv = [sys.executable, "-m", "agent_loop", "--json", "--sub-agent=native", f"--model={model}", "go"]
    with anyio.fail_after(WAIT):
        done = await anyio.run_process(argv, env=environ, cwd=tmp_path, check=False)
    events = [json.loads(line) for line in done.stdout.splitlines()]
    (spawned,) = [event for event in events if event["type"] == "subagent_spawn"]
    (reported,) = [event for event in events if event["type"] == "subagent_result"]
    assert (spawned["agentName"], spawned["prompt"]) == ("delegate_to_native", "inspect")
    assert reported["summary"] == "all is well"
    assert [event["text"] for event in events if event["type"] == "message_stop"] == ["The report: all is well"]


async def test_delegation_beyond_the_depth_limit_is_refused(tmp_path: Path) -> None:
    text, (end,) = await delegated(MuxRunner("native", tmp_path, {"AGENT_MUX_DEPTH": "2"}))
    assert "already delegated (depth 2 of 2)" in text
    assert end.status == "failed"


async def test_unknown_agent_is_an_error_for_the_model(tmp_path: Path) -> None:
    text, (end,) = await delegated(MuxRunner("no-such-agent", tmp_path, {}))
    assert "no-such-agent" in text
    assert end.status == "failed"


@pytest.mark.slow
async def test_native_option_names_agents_to_delegate_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "other").mkdir()
    monkeypatch.setenv("AMUX_AGENT_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("AMUX_AGENT_MODEL", scripted(tmp_path / "other", {"text": "all is well"}))
    model = scripted(
        tmp_path,
        {"tool_calls": [{"name": "delegate_to_native", "arguments": {"task": "inspect"}}]},
        {"text": "The report: {{result}}"},
    )
    with anyio.fail_after(WAIT):
        async with AgentMux() as mux:
            result = await mux.run(
                agent="native", model=model, prompt="go", cwd=tmp_path, native_options={"subAgents": ["native"]}
            )
    assert result.text == "The report: all is well"
