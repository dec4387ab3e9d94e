"""Messages and thoughts: started, then one delta or more, then stopped with the whole text. Sections 7, 8, 25.3.1.

Tool calls: native ones, MCP ones, and the shell and file events that project them. Sections 9 to 12, 25.3.

Shell events carry no tool call id. With parallel calls they cannot be told apart, so they are counted: there are never
more commands running than native calls that are ready and have not ended. File events name no call either: one must
have been ready in the same turn.


What one agent does: the content of a turn, or the inside of a sub-agent.


Sub-agents: spawned once, ended once, with a lawful inside. Section 13.

An event with a `subagentId` that is none of the three sub-agent events happened inside that sub-agent. The inside is a
stream of its own: it keeps the rules of a turn's content among itself, may be anywhere between spawn and end (also
while no turn of the main agent is open), and has no session, turn, or run of its own. Tool call ids and interaction
ids are unique in the whole run, inside and outside.
"""

from agent_mux.contract.breach import Opened, Report, report_opened
from agent_mux.events.base import BaseEvent
from agent_mux.events.content import (
    Accumulated,
    GrowingText,
    MessageStartEvent,
    MessageStopEvent,
    TextDeltaEvent,
    ThinkingDeltaEvent,
    ThinkingStartEvent,
    ThinkingStopEvent,
)
from agent_mux.events.guards import category_of
from agent_mux.events.tools import (
    FileCreateEvent,
    FileDeleteEvent,
    FilePatchEvent,
    FileReadEvent,
    FileWriteEvent,
    McpToolCallStartEvent,
    McpToolErrorEvent,
    McpToolResultEvent,
    ShellExitEvent,
    ShellStartEvent,
    ShellStderrDeltaEvent,
    ShellStdoutDeltaEvent,
    SubagentErrorEvent,
    SubagentResultEvent,
    SubagentSpawnEvent,
    ToolCallReadyEvent,
    ToolCallStartEvent,
    ToolErrorEvent,
    ToolInputDeltaEvent,
    ToolResultEvent,
)


class TextSoFar:
    """What the deltas add up to."""

    def __init__(self, start: str = "") -> None:
        self._own = GrowingText()
        self._shown = self._own.append(start)

    def __str__(self) -> str:
        return str(self._own)

    def add(self, delta: str, shown: Accumulated | None) -> bool:
        """Add a delta; False when the text that the event shows is another. None: it shows none (compact form)."""
        own = self._own.append(delta)
        is_right = shown is None or shown.extends(self._shown, delta)
        # A view on the same growing text as the one before is compared in O(delta).
        self._shown = shown if shown is not None and is_right else own
        return is_right


class Phase:
    """A message, or a thought: one can be open in each scope."""

    def __init__(self, name: str, *, pairing: str, accumulation: str) -> None:
        self.name = name
        self._pairing = pairing
        self._accumulation = accumulation
        self._text: TextSoFar | None = None
        self._deltas = 0

    @property
    def is_open(self) -> bool:
        """Started and not stopped."""
        return self._text is not None

    def start(self, report: Report) -> None:
        """The start event."""
        if self.is_open:
            report(self._pairing, f"a {self.name} starts while one is open")
        self._text, self._deltas = TextSoFar(), 0

    def add(self, delta: str, shown: Accumulated | None, report: Report) -> None:
        """A delta event."""
        if self._text is None:
            report(self._pairing, f"a delta outside a {self.name}")
            return
        self._deltas += 1
        if not self._text.add(delta, shown):
            report(self._accumulation, "accumulated is not the text so far")

    def stop(self, whole: str, report: Report) -> None:
        """The stop event."""
        text, self._text = self._text, None
        if text is None:
            report(self._pairing, f"a {self.name} stops that was not started")
        elif not self._deltas:
            report(self._pairing, f"a {self.name} without a delta")
        elif str(text) != whole:
            report(self._pairing, f"the {self.name} stops with another text than its deltas")


