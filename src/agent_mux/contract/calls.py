"""Tool calls: native ones, MCP ones, and the shell and file events that project them. Sections 9 to 12, 25.3.

Shell events carry no tool call id. With parallel calls they cannot be told apart, so they are counted: there are never
more commands running than native calls that are ready and have not ended. File events name no call either: one must
have been ready in the same turn.
"""

from agent_mux.contract.breach import Report
from agent_mux.contract.opened import Opened
from agent_mux.contract.prose import TextSoFar
from agent_mux.events.base import BaseEvent
from agent_mux.events.file import FileCreateEvent, FileDeleteEvent, FilePatchEvent, FileReadEvent, FileWriteEvent
from agent_mux.events.mcp import McpToolCallStartEvent, McpToolErrorEvent, McpToolResultEvent
from agent_mux.events.shell import ShellExitEvent, ShellStartEvent, ShellStderrDeltaEvent, ShellStdoutDeltaEvent
from agent_mux.events.tool import (
    ToolCallReadyEvent,
    ToolCallStartEvent,
    ToolErrorEvent,
    ToolInputDeltaEvent,
    ToolResultEvent,
)


class _Call:
    def __init__(self, name: str, start: str) -> None:
        self.name = name
        self.input = TextSoFar(start)
        self.is_ready = False


class Calls:
    """The calls of one scope. `used` holds the ids of the whole run, native and MCP, of all scopes."""

    def __init__(self, used: set[str]) -> None:
        self._used = used
        self._native: dict[str, _Call] = {}
        self._mcp: dict[str, tuple[str, str]] = {}
        self._commands = 0
        self._any_ready = False

    def see(self, event: BaseEvent, *, compact: bool, report: Report) -> None:
        """Check one event of these families."""
        match event:
            case ToolCallStartEvent():
                self._use(event.tool_call_id, report)
                self._native[event.tool_call_id] = _Call(event.tool_name, event.input_accumulated)
            case ToolInputDeltaEvent():
                self._input(event, compact=compact, report=report)
            case ToolCallReadyEvent():
                self._ready(event, report)
            case ToolResultEvent() | ToolErrorEvent():
                self._end(event, report)
            case McpToolCallStartEvent():
                self._use(event.tool_call_id, report)
                self._mcp[event.tool_call_id] = (event.server, event.tool_name)
            case McpToolResultEvent() | McpToolErrorEvent():
                self._end_mcp(event, report)
            case ShellStartEvent() | ShellStdoutDeltaEvent() | ShellStderrDeltaEvent() | ShellExitEvent():
                self._shell(event, report)
            case FileReadEvent() | FileWriteEvent() | FileCreateEvent() | FileDeleteEvent() | FilePatchEvent():
                if not self._any_ready:
                    report("25.3.3", "no tool call was ready in this turn before")

    def opened(self) -> Opened:
        """What is open."""
        for call_id in self._native:
            yield "9.7", f"tool call {call_id!r}"
        for call_id in self._mcp:
            yield "12.2", f"MCP call {call_id!r}"
        if self._commands:
            yield "11.5", "a command"

    def _use(self, call_id: str, report: Report) -> None:
        if call_id in self._used:
            report("9.1", f"tool call id {call_id!r} was used before")
        self._used.add(call_id)

    def _input(self, event: ToolInputDeltaEvent, *, compact: bool, report: Report) -> None:
        call = self._native.get(event.tool_call_id)
        if call is None:
            report("9.7", f"input for tool call {event.tool_call_id!r}, which is not open")
            return
        if call.is_ready:
            report("9.7", f"input for tool call {event.tool_call_id!r} after it was ready")
        if not call.input.add(event.delta, None if compact else event.input_accumulated_view):
            report("9.3", "inputAccumulated is not the input so far")

    def _ready(self, event: ToolCallReadyEvent, report: Report) -> None:
        self._any_ready = True
        call = self._native.get(event.tool_call_id)
        if call is None:
            report("9.7", f"tool call {event.tool_call_id!r} is ready without being open")
            return
        if call.is_ready:
            report("9.7", f"tool call {event.tool_call_id!r} is ready twice")
        call.is_ready = True
        self._same_name(call, event, report)

    def _end(self, event: ToolResultEvent | ToolErrorEvent, report: Report) -> None:
        call = self._native.pop(event.tool_call_id, None)
        if call is None:
            report("9.7", f"tool call {event.tool_call_id!r} ends without being open")
            return
        if not call.is_ready:
            report("9.7", f"tool call {event.tool_call_id!r} ends before it was ready")
        self._same_name(call, event, report)
        if self._commands > self._running():
            report("25.3.4", f"tool call {event.tool_call_id!r} ends before its command")

    def _same_name(
        self, call: _Call, event: ToolCallReadyEvent | ToolResultEvent | ToolErrorEvent, report: Report
    ) -> None:
        if event.tool_name != call.name:
            report("9.1", f"tool call {event.tool_call_id!r} started as {call.name!r}, not {event.tool_name!r}")

    def _end_mcp(self, event: McpToolResultEvent | McpToolErrorEvent, report: Report) -> None:
        started = self._mcp.pop(event.tool_call_id, None)
        if started is None:
            report("12.2", f"MCP call {event.tool_call_id!r} ends without being open")
        elif started != (event.server, event.tool_name):
            report("12.1", f"MCP call {event.tool_call_id!r} started as {'/'.join(started)}")

    def _running(self) -> int:
        return sum(call.is_ready for call in self._native.values())

    def _shell(self, event: BaseEvent, report: Report) -> None:
        if isinstance(event, ShellStartEvent):
            self._commands += 1
            if self._commands > self._running():
                report("25.3.4", "a command starts outside a tool call that is ready")
        elif not self._commands:
            report("11.5", "no command is running")
        elif isinstance(event, ShellExitEvent):
            self._commands -= 1
