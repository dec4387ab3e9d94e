"""Events to updates: pure, so tests read as what an editor receives."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, cast

import pytest
from acp.schema import SessionNotification
from acp.utils import serialize_params

from agent_mux import decode_event, events
from agent_mux.acp_server.updates import NO_UPDATE, RunUpdates

FIXTURES = Path(__file__).parents[3] / "fixtures"
GOLDENS = sorted(FIXTURES.glob("*/*/*/events.jsonl"))
AGENTS = sorted({path.parents[2].name for path in GOLDENS})
COST = {"totalUsd": 0.5, "inputTokens": 1, "outputTokens": 1, "source": "native"}


def wire(*told: dict[str, Any], **arguments: Any) -> list[dict[str, Any]]:
    """What an editor gets for these events."""
    updates = RunUpdates("/w", run_id="R", **arguments)
    decoded = [decode_event(json.dumps({"runId": "0" * 26, "agent": "a", "timestamp": 1, **one})) for one in told]
    return sent(update for event in decoded for update in updates.convert(cast("events.AgentEvent", event)))


def sent(updates: Iterable[Any]) -> list[dict[str, Any]]:
    return [serialize_params(SessionNotification(session_id="s", update=update))["update"] for update in updates]


def test_every_event_has_updates_or_is_known_to_have_none() -> None:
    handled = set(RunUpdates("/")._handlers)
    assert handled.isdisjoint(NO_UPDATE)
    assert handled | set(NO_UPDATE) == set(events.ALL_EVENTS)


@pytest.mark.slow
@pytest.mark.parametrize("agent", AGENTS)
def test_every_recording_makes_valid_updates(agent: str) -> None:
    """Each tool call is begun once, changed only after that, and over at the end."""
    for path in (path for path in GOLDENS if path.parents[2].name == agent):
        told = [json.loads(line) for line in path.read_bytes().splitlines()]
        states: dict[str, str] = {}
        for update in wire(*told, window=100_000):
            call = str(update.get("toolCallId", ""))
            if update["sessionUpdate"] == "tool_call":
                assert call not in states, path
                states[call] = update["status"]
            elif call:
                states[call] = update.get("status", states[call])
        assert set(states.values()) <= {"completed", "failed"}, path


def test_text_and_thoughts_are_chunks_of_messages_with_ids_of_their_own() -> None:
    assert wire(
        {"type": "thinking_start"},
        {"type": "thinking_delta", "delta": "hm", "accumulated": "hm"},
        {"type": "thinking_stop", "thinking": "hm"},
        {"type": "message_start"},
        {"type": "text_delta", "delta": "a", "accumulated": "a"},
        {"type": "text_delta", "delta": "b", "accumulated": "ab"},
        {"type": "message_stop", "text": "ab"},
    ) == [
        {"sessionUpdate": "agent_thought_chunk", "content": {"type": "text", "text": "hm"}, "messageId": "R-1"},
        {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "a"}, "messageId": "R-2"},
        {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "b"}, "messageId": "R-2"},
    ]


def test_a_message_without_deltas_is_sent_whole() -> None:
    [chunk] = wire({"type": "message_start"}, {"type": "message_stop", "text": "all of it"})
    assert chunk["content"]["text"] == "all of it"


def test_a_command_and_its_output() -> None:
    assert wire(
        {"type": "tool_call_start", "toolCallId": "1", "toolName": "Bash", "inputAccumulated": ""},
        {"type": "tool_call_ready", "toolCallId": "1", "toolName": "Bash", "input": {"command": "make\n all"}},
        {"type": "shell_start", "command": "make", "cwd": "/w"},
        {"type": "shell_stdout_delta", "delta": "one\n"},
        {"type": "shell_stderr_delta", "delta": "two\n"},
        {"type": "shell_exit", "exitCode": 0, "durationMs": 1},
        {"type": "tool_result", "toolCallId": "1", "toolName": "Bash", "output": "one\ntwo\n", "durationMs": 1},
    ) == [
        {"sessionUpdate": "tool_call", "toolCallId": "1", "title": "Bash", "kind": "execute", "status": "pending"},
        {"sessionUpdate": "tool_call_update", "toolCallId": "1", "title": "make all", "status": "in_progress",
         "rawInput": {"command": "make\n all"}},
        {"sessionUpdate": "tool_call_update", "toolCallId": "1", "kind": "execute", "status": "in_progress"},
        {"sessionUpdate": "tool_call_update", "toolCallId": "1", "content": [text("one\n")]},
        {"sessionUpdate": "tool_call_update", "toolCallId": "1", "content": [text("one\ntwo\n")]},
        {"sessionUpdate": "tool_call_update", "toolCallId": "1", "status": "completed",
         "content": [text("one\ntwo\n")], "rawOutput": "one\ntwo\n"},
    ]  # fmt: skip


def text(words: str) -> dict[str, Any]:
    return {"type": "content", "content": {"type": "text", "text": words}}


def test_updates_of_long_output_stay_in_proportion_to_it() -> None:
    begun: list[dict[str, Any]] = [
        {"type": "tool_call_start", "toolCallId": "1", "toolName": "Bash", "inputAccumulated": ""},
        {"type": "tool_call_ready", "toolCallId": "1", "toolName": "Bash", "input": {}},
        {"type": "shell_start", "command": "yes", "cwd": "/w"},
    ]
    line = "x" * 99 + "\n"
    printed: list[dict[str, Any]] = [{"type": "shell_stdout_delta", "delta": line}] * 5000
    size = sum(len(json.dumps(update)) for update in wire(*begun, *printed))
    assert size < 6 * len(line) * len(printed)


def test_an_edit_shows_its_hunks_instead_of_the_tool_output() -> None:
    first, second = "@@ -1,2 +1,2 @@\n one\n-two\n+TWO\n", "@@ -9 +9,2 @@\n nine\n+ten\n"
    diff = f"--- a/x\n+++ b/x\n{first}{second}\\ No newline at end of file"
    *_, last = wire(*edited({"type": "file_patch", "path": "x", "diff": diff}))
    assert last == {
        "sessionUpdate": "tool_call_update",
        "toolCallId": "1",
        "locations": [{"path": "/w/x"}],
        "content": [
            {"type": "diff", "path": "/w/x", "oldText": "one\ntwo", "newText": "one\nTWO"},
            {"type": "diff", "path": "/w/x", "oldText": "nine", "newText": "nine\nten"},
        ],
    }


@pytest.mark.parametrize(("byte_count", "shown"), [(3, True), (4, False)])
def test_a_new_file_is_shown_where_the_input_is_what_was_written(byte_count: int, shown: bool) -> None:
    *_, last = wire(*edited({"type": "file_create", "path": "/w/x", "byteCount": byte_count}, {"content": "a\u00e4"}))
    assert last["locations"] == [{"path": "/w/x"}]
    assert last.get("content") == ([{"type": "diff", "path": "/w/x", "newText": "a\u00e4"}] if shown else None)


def edited(change: dict[str, Any], given: dict[str, Any] | None = None) -> list[dict[str, Any]]:
    return [
        {"type": "tool_call_start", "toolCallId": "1", "toolName": "Edit", "inputAccumulated": ""},
        {"type": "tool_call_ready", "toolCallId": "1", "toolName": "Edit", "input": given or {}},
        {"type": "tool_result", "toolCallId": "1", "toolName": "Edit", "output": "done", "durationMs": 1},
        change,
    ]


def test_tools_of_servers_and_sub_agents_are_tool_calls() -> None:
    told = wire(
        {"type": "mcp_tool_call_start", "toolCallId": "1", "server": "files", "toolName": "read", "input": {"p": 1}},
        {"type": "mcp_tool_result", "toolCallId": "1", "server": "files", "toolName": "read", "output": {"a": 1}},
        {"type": "subagent_spawn", "subagentId": "2", "agentName": "scout", "prompt": "look"},
        {"type": "subagent_error", "subagentId": "2", "agentName": "scout", "error": "lost"},
    )
    assert [(one.get("title"), one["status"]) for one in told] == [
        ("files: read", "in_progress"), (None, "completed"), ("scout: look", "in_progress"), (None, "failed"),
    ]  # fmt: skip
    assert (told[1]["rawOutput"], told[1]["content"]) == ({"a": 1}, [text('{\n "a": 1\n}')])


def test_events_inside_a_sub_agent_are_not_sent() -> None:
    assert wire({"type": "message_stop", "text": "x", "subagentId": "2"}) == []


def test_a_permission_holds_its_tool_call() -> None:
    told = wire(
        {"type": "tool_call_start", "toolCallId": "1", "toolName": "Bash", "inputAccumulated": ""},
        {"type": "approval_request", "interactionId": "i", "action": "run", "detail": "x", "riskLevel": "low",
         "toolName": "Bash"},
        {"type": "approval_granted", "interactionId": "i"},
    )  # fmt: skip
    assert [one["status"] for one in told] == ["pending", "pending", "in_progress"]


def test_a_plan_is_a_plan() -> None:
    todos = [{"content": "dig", "status": "completed"}, {"content": "fill", "status": "pending", "priority": "high"}]
    *_, plan = wire(
        {"type": "tool_call_start", "toolCallId": "1", "toolName": "TodoWrite", "inputAccumulated": ""},
        {"type": "tool_call_ready", "toolCallId": "1", "toolName": "TodoWrite", "input": {"todos": todos}},
    )
    assert plan == {
        "sessionUpdate": "plan",
        "entries": [
            {"content": "dig", "priority": "medium", "status": "completed"},
            {"content": "fill", "priority": "high", "status": "pending"},
        ],
    }


def test_usage_is_sent_once_if_the_window_is_known() -> None:
    used = {"type": "token_usage", "inputTokens": 5, "outputTokens": 2, "cachedTokens": 10}
    assert wire(used) == []
    assert wire(used, used, {"type": "cost", "cost": COST}, window=100, spent=1.0) == [
        {"sessionUpdate": "usage_update", "used": 17, "size": 100},
        {"sessionUpdate": "usage_update", "used": 17, "size": 100, "cost": {"amount": 1.5, "currency": "USD"}},
    ]


def test_an_unknown_cost_is_not_sent() -> None:
    used = {"type": "token_usage", "inputTokens": 5, "outputTokens": 2}
    unknown = {"type": "cost", "cost": {**COST, "totalUsd": 0.0, "source": "unknown"}}
    assert [one.get("cost") for one in wire(used, unknown, window=100)] == [None]


def test_images_are_content() -> None:
    [inline, stored] = wire(
        {"type": "image_output", "mimeType": "image/png", "base64": "aGk="},
        {"type": "image_output", "mimeType": "image/png", "filePath": "/w/x.png"},
    )
    assert inline["content"] == {"type": "image", "data": "aGk=", "mimeType": "image/png"}
    assert stored["content"]["uri"] == "file:///w/x.png"
