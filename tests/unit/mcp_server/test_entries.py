"""The condensed view of a run: which events have entries, and their texts."""

from typing import Any

import pytest

from agent_mux import events as ev
from agent_mux.mcp_server.entries import MAX_LINE, changed_file, entry_of, has_entry, truncate

BASE: dict[str, Any] = {"run_id": "r", "agent": "x", "timestamp": 1}


def made(kind: type[Any], **fields: Any) -> Any:
    return kind(**BASE, **fields)


@pytest.mark.parametrize(
    ("event", "kind", "text"),
    [
        (made(ev.MessageStopEvent, text="Done.\nReally."), "message", "Done.\nReally."),
        (
            made(ev.ToolCallReadyEvent, tool_call_id="t", tool_name="Shell", input={"command": "ls\n\x1b[2J-la"}),
            "tool",
            "Shell ls -la",
        ),
        (made(ev.ToolErrorEvent, tool_call_id="t", tool_name="Shell", error="exit 1"), "failed", "Shell exit 1"),
        (
            made(ev.FilePatchEvent, path="a.py", diff="--- a/a.py\n+++ b/a.py\n@@ -1 +1,2 @@\n-a\n+b\n+c\n"),
            "done",
            "changed a.py +2 -1",
        ),
        (made(ev.FileDeleteEvent, path="b.py"), "done", "deleted b.py"),
        (made(ev.ApprovalDeniedEvent, interaction_id="i", reason="no"), "failed", "denied no"),
        (made(ev.InputRequiredEvent, interaction_id="i", question="Which?", source="agent"), "question", "Which?"),
        (made(ev.DebugEvent, level="warn", message="no journal"), "warning", "no journal"),
    ],
)
def test_an_event_has_an_entry(event: Any, kind: str, text: str) -> None:
    entry = entry_of(event, 7, 4000)
    assert entry is not None
    assert (entry.n, entry.kind, entry.text) == (7, kind, text)
    assert has_entry(event)


@pytest.mark.parametrize(
    "event",
    [
        made(ev.MessageStopEvent, text="  \n"),
        made(ev.MessageStopEvent, text="inside", subagent_id="s"),
        made(ev.ToolCallReadyEvent, tool_call_id="t", tool_name="Shell", input={}, subagent_id="s"),
        made(ev.DebugEvent, level="info", message="a detail"),
        made(ev.PausedEvent, subagent_id="s"),
        made(ev.AbortedEvent),
    ],
)
def test_an_event_has_no_entry(event: Any) -> None:
    assert entry_of(event, 0, 4000) is None
    assert not has_entry(event)


def test_entries_are_bounded() -> None:
    message = entry_of(made(ev.MessageStopEvent, text="x" * 10_000), 0, 1000)
    assert message is not None
    assert message.text == "x" * 1000 + "… (9000 more characters)"
    line = entry_of(made(ev.FileDeleteEvent, path="p" * 10_000), 0, 60_000)
    assert line is not None
    assert len(line.text) == MAX_LINE


def test_changed_files() -> None:
    assert changed_file(made(ev.FileCreateEvent, path="a", byte_count=1)) == "a"
    assert changed_file(made(ev.FileReadEvent, path="a")) is None


def test_a_truncated_text_states_what_is_missing() -> None:
    assert truncate("abc", 3) == "abc"
    assert truncate("abcd", 3) == "abc… (1 more characters)"
