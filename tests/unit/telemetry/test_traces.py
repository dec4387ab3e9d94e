"""Traces and metrics of recorded runs."""

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.unit.telemetry.recorder import Recorder, attributes

from agent_mux import AgentEvent, decode_event
from agent_mux.telemetry.otel import observe_events
from agent_mux_testing.fixtures import find_fixtures

FIXTURES = Path(__file__).parents[3] / "fixtures"
EACH = 5
"""Every fifth recording is tested: they differ little in their spans."""

TREES = {
    "claude/2.1.330/tool_bash": [
        "invoke_agent claude [0-178]",
        "  turn 0 [6-152]",
        "    chat [6-64]",
        "    execute_tool Bash [64-135]",
        "    chat [135-146]",
    ],
    "claude/2.1.330/mcp_tool": [
        "invoke_agent claude [0-392]",
        "  turn 0 [12-302]",
        "    chat [12-105]",
        "    execute_tool echo [105-152]",
        "    chat [152-197]",
        "    execute_tool boom [197-214] tool_error",
        "    chat [214-302]",
    ],
    "claude/2.1.330/subagent_parallel": [
        "invoke_agent claude [0-446]",
        "  turn 0 [9-416]",
        "    chat [9-119]",
        "    invoke_agent general-purpose [79-373]",
        "    invoke_agent general-purpose [119-387]",
        "    chat [387-408]",
    ],
    "claude/2.1.330/interrupt_tool": [
        "invoke_agent claude [0-1782] ABORTED",
        "  turn 0 [8-1647]",
        "    chat [8-118]",
        "    execute_tool Bash [118-1640] tool_error",
    ],
    "codex/0.169.0/spawn_agent": [
        "invoke_agent codex [0-212]",
        "  turn 0 [23-206]",
        "    chat [23-92]",
        "    invoke_agent agent [92-175]",
        "    chat [175-206]",
    ],
}


def events_of(folder: Path) -> list[AgentEvent]:
    return [decode_event(line) for line in (folder / "events.jsonl").read_bytes().splitlines()]


def observed(events: Sequence[AgentEvent], **options: Any) -> Recorder:
    recorder = Recorder()
    observe_events(events, **recorder.providers, **options)
    return recorder


@pytest.mark.parametrize("name", TREES)
def test_the_spans_of_a_recorded_run(name: str) -> None:
    assert observed(events_of(FIXTURES / name)).tree() == TREES[name]


def test_attributes_follow_the_conventions() -> None:
    recorder = observed(events_of(FIXTURES / "claude/2.1.330/tool_bash"), model="some-model")
    session = "5b7d1bd5-bd86-4624-bad9-c1a17aea4ea5"
    common = {"gen_ai.provider.name": "claude", "gen_ai.conversation.id": session}
    cost = {"agent_mux.cost.usd": pytest.approx(0.001492), "agent_mux.cost.source": "native"}
    assert attributes(recorder.span("invoke_agent claude")) == {
        **common,
        **cost,
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "claude",
        "gen_ai.usage.input_tokens": 260,
        "gen_ai.usage.output_tokens": 24,
        "gen_ai.usage.cache_read.input_tokens": 60,
        "agent_mux.run.id": "0" * 26,
        "agent_mux.exit_reason": "completed",
    }
    assert attributes(recorder.span("turn 0")) == {**common, **cost, "agent_mux.turn.index": 0}
    chats = [span for span in recorder.spans if span.name == "chat some-model"]
    assert [attributes(span) for span in chats] == [
        {
            **common,
            "gen_ai.operation.name": "chat",
            "gen_ai.response.model": "some-model",
            "gen_ai.usage.input_tokens": 130,
            "gen_ai.usage.output_tokens": 12,
            "gen_ai.usage.cache_read.input_tokens": 30,
            "agent_mux.turn.index": 0,
            "agent_mux.step.index": step,
        }
        for step in (0, 1)
    ]
    assert attributes(recorder.span("execute_tool Bash")) == {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "Bash",
        "gen_ai.tool.call.id": "toolu_fake0002",
        "gen_ai.tool.type": "function",
    }
    kinds = {span.name: span.kind.name for span in recorder.spans}
    assert kinds == {
        "invoke_agent claude": "CLIENT",
        "turn 0": "INTERNAL",
        "chat some-model": "CLIENT",
        "execute_tool Bash": "INTERNAL",
    }