class Prose:
    """The message and the thought of one scope."""

    def __init__(self) -> None:
        self._message = Phase("message", pairing="7.4", accumulation="7.2")
        self._thought = Phase("thought", pairing="8.4", accumulation="8.2")

    def see(self, event: BaseEvent, *, compact: bool, report: Report) -> None:
        """Check one event of these families."""
        match event:
            case MessageStartEvent():
                self._apart(self._thought, "a message starts inside a thought", report)
                self._message.start(report)
            case TextDeltaEvent():
                self._message.add(event.delta, None if compact else event.accumulated_view, report)
            case MessageStopEvent():
                self._message.stop(event.text, report)
            case ThinkingStartEvent():
                self._apart(self._message, "a thought starts inside a message", report)
                self._thought.start(report)
            case ThinkingDeltaEvent():
                self._thought.add(event.delta, None if compact else event.accumulated_view, report)
            case ThinkingStopEvent():
                self._thought.stop(event.thinking, report)

    def _apart(self, other: Phase, message: str, report: Report) -> None:
        if other.is_open:
            report("25.3.1", message)

    def opened(self) -> Opened:
        """What is open."""
        if self._message.is_open:
            yield "7.4", "a message"
        if self._thought.is_open:
            yield "8.4", "a thought"


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


class Content:
    """The prose and the calls of one scope."""

    def __init__(self, used_call_ids: set[str]) -> None:
        self.prose = Prose()
        self._calls = Calls(used_call_ids)

    def see(self, event: BaseEvent, *, compact: bool, report: Report) -> None:
        """Check one event; those of other families say nothing here."""
        family = category_of(event.type)
        if family in ("text", "thinking"):
            self.prose.see(event, compact=compact, report=report)
        elif family in ("tool", "mcp", "shell", "file"):
            self._calls.see(event, compact=compact, report=report)

    def opened(self) -> Opened:
        """What is open."""
        yield from self.prose.opened()
        yield from self._calls.opened()


class Delegations:
    """The sub-agents that have not reported yet."""

    def __init__(self, used_call_ids: set[str]) -> None:
        self._used_call_ids = used_call_ids
        self._used: set[str] = set()
        self._open: dict[str, tuple[str, Content]] = {}

    def see(self, event: BaseEvent, report: Report) -> None:
        """Check one event of the main stream; those of other families say nothing here."""
        match event:
            case SubagentSpawnEvent():
                if event.subagent_id in self._used:
                    report("13.1", f"sub-agent id {event.subagent_id!r} was used before")
                self._used.add(event.subagent_id)
                self._open[event.subagent_id] = event.agent_name, Content(self._used_call_ids)
            case SubagentResultEvent() | SubagentErrorEvent():
                self._end(event, report)

    def see_inside(self, event: BaseEvent, *, compact: bool, report: Report) -> None:
        """Check one event that happened inside a sub-agent."""
        subagent = self._open.get(event.subagent_id or "")
        if subagent is None:
            report("13.2", f"an event inside sub-agent {event.subagent_id!r}, which is not open")
        else:
            subagent[1].see(event, compact=compact, report=report)

    def opened(self) -> Opened:
        """What is open."""
        for subagent_id, (_, inside) in self._open.items():
            yield "13.2", f"sub-agent {subagent_id!r}"
            yield from inside.opened()

    def _end(self, event: SubagentResultEvent | SubagentErrorEvent, report: Report) -> None:
        subagent = self._open.pop(event.subagent_id, None)
        if subagent is None:
            report("13.2", f"sub-agent {event.subagent_id!r} ends without being open")
            return
        name, inside = subagent
        if event.agent_name != name:
            report("13.1", f"sub-agent {event.subagent_id!r} was spawned as {name!r}, not {event.agent_name!r}")
        report_opened(inside.opened(), f"when sub-agent {event.subagent_id!r} ends", report)
