"""The rules for the content of a turn, and for the inside of sub-agents.

See docs/spec/events.md, sections 7 to 13 and 25.3.

Shell events carry no tool call id. With parallel calls they cannot be assigned to a call, so the commands are counted:
there are never more running commands than native calls that are ready and have not ended. File events name no call
either: a call must have become ready in the same turn.

An event with a `subagentId` that is none of the three sub-agent events occurred inside that sub-agent. The inside is a
stream of its own: it obeys the content rules by itself, may occur anywhere between spawn and end (also while no turn of
the main agent is open), and has no session, turns or run controls. Tool call ids and interaction ids are unique in the
whole run.
"""

from agent_mux.contract.breach import OpenItems, Report, report_open_items
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


class ConcatenatedText:
    """The concatenation of the deltas of one text, compared with what the events show."""

    def __init__(self, start: str = "") -> None:
        self._own = GrowingText()
        self._shown = self._own.append(start)

    def __str__(self) -> str:
        return str(self._own)

    def add(self, delta: str, shown: Accumulated | None) -> bool:
        """Add a delta. Returns False when the event shows a different text; None (compact form) is accepted."""
        own = self._own.append(delta)
        is_valid = shown is None or shown.extends(self._shown, delta)
        # Two views on the same growing text are compared in O(delta).
        self._shown = shown if shown is not None and is_valid else own
        return is_valid


class TextBlockRules:
    """The rules for messages, or for thinking blocks: start, deltas, stop."""

    def __init__(self, name: str, *, pairing: str, accumulation: str) -> None:
        """`pairing` and `accumulation` are the rules to report."""
        self.name = name
        self._pairing = pairing
        self._accumulation = accumulation
        self._text: ConcatenatedText | None = None
        self._deltas = 0

    @property
    def is_open(self) -> bool:
        """Whether a block has started and not stopped."""
        return self._text is not None

    def start(self, report: Report) -> None:
        """Check a start event: no block of this kind may be open."""
        if self.is_open:
            report(self._pairing, f"a {self.name} starts while one is open")
        self._text, self._deltas = ConcatenatedText(), 0

    def add(self, delta: str, shown: Accumulated | None, report: Report) -> None:
        """Check a delta event: a block must be open, and `shown` must be the accumulated text."""
        if self._text is None:
            report(self._pairing, f"a delta outside a {self.name}")
            return
        self._deltas += 1
        if not self._text.add(delta, shown):
            report(self._accumulation, "accumulated differs from the concatenated deltas")

    def stop(self, whole: str, report: Report) -> None:
        """Check a stop event: `whole` must be the text of at least one delta."""
        text, self._text = self._text, None
        if text is None:
            report(self._pairing, f"a {self.name} stops without a start")
        elif not self._deltas:
            report(self._pairing, f"a {self.name} without a delta")
        elif str(text) != whole:
            report(self._pairing, f"the text of the {self.name} differs from its deltas")


class MessageRules:
    """The rules for the messages and thinking blocks of one agent."""

    def __init__(self) -> None:
        self._message = TextBlockRules("message", pairing="7.4", accumulation="7.2")
        self._thinking = TextBlockRules("thinking block", pairing="8.4", accumulation="8.2")

    def check(self, event: BaseEvent, *, compact: bool, report: Report) -> None:
        """Check a text or thinking event."""
        match event:
            case MessageStartEvent():
                self._check_overlap(self._thinking, "a message starts inside a thinking block", report)
                self._message.start(report)
            case TextDeltaEvent():
                self._message.add(event.delta, None if compact else event.accumulated_view, report)
            case MessageStopEvent():
                self._message.stop(event.text, report)
            case ThinkingStartEvent():
                self._check_overlap(self._message, "a thinking block starts inside a message", report)
                self._thinking.start(report)
            case ThinkingDeltaEvent():
                self._thinking.add(event.delta, None if compact else event.accumulated_view, report)
            case ThinkingStopEvent():
                self._thinking.stop(event.thinking, report)

    def _check_overlap(self, other: TextBlockRules, message: str, report: Report) -> None:
        if other.is_open:
            report("25.3.1", message)

    def open_items(self) -> OpenItems:
        """Yield the items that are open."""
        if self._message.is_open:
            yield "7.4", "a message"
        if self._thinking.is_open:
            yield "8.4", "a thinking block"