def test_measurements_follow_the_conventions() -> None:
    recorder = observed(events_of(FIXTURES / "claude/2.1.330/mcp_tool"), model="some-model")
    model = ("claude", "chat", "some-model")
    assert recorder.measured() == {
        "gen_ai.client.token.usage": {(*model, "input"): 390, (*model, "output"): 36},
        "gen_ai.client.operation.duration": {model: 0.226},
        "gen_ai.execute_tool.duration": {
            ("echo", "extension", "claude"): 0.047,
            ("boom", "extension", "claude", "tool_error"): 0.017,
        },
        "gen_ai.invoke_agent.duration": {("claude",): 0.392},
        "agent_mux.runs": {("claude", "completed"): 1},
        "agent_mux.cost": {("claude", "completed"): pytest.approx(0.002238)},
    }


def test_content_is_omitted_unless_requested(monkeypatch: pytest.MonkeyPatch) -> None:
    events = events_of(FIXTURES / "claude/2.1.330/tool_bash")
    words = ("Running echo.", "echo hi", "All done.")
    assert not [word for word in words if word in observed(events).everything()]
    captured = observed(events, capture_content=True)
    tool = attributes(captured.span("execute_tool Bash"))
    assert json.loads(tool["gen_ai.tool.call.arguments"]) == {"command": "echo hi", "description": "Say hi"}
    assert tool["gen_ai.tool.call.result"] == "hi"
    messages = json.loads(attributes(captured.span("turn 0"))["gen_ai.output.messages"])
    assert messages == [
        {
            "role": "assistant",
            "parts": [{"type": "text", "content": "Running echo."}, {"type": "text", "content": "All done."}],
            "finish_reason": "stop",
        }
    ]
    monkeypatch.setenv("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "true")
    assert observed(events).everything().count("echo hi") == captured.everything().count("echo hi")
    assert "echo hi" not in observed(events, capture_content=False).everything()


def test_an_error_message_is_content() -> None:
    events = events_of(FIXTURES / "claude/2.1.330/err_401")
    (message,) = [event.message for event in events if event.type == "auth_error"]
    root = observed(events).span("invoke_agent claude")
    assert (attributes(root)["error.type"], root.status.description) == ("AUTH_ERROR", "AUTH_ERROR")
    assert observed(events, capture_content=True).span("invoke_agent claude").status.description == message


@pytest.mark.parametrize("folder", find_fixtures(FIXTURES)[::EACH], ids=lambda folder: "/".join(folder.parts[-3:]))
def test_every_span_is_ended_wherever_the_events_end(folder: Path) -> None:
    events = events_of(folder)
    for count in {len(events), *range(1, len(events), max(len(events) // 6, 1))}:
        recorder = observed(events[:count])  # `spans` checks that all have ended
        (root,) = [span for span in recorder.spans if span.parent is None]
        reason = attributes(root)["agent_mux.exit_reason"]
        assert (reason == "unfinished") == (events[count - 1].type != "session_end")
        for span in recorder.spans:
            assert (span.end_time or 0) >= (span.start_time or 0) >= (root.start_time or 0)
        assert len(recorder.measured()["agent_mux.runs"]) == 1


@pytest.mark.slow
def test_opentelemetry_is_imported_on_demand_only() -> None:
    code = (
        "import sys, agent_mux.client, agent_mux.cli.app; print([name for name in sys.modules if 'opentelem' in name])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "[]"


def test_without_the_extra_the_error_names_it() -> None:
    code = (
        "import sys; sys.modules['opentelemetry.trace'] = None\n"
        "from agent_mux import AgentMuxError\n"
        "from agent_mux.telemetry.otel import RunObserver, instrument, observe_events\n"
        "for name in (RunObserver, instrument, observe_events):\n"
        "    try: name(None)\n"
        "    except AgentMuxError as error: print(isinstance(error, ImportError), error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.splitlines() == ["True OpenTelemetry requires the extra: pip install 'agent-mux[otel]'"] * 3
