"""Sub-agents of the command as events of agent-mux: live, and from stored sessions."""

from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.unit.embedded.cli.asked_tools import Collected
from tests.unit.embedded.cli.test_projection import EventLog

from agent_loop import Agent, FileSessionStore, ScriptedProvider, Usage
from agent_loop.cli.approvals import Approvals
from agent_loop.cli.sessions_command import _lines
from agent_loop.cli.stream import ApprovalMode, EventStream
from agent_loop.errors import ProviderError
from agent_loop.providers.script import Step, call, say
from agent_loop.subagents import SubAgentTool
from agent_loop.tools.builtin import default_tools
from agent_mux.assembler import Ending
from agent_mux.contract import validate
from agent_mux.sdk import facts
from agent_mux.sdk.config import AgentPaths
from agent_mux.sdk.sessions import ModelCalled
from agent_mux_adapters.native.sessions import STORE

pytestmark = pytest.mark.anyio

DELEGATION = Step(tool_calls=call("delegate", task="count").tool_calls, task="go")
ANSWER = say("{{result}}", task="go")
INSIDE = Step(tool_calls=call("shell", command="echo hi").tool_calls, task="count")
REPORT = say("three", task="count", usage=Usage(input_tokens=7, cost_usd=0.25))


async def shown(stream: EventStream, directory: Path, *steps: Any, **options: Any) -> Agent:
    """Run an agent that can delegate, and emit its events."""
    tool = SubAgentTool(max_depth=options.pop("max_depth", 1))
    agent = Agent(ScriptedProvider(steps), tools=[*default_tools(), tool], workspace=directory, **options)

    async def on_event(event: Any) -> None:
        stream.emit_loop_event(event)

    with anyio.fail_after(20):
        await agent.run("go", on_event=on_event)
    stream.end(Ending(code=0))
    return agent


async def test_delegation_is_events_of_a_sub_agent_and_no_tool_call(tmp_path: Path) -> None:
    log = EventLog()
    await shown(log.stream, tmp_path, DELEGATION, INSIDE, REPORT, ANSWER)
    log.end()
    (spawned,), (reported,) = log.of("subagent_spawn"), log.of("subagent_result")
    assert (spawned.agent_name, spawned.prompt) == ("delegate", "count")
    assert (reported.subagent_id, reported.summary) == (spawned.subagent_id, "three")
    assert reported.cost.total_usd == 0.25
    assert {event.subagent_id for event in log.of("tool_call_start", "shell_start", "tool_result")} == {
        spawned.subagent_id
    }
    assert [event.text for event in log.of("message_stop") if event.subagent_id is None] == ["three"]


async def test_failed_sub_agent_is_a_sub_agent_error(tmp_path: Path) -> None:
    log = EventLog()
    fails = [DELEGATION, lambda _: ProviderError("model is down"), ANSWER]
    await shown(log.stream, tmp_path, *fails)
    log.end()
    assert [event.error for event in log.of("subagent_error")] == ["model is down"]


async def test_refused_delegation_is_a_failed_tool_call(tmp_path: Path) -> None:
    def refuse(spawn: Any) -> None:
        spawn.block, spawn.reason = True, "too expensive"

    log = EventLog()
    await shown(log.stream, tmp_path, DELEGATION, ANSWER, hooks={"spawn:before": refuse})
    log.end()
    assert log.of("subagent_spawn") == []
    (failed,) = log.of("tool_error")
    assert failed.tool_name == "delegate"
    assert "too expensive" in failed.error


async def test_sub_agent_of_a_sub_agent_has_events_of_its_own(tmp_path: Path) -> None:
    deeper = Step(tool_calls=call("delegate", task="inner").tool_calls, task="count")
    inner = say("deepest", task="inner")
    log = EventLog()
    await shown(log.stream, tmp_path, DELEGATION, deeper, inner, say("{{result}}", task="count"), ANSWER, max_depth=2)
    log.end()
    first, second = (event.subagent_id for event in log.of("subagent_spawn"))
    assert [event.subagent_id for event in log.of("subagent_result")] == [second, first]
    assert [(event.subagent_id, event.text) for event in log.of("message_stop")] == [
        (second, "deepest"),
        (first, "deepest"),
        (None, "deepest"),
    ]


@pytest.mark.parametrize("mode", ["deny", "yolo"])
async def test_approval_mode_decides_about_commands_of_a_sub_agent(tmp_path: Path, mode: ApprovalMode) -> None:
    collected = Collected(mode)
    approvals = Approvals(collected.stream, mode)
    await shown(collected.stream, tmp_path, DELEGATION, INSIDE, REPORT, ANSWER, hooks={"tool:gate": approvals.gate})
    assert validate(collected.events) == []
    denied = [extra["toolName"] for kind, extra in collected.extra if kind == "approval_denied"]
    assert denied == (["shell"] if mode == "deny" else [])
    assert len(collected.of("shell_start")) == len(collected.of("shell_exit"))
    assert all(event.subagent_id for event in collected.of("tool_call_start"))


async def test_stored_sub_agent_is_part_of_the_session_of_its_parent(tmp_path: Path) -> None:
    store = FileSessionStore(tmp_path / "sessions")
    log = EventLog()
    agent = await shown(log.stream, tmp_path, DELEGATION, INSIDE, REPORT, ANSWER, store=store)
    assert len(await store.list_ids()) == 2
    (line,) = await _lines(store, None)
    assert line.startswith(agent.session.session_id)

    (found,) = STORE.find(AgentPaths(environ={"AMUX_AGENT_HOME": str(tmp_path)}))
    entries = [entry.fact for entry in STORE.open(found).read()]
    (begun,) = [fact for fact in entries if isinstance(fact, facts.SubagentBegin)]
    (done,) = [fact for fact in entries if isinstance(fact, facts.SubagentDone)]
    assert (begun.prompt, done.summary, done.error) == ("count", "three", None)
    assert begun.subagent_id == done.subagent_id == log.of("subagent_spawn")[0].subagent_id
    inside = [fact for fact in entries if isinstance(fact, ModelCalled) and fact.is_inside]
    assert [(fact.usage.input_tokens, fact.usd) for fact in inside] == [(7, 0.25)]
    assert not any(isinstance(fact, facts.ToolReady | facts.ToolDone) for fact in entries)
