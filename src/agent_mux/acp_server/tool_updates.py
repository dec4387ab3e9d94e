"""Convert events of tool calls to updates: started, running with output, finished with file changes. Pure.

Shell and file events do not name their call. By the event contract, shell events lie inside of the call and file events
follow directly after it.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from acp.schema import FileEditToolCallContent, ToolCallProgress, ToolCallStart

from agent_mux import events
from agent_mux.acp_server.tools import (
    location,
    new_file_diffs,
    output_text,
    patch_diffs,
    read_plan,
    shorten,
    text_content,
    tool_kind,
    tool_locations,
    tool_title,
)

LONGEST_OUTPUT = 10_000  # characters of running output that are kept; the result contains all of it


@dataclass(slots=True)
class _OpenCall:
    name: str
    given: Any = None
    output: str = ""
    unshown: int = 0
    """Characters of output that are not sent yet."""
    diffs: list[FileEditToolCallContent] = field(default_factory=list)
    is_shell: bool = False


class ToolUpdates:
    """Tracks the tool calls of one run."""

    def __init__(self, cwd: str) -> None:
        """Initialize without calls. `cwd` is the working directory: the protocol requires absolute paths."""
        self._cwd = cwd
        self._open: dict[str, _OpenCall] = {}
        self._last: tuple[str, _OpenCall] | None = None
        """The call that ended last; file changes belong to it."""
        self.handlers: Mapping[type, Callable[[Any], Iterable[Any]]] = {
            events.ToolCallStartEvent: lambda event: self._begin(event.tool_call_id, event.tool_name),
            events.ToolCallReadyEvent: self._ready,
            events.ToolResultEvent: lambda event: self._done(event.tool_call_id, event.output),
            events.ToolErrorEvent: lambda event: self._failed(event.tool_call_id, event.error),
            events.McpToolCallStartEvent: self._mcp,
            events.McpToolResultEvent: lambda event: self._done(event.tool_call_id, event.output),
            events.McpToolErrorEvent: lambda event: self._failed(event.tool_call_id, event.error),
            events.SubagentSpawnEvent: self._delegated,
            events.SubagentResultEvent: lambda event: self._done(event.subagent_id, event.summary),
            events.SubagentErrorEvent: lambda event: self._failed(event.subagent_id, event.error),
            events.ShellStartEvent: self._shell,
            events.ShellStdoutDeltaEvent: lambda event: self._printed(event.delta),
            events.ShellStderrDeltaEvent: lambda event: self._printed(event.delta),
            events.FileReadEvent: lambda event: self._touched(event.path, []),
            events.FileWriteEvent: lambda event: self._touched(event.path, []),
            events.FileDeleteEvent: lambda event: self._touched(event.path, []),
            events.FileCreateEvent: self._created,
            events.FilePatchEvent: lambda event: self._touched(
                event.path, patch_diffs(event.path, event.diff, self._cwd)
            ),
        }
        """The handler of each event type."""

    def is_open(self, call_id: str) -> bool:
        """Return whether the call has started and not ended."""
        return call_id in self._open

    def find_waiting(self, tool_name: str | None) -> str | None:
        """Return the open call of this tool that started last, if any."""
        named = [call_id for call_id, call in self._open.items() if call.name == tool_name]
        return named[-1] if named else None

    def _begin(self, call_id: str, name: str) -> Iterable[Any]:
        self._open[call_id] = _OpenCall(name)
        yield ToolCallStart(
            session_update="tool_call",
            tool_call_id=call_id,
            title=shorten(name),
            kind=tool_kind(name),
            status="pending",
        )

    def _ready(self, event: events.ToolCallReadyEvent) -> Iterable[Any]:
        name, given = event.tool_name, event.input
        call = self._open.setdefault(event.tool_call_id, _OpenCall(name))
        call.given = given
        yield self._progress(
            event.tool_call_id,
            title=tool_title(name, given),
            status="in_progress",
            raw_input=given,
            locations=tool_locations(given, self._cwd) or None,
        )
        plan = read_plan(given)
        if plan is not None:
            yield plan

    def _mcp(self, event: events.McpToolCallStartEvent) -> Iterable[Any]:
        yield from self._whole(event.tool_call_id, f"{event.server}: {event.tool_name}", event.input)

    def _delegated(self, event: events.SubagentSpawnEvent) -> Iterable[Any]:
        yield from self._whole(event.subagent_id, f"{event.agent_name}: {event.prompt}", {"prompt": event.prompt})

    def _whole(self, call_id: str, title: str, given: Any) -> Iterable[Any]:
        self._open[call_id] = _OpenCall(title, given)
        yield ToolCallStart(
            session_update="tool_call", tool_call_id=call_id, title=shorten(title), kind="other",
            status="in_progress", raw_input=given,
        )  # fmt: skip

    def _done(self, call_id: str, output: Any) -> Iterable[Any]:
        yield self._end(call_id, "completed", output, output_text(output))

    def _failed(self, call_id: str, error: str) -> Iterable[Any]:
        yield self._end(call_id, "failed", error, error)

    def _end(self, call_id: str, status: str, output: Any, words: str) -> ToolCallProgress:
        call = self._open.pop(call_id, None) or _OpenCall("")
        self._last = (call_id, call)
        content = [text_content(words or call.output)] if words or call.output else None
        return self._progress(call_id, status=status, content=content, raw_output=output)

    def _shell(self, _: events.ShellStartEvent) -> Iterable[Any]:
        waiting = [(call_id, call) for call_id, call in self._open.items() if not call.is_shell]
        if waiting:
            call_id, call = waiting[-1]
            call.is_shell = True
            yield self._progress(call_id, kind="execute", status="in_progress")

    def _printed(self, delta: str) -> Iterable[Any]:
        running = [(call_id, call) for call_id, call in self._open.items() if call.is_shell]
        if not running:
            return
        call_id, call = running[-1]
        call.output = (call.output + delta)[-LONGEST_OUTPUT:]
        call.unshown += len(delta)
        # Each update replaces the previous one: sending a quarter at a time keeps the total proportional to the output.
        if call.unshown * 4 >= len(call.output):
            call.unshown = 0
            yield self._progress(call_id, content=[text_content(call.output)])

    def _created(self, event: events.FileCreateEvent) -> Iterable[Any]:
        given = self._last[1].given if self._last is not None else None
        yield from self._touched(event.path, new_file_diffs(event.path, event.byte_count, given, self._cwd))

    def _touched(self, path: str, diffs: Sequence[FileEditToolCallContent]) -> Iterable[Any]:
        if self._last is None:
            return
        call_id, call = self._last
        call.diffs += diffs  # replaces the tool's own message, which only confirms the change
        yield self._progress(call_id, content=call.diffs or None, locations=[location(path, self._cwd)])

    @staticmethod
    def _progress(call_id: str, **changed: Any) -> ToolCallProgress:
        return ToolCallProgress(session_update="tool_call_update", tool_call_id=call_id, **changed)
