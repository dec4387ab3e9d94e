"""The condensed view of a run: what it says, the tools it calls, the files it changes, what goes wrong."""

from collections.abc import Mapping

from agent_mux._util.sanitize import one_line
from agent_mux.api.event_lines import Mark, event_line
from agent_mux.events import (
    BaseEvent,
    FileCreateEvent,
    FileDeleteEvent,
    FilePatchEvent,
    FileWriteEvent,
    MessageStopEvent,
)
from agent_mux.mcp_server.answers import Entry, EntryKind

LONGEST_LINE = 500  # characters of a call, a file, a warning
_KINDS: Mapping[Mark, EntryKind | None] = {
    "call": "tool", "good": "done", "bad": "failed", "warning": "warning", "question": "question", "note": None,
    "error": "failed",
}  # fmt: skip
_DELEGATION = frozenset({"subagent_spawn", "subagent_result", "subagent_error"})
_OF_FILES = FileCreateEvent | FileDeleteEvent | FilePatchEvent | FileWriteEvent


def entry_of(event: BaseEvent, number: int, longest: int) -> Entry | None:
    """The entry of an event; None where it says nothing that another one does not say.

    `longest`: characters of a message. What happens inside of sub-agents stays inside.
    """
    if event.subagent_id is not None and event.type not in _DELEGATION:
        return None
    if isinstance(event, MessageStopEvent):
        return Entry(n=number, kind="message", text=cut(event.text, longest)) if event.text.strip() else None
    line = event_line(event)
    kind = None if line is None else _KINDS[line.mark]
    if line is None or kind is None:
        return None
    return Entry(n=number, kind=kind, text=one_line(f"{line.text} {line.rest}".strip(), min(LONGEST_LINE, longest)))


def is_told(event: BaseEvent) -> bool:
    """The event has an entry."""
    return entry_of(event, 0, LONGEST_LINE) is not None


def file_of(event: BaseEvent) -> str | None:
    """The file that was changed, where one was."""
    return event.path if isinstance(event, _OF_FILES) else None


def cut(text: str, longest: int) -> str:
    """The beginning of a text, and how much was left off."""
    return text if len(text) <= longest else f"{text[:longest]}… ({len(text) - longest} more characters)"
