"""One tool call, as its announcement, the request for permission and its updates tell it bit by bit."""

from collections.abc import Mapping
from typing import Any

import msgspec

from agent_mux_adapters._dialects.acp.wire import text_of
from agent_mux_adapters._dialects.tolerant import mapping, rows, text

ENDED = frozenset({"completed", "failed"})


class Diff(msgspec.Struct, frozen=True):
    """A change that a tool call shows: whole files, or only the replaced fragment, as the agent likes."""

    path: str
    old: str | None
    """None: the file is new. Many agents say an empty text instead."""
    new: str
    meta: Mapping[str, Any]


class Call(msgspec.Struct):
    """What is known of a tool call: in each field what was told last. The adapter's `ToolReader` makes sense of it."""

    id: str
    title: str = ""
    first_title: str = ""
    """The title it was announced with: with some agents the name of the tool."""
    kind: str = ""
    """read, edit, delete, move, search, execute, think, fetch, switch_mode, other, or empty."""
    status: str = ""
    """pending, in_progress, completed, failed, or empty."""
    raw_input: Any = None
    raw_output: Any = None
    content: list[Mapping[str, Any]] = []
    announced: list[Mapping[str, Any]] = []
    """The content it was announced with: a description, no result."""
    diffs: list[Diff] = []
    """The last changes shown; an end without any does not take them back."""
    paths: list[str] = []
    """Its locations."""
    meta: dict[str, Any] = {}
    """Everything its `_meta` said so far."""
    asked: Mapping[str, Any] | None = None
    """The `toolCall` of the request for permission, if there was one."""
    is_announced: bool = False
    """A `tool_call` told it; else only the request for permission did, so far."""
    name: str = ""
    """As it was told; empty before."""
    mcp: tuple[str, str] | None = None
    """The MCP server and its tool, once it was told as such a call."""
    is_subagent: bool = False
    is_shell: bool = False
    denial: str | None = None
    """Why permission was refused, if it was: the call never ran."""
    streamed: str = ""
    """The output that was told so far."""

    @property
    def is_told(self) -> bool:
        """The call was shown, with its complete input."""
        return bool(self.name)

    @property
    def has_ended(self) -> bool:
        """The agent said how it ended."""
        return self.status in ENDED

    @property
    def texts(self) -> list[str]:
        """The texts of its content, without those that only announced it."""
        shown = [item for item in self.content if item.get("type") == "content" and item not in self.announced]
        return [found for found in map(text_of, shown) if found]

    def take(self, update: Mapping[str, Any]) -> None:
        """Another `tool_call` or `tool_call_update`: what it does not mention stays."""
        self._take_content(update)
        self.title = text(update.get("title")) or self.title
        self.first_title = self.first_title or self.title
        self.kind = text(update.get("kind")) or self.kind
        self.status = text(update.get("status")) or self.status
        if update.get("rawInput") is not None:
            self.raw_input = update["rawInput"]
        if update.get("rawOutput") is not None:
            self.raw_output = update["rawOutput"]

    def take_asked(self, asked: Mapping[str, Any]) -> None:
        """The call as a request for permission shows it: it adds what nobody told yet, and the changes."""
        self.asked = asked
        if not self.is_announced:
            self.take(asked)
            self.announced = self.content
        else:
            self._take_diffs(rows(asked.get("content")))
            self.raw_input = self.raw_input if self.raw_input not in (None, {}) else asked.get("rawInput")
            self.kind = self.kind or text(asked.get("kind"))
            self.meta = {**self.meta, **mapping(asked.get("_meta"))}

    def deny(self, reason: str | None) -> None:
        """Permission was refused. Not all agents say that this was the end of the call; those that do, say it soon."""
        self.denial = reason or "permission denied"

    def _take_content(self, update: Mapping[str, Any]) -> None:
        if isinstance(update.get("content"), list):
            self.content = rows(update["content"])
            self._take_diffs(self.content)
        if isinstance(update.get("locations"), list):
            found = [text(row.get("path")) for row in rows(update["locations"])]
            self.paths = [path for path in found if path] or self.paths
        self.meta = {**self.meta, **mapping(update.get("_meta"))}

    def _take_diffs(self, content: list[Mapping[str, Any]]) -> None:
        found = _diffs(content)
        # Some agents show whole files when they ask for permission, and only the changed fragment at the end.
        if not (len(found) == len(self.diffs) and all(map(_is_part_of, found, self.diffs))):
            self.diffs = found or self.diffs


def _diffs(content: list[Mapping[str, Any]]) -> list[Diff]:
    return [
        Diff(text(item.get("path")), _old(item.get("oldText")), text(item.get("newText")), mapping(item.get("_meta")))
        for item in content
        if item.get("type") == "diff" and text(item.get("path"))
    ]


def _is_part_of(part: Diff, whole: Diff) -> bool:
    return part.path == whole.path and (part.old or "") in (whole.old or "") and part.new in whole.new


def _old(value: Any) -> str | None:
    return value if isinstance(value, str) else None
