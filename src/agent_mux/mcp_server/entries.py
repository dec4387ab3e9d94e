"""The condensed view of a run: messages, tool calls, changed files and problems, as one entry per event."""

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
from agent_mux.mcp_server.responses import EntryKind, RunEntry

MAX_LINE = 500  # characters of every entry that is not a message
_KINDS: Mapping[Mark, EntryKind | None] = {
    "call": "tool", "good": "done", "bad": "failed", "warning": "warning", "question": "question", "note": None,
    "error": "failed",
}  # fmt: skip
_SUBAGENT_EVENTS = frozenset({"subagent_spawn", "subagent_result", "subagent_error"})
_FILE_CHANGES = FileCreateEvent | FileDeleteEvent | FilePatchEvent | FileWriteEvent


def entry_of(event: BaseEvent, number: int, max_chars: int) -> RunEntry | None:
    """Return the entry of an event; None for an event that adds nothing to other entries.

    Events inside of sub-agents have no entries. `max_chars` is the maximum length of a message, in characters.
    """
    if event.subagent_id is not None and event.type not in _SUBAGENT_EVENTS:
        return None
    if isinstance(event, MessageStopEvent):
        if event.abandoned or not event.text.strip():
            return None
        return RunEntry(n=number, kind="message", text=truncate(event.text, max_chars))
    line = event_line(event)
    kind = None if line is None else _KINDS[line.mark]
    if line is None or kind is None:
        return None
    return RunEntry(n=number, kind=kind, text=one_line(f"{line.text} {line.rest}".strip(), min(MAX_LINE, max_chars)))


def has_entry(event: BaseEvent) -> bool:
    """Return whether the condensed view has an entry for an event."""
    return entry_of(event, 0, MAX_LINE) is not None


def changed_file(event: BaseEvent) -> str | None:
    """Return the path of the file that an event reports as changed, None for other events."""
    return event.path if isinstance(event, _FILE_CHANGES) else None


def truncate(text: str, max_chars: int) -> str:
    """Return the first `max_chars` characters of a text, followed by the number of characters that were removed."""
    return text if len(text) <= max_chars else f"{text[:max_chars]}… ({len(text) - max_chars} more characters)"
