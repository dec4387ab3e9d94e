"""The condensed view: what a model has to know of a run, and no more."""

from typing import Any

import pytest

from agent_mux import events as ev
from agent_mux.mcp_server.entries import LONGEST_LINE, cut, entry_of, file_of, is_told

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
        (made(ev.FilePatchEvent, path="a.py", diff="@@\n-a\n+b\n+c\n"), "done", "changed a.py +2 -1"),
        (made(ev.FileDeleteEvent, path="b.py"), "done", "deleted b.py"),
        (made(ev.ApprovalDeniedEvent, interaction_id="i", reason="no"), "failed", "denied no"),
        (made(ev.InputRequiredEvent, interaction_id="i", question="Which?", source="agent"), "question", "Which?"),
        (made(ev.DebugEvent, level="warn", message="no journal"), "warning", "no journal"),
    ],
)
def test_what_is_told(event: Any, kind: str, text: str) -> None:
    entry = entry_of(event, 7, 4000)
    assert entry is not None
    assert (entry.n, entry.kind, entry.text) == (7, kind, text)
    assert is_told(event)


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
def test_what_is_not_told(event: Any) -> None:
    assert entry_of(event, 0, 4000) is None
    assert not is_told(event)


def test_entries_are_bounded() -> None:
    message = entry_of(made(ev.MessageStopEvent, text="x" * 10_000), 0, 1000)
    assert message is not None
    assert message.text == "x" * 1000 + "… (9000 more characters)"
    line = entry_of(made(ev.FileDeleteEvent, path="p" * 10_000), 0, 60_000)
    assert line is not None
    assert len(line.text) == LONGEST_LINE


def test_changed_files() -> None:
    assert file_of(made(ev.FileCreateEvent, path="a", byte_count=1)) == "a"
    assert file_of(made(ev.FileReadEvent, path="a")) is None


def test_cutting_says_what_is_missing() -> None:
    assert cut("abc", 3) == "abc"
    assert cut("abcd", 3) == "abc… (1 more characters)"