class _OpenCall:
    def __init__(self, name: str, start: str) -> None:
        self.name = name
        self.input = ConcatenatedText(start)
        self.is_ready = False


class ToolCallRules:
    """The rules for the tool, shell, file and MCP events of one agent."""

    def __init__(self, used_ids: set[str]) -> None:
        """`used_ids` are the ids of all calls of the run, native and MCP, of all agents."""
        self._used = used_ids
        self._native: dict[str, _OpenCall] = {}
        self._mcp: dict[str, tuple[str, str]] = {}
        self._commands = 0
        self._has_ready_call = False

    def check(self, event: BaseEvent, *, compact: bool, report: Report) -> None:
        """Check a tool, shell, file or MCP event."""
        match event:
            case ToolCallStartEvent():
                self._use(event.tool_call_id, report)
                self._native[event.tool_call_id] = _OpenCall(event.tool_name, event.input_accumulated)
            case ToolInputDeltaEvent():
                self._check_input(event, compact=compact, report=report)
            case ToolCallReadyEvent():
                self._check_ready(event, report)
            case ToolResultEvent() | ToolErrorEvent():
                self._check_end(event, report)
            case McpToolCallStartEvent():
                self._use(event.tool_call_id, report)
                self._mcp[event.tool_call_id] = (event.server, event.tool_name)
            case McpToolResultEvent() | McpToolErrorEvent():
                self._check_mcp_end(event, report)
            case ShellStartEvent() | ShellStdoutDeltaEvent() | ShellStderrDeltaEvent() | ShellExitEvent():
                self._check_shell(event, report)
            case FileReadEvent() | FileWriteEvent() | FileCreateEvent() | FileDeleteEvent() | FilePatchEvent():
                if not self._has_ready_call:
                    report("25.3.3", "no tool call of this turn has become ready")

    def open_items(self) -> OpenItems:
        """Yield the items that are open."""
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

    def _check_input(self, event: ToolInputDeltaEvent, *, compact: bool, report: Report) -> None:
        call = self._native.get(event.tool_call_id)
        if call is None:
            report("9.7", f"input for tool call {event.tool_call_id!r}, which is not open")
            return
        if call.is_ready:
            report("9.7", f"input for tool call {event.tool_call_id!r} after tool_call_ready")
        if not call.input.add(event.delta, None if compact else event.input_accumulated_view):
            report("9.3", "inputAccumulated differs from the concatenated input")

    def _check_ready(self, event: ToolCallReadyEvent, report: Report) -> None:
        self._has_ready_call = True
        call = self._native.get(event.tool_call_id)
        if call is None:
            report("9.7", f"tool_call_ready for tool call {event.tool_call_id!r}, which is not open")
            return
        if call.is_ready:
            report("9.7", f"a second tool_call_ready for tool call {event.tool_call_id!r}")
        call.is_ready = True
        self._check_name(call, event, report)

    def _check_end(self, event: ToolResultEvent | ToolErrorEvent, report: Report) -> None:
        call = self._native.pop(event.tool_call_id, None)
        if call is None:
            report("9.7", f"tool call {event.tool_call_id!r} ends, but is not open")
            return
        if not call.is_ready:
            report("9.7", f"tool call {event.tool_call_id!r} ends without tool_call_ready")
        self._check_name(call, event, report)
        if self._commands > self._ready_calls():
            report("25.3.4", f"tool call {event.tool_call_id!r} ends before its command")

    def _check_name(
        self, call: _OpenCall, event: ToolCallReadyEvent | ToolResultEvent | ToolErrorEvent, report: Report
    ) -> None:
        if event.tool_name != call.name:
            report("9.1", f"tool call {event.tool_call_id!r} started as {call.name!r}, not {event.tool_name!r}")

    def _check_mcp_end(self, event: McpToolResultEvent | McpToolErrorEvent, report: Report) -> None:
        started = self._mcp.pop(event.tool_call_id, None)
        if started is None:
            report("12.2", f"MCP call {event.tool_call_id!r} ends, but is not open")
        elif started != (event.server, event.tool_name):
            report("12.1", f"MCP call {event.tool_call_id!r} started as {'/'.join(started)}")

    def _ready_calls(self) -> int:
        return sum(call.is_ready for call in self._native.values())

    def _check_shell(self, event: BaseEvent, report: Report) -> None:
        if isinstance(event, ShellStartEvent):
            self._commands += 1
            if self._commands > self._ready_calls():
                report("25.3.4", "a command starts outside a ready tool call")
        elif not self._commands:
            report("11.5", "no command is running")
        elif isinstance(event, ShellExitEvent):
            self._commands -= 1


