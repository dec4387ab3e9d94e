"""Relate shell, file and approval events to tool calls. Most of them do not carry the id of their call.

A command lies between `tool_call_ready` and the end of its call, and commands of parallel calls may overlap. The output
of overlapping commands is taken from the results of their calls, because the deltas do not name their command.
"""

import json
from collections.abc import Mapping
from typing import Any

from agent_mux.events import (
    FileCreateEvent,
    FileDeleteEvent,
    FilePatchEvent,
    FileReadEvent,
    FileWriteEvent,
    ShellExitEvent,
    ShellStartEvent,
)
from agent_mux.views.bounded_text import BoundedText
from agent_mux.views.cards import FileAction, FileChange, ToolCard

MAX_FILES = 200
"""Files that a card keeps."""
LONGEST_DIFF = 100_000
"""Characters that a card keeps of a diff."""
MAX_RECENT = 20
"""Ended calls that file events may still belong to."""

AnyFileEvent = FileReadEvent | FileWriteEvent | FileCreateEvent | FileDeleteEvent | FilePatchEvent
_ACTIONS: dict[str, FileAction] = {
    "file_read": "read", "file_write": "wrote", "file_create": "created", "file_delete": "deleted",
    "file_patch": "changed",
}  # fmt: skip


class OpenCalls:
    """The open tool calls of the agent, or of one sub-agent, and the calls that ended last."""

    def __init__(self) -> None:
        self._open: dict[str, ToolCard] = {}
        self._recent: list[ToolCard] = []
        self._shells: list[ToolCard] = []
        """The calls whose commands run."""
        self._overlapped: set[str] = set()
        """Ids of cards with commands that ran at the same time as others; their output deltas are ambiguous."""
        self._unrelated_exit: ShellExitEvent | None = None
        """The end of one of several commands; the next call that ends is the one it belongs to."""

    def __iter__(self) -> Any:
        return iter(list(self._open.values()))

    def add(self, card: ToolCard) -> None:
        """Add a call that starts."""
        self._open[card.tool_call_id] = card

    def find(self, tool_call_id: str | None) -> ToolCard | None:
        """Return the open call with this id."""
        return None if tool_call_id is None else self._open.get(tool_call_id)

    def only_running(self) -> ToolCard | None:
        """Return the call that runs, if there is exactly one."""
        running = [card for card in self._open.values() if card.state == "running"]
        return running[0] if len(running) == 1 else None

    def end(self, tool_call_id: str, output: Any) -> ToolCard | None:
        """Remove a call that ended, and complete its output. Return None for an unknown call."""
        card = self._open.pop(tool_call_id, None)
        if card is None:
            return None
        if card in self._shells:
            if self._unrelated_exit is not None:
                _set_exit(card, self._unrelated_exit)
                self._unrelated_exit = None
            self._shells.remove(card)
        if card.id in self._overlapped or card.command is None:
            self._overlapped.discard(card.id)
            card.output.append(output_text(output))
        self._recent = [*self._recent, card][-MAX_RECENT:]
        return card

    # -- commands

    def shell_started(self, event: ShellStartEvent) -> ToolCard | None:
        """Relate a command to the call that requested it: the one with this command, else the latest one."""
        free = [card for card in self._open.values() if card not in self._shells and card.state != "preparing"]
        named = [card for card in free if _names(card.input, event.command)]
        card = next(iter(named), None) or next(reversed(free), None)
        if card is None:
            return None
        card.command, card.cwd = event.command, event.cwd or None
        self._shells.append(card)
        if len(self._shells) > 1:
            self._overlapped.update(other.id for other in self._shells)
        return card

    def shell_output(self, delta: str) -> ToolCard | None:
        """Add output to its command. Returns None if several commands run."""
        if len(self._shells) != 1 or self._shells[0].id in self._overlapped:
            return None
        self._shells[0].output.append(delta)
        return self._shells[0]

    def shell_ended(self, event: ShellExitEvent) -> ToolCard | None:
        """Set the exit code of its command. Returns None if several commands run."""
        if len(self._shells) == 1:
            card = self._shells.pop()
            _set_exit(card, event)
            return card
        self._unrelated_exit = event if self._shells else None
        return None

    # -- files

    def file_touched(self, event: AnyFileEvent) -> ToolCard | None:
        """Add a file to the call that names it, else to the call that ended last, else to the latest one."""
        calls = [*reversed(self._recent), *reversed(self._open.values())]
        named = (card for card in calls if _names(card.input, event.path))
        card = next(named, None) or next(iter(calls), None)
        if card is None:
            return None
        if len(card.files) < MAX_FILES:
            card.files.append(_change_of(event))
        else:
            card.omitted_files += 1
        return card


def _set_exit(card: ToolCard, event: ShellExitEvent) -> None:
    card.exit_code, card.duration_ms = event.exit_code, event.duration_ms


def _change_of(event: AnyFileEvent) -> FileChange:
    diff = event.diff if isinstance(event, FilePatchEvent) else None
    if diff is not None and len(diff) > LONGEST_DIFF:
        diff = diff[:LONGEST_DIFF].rpartition("\n")[0] + "\n\\ (cut)\n"
    size = event.byte_count if isinstance(event, FileWriteEvent | FileCreateEvent) else None
    return FileChange(event.path, _ACTIONS[event.type], size, diff)


def _names(given: Any, wanted: str) -> bool:
    """Return whether a tool's input has this text as one of its values, or as the end of a list of words."""
    values = given.values() if isinstance(given, Mapping) else [given]
    for value in values:
        if value == wanted:
            return True
        if isinstance(value, list) and value and (value[-1] == wanted or wanted in value):
            return True
    return False


def output_text(output: Any) -> str:
    """Return a tool's result as text: text blocks joined, anything else as JSON."""
    if output is None:
        return ""
    if isinstance(output, str):
        return output
    if isinstance(output, list) and output and all(isinstance(block, Mapping) for block in output):
        return "\n".join(_block_text(block) for block in output)
    return json.dumps(output, ensure_ascii=False, indent=1, default=str)


def _block_text(block: Mapping[str, Any]) -> str:
    text = block.get("text")
    return text if isinstance(text, str) else f"[{block.get('type', 'block')}]"


def bounded(text: str) -> str:
    """Return the text, without its middle if it is very long."""
    return str(BoundedText(text, head=LONGEST_DIFF, tail=LONGEST_DIFF))