class ContentRules:
    """The rules for the content of a turn, or for the inside of a sub-agent."""

    def __init__(self, used_call_ids: set[str]) -> None:
        self.messages = MessageRules()
        self._tool_calls = ToolCallRules(used_call_ids)

    def check(self, event: BaseEvent, *, compact: bool, report: Report) -> None:
        """Check an event of the content; ignore other events."""
        category = category_of(event.type)
        if category in ("text", "thinking"):
            self.messages.check(event, compact=compact, report=report)
        elif category in ("tool", "mcp", "shell", "file"):
            self._tool_calls.check(event, compact=compact, report=report)

    def open_items(self) -> OpenItems:
        """Yield the items that are open."""
        yield from self.messages.open_items()
        yield from self._tool_calls.open_items()


class SubagentRules:
    """The rules for sub-agents: each is spawned once and ended once, with a conforming inside."""

    def __init__(self, used_call_ids: set[str]) -> None:
        self._used_call_ids = used_call_ids
        self._used: set[str] = set()
        self._open: dict[str, tuple[str, ContentRules]] = {}

    def check(self, event: BaseEvent, report: Report) -> None:
        """Check a sub-agent event of the main stream; ignore other events."""
        match event:
            case SubagentSpawnEvent():
                if event.subagent_id in self._used:
                    report("13.1", f"sub-agent id {event.subagent_id!r} was used before")
                self._used.add(event.subagent_id)
                self._open[event.subagent_id] = event.agent_name, ContentRules(self._used_call_ids)
            case SubagentResultEvent() | SubagentErrorEvent():
                self._check_end(event, report)

    def check_inside(self, event: BaseEvent, *, compact: bool, report: Report) -> None:
        """Check an event that occurred inside a sub-agent."""
        subagent = self._open.get(event.subagent_id or "")
        if subagent is None:
            report("13.2", f"an event inside sub-agent {event.subagent_id!r}, which is not open")
        else:
            subagent[1].check(event, compact=compact, report=report)

    def open_items(self) -> OpenItems:
        """Yield the items that are open."""
        for subagent_id, (_, inside) in self._open.items():
            yield "13.2", f"sub-agent {subagent_id!r}"
            yield from inside.open_items()

    def _check_end(self, event: SubagentResultEvent | SubagentErrorEvent, report: Report) -> None:
        subagent = self._open.pop(event.subagent_id, None)
        if subagent is None:
            report("13.2", f"sub-agent {event.subagent_id!r} ends, but is not open")
            return
        name, inside = subagent
        if event.agent_name != name:
            report("13.1", f"sub-agent {event.subagent_id!r} was spawned as {name!r}, not {event.agent_name!r}")
        report_open_items(inside.open_items(), f"when sub-agent {event.subagent_id!r} ends", report)
