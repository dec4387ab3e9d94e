"""Tool calls of a run as facts of the event contract: input, output, result and effects on files.

Models reuse call ids, in later turns and after an abandoned response. In an event stream each call has a unique id, so
a reused id gets a numbered suffix.
"""

from collections.abc import Iterator

from agent_loop.events import ToolCalled, ToolCallEnd, ToolInputDelta, ToolResulted, ToolUpdate
from agent_loop.messages import Image, Text, ToolMessage
from agent_loop.tools import effects
from agent_mux.sdk import facts

ABANDONED = "abandoned: the response of the model ended before the call was complete"
NOT_EXECUTED = "the call was not executed"
NO_RESULT = "the call ended without a result"


class ToolCallFacts:
    """Converts the tool-call events of one conversation to facts."""

    def __init__(self, delegating: frozenset[str] = frozenset()) -> None:
        """Create a converter; calls of the tools in `delegating` are the events of their sub-agents instead."""
        self._delegating = delegating
        self._delegations: dict[str, ToolCalled] = {}
        """The open calls of these tools that have not started a sub-agent, by native id."""
        self._used_ids: set[str] = set()
        self._ids: dict[str, str] = {}
        """The id in the stream by native id, for open calls."""
        self._streaming: dict[str, str] = {}
        """The tool name by native id, for calls with incomplete input."""
        self._executed: set[str] = set()
        """The native ids of executed calls. If the model uses such an id again, the loop gives the call a new one."""
        self._commands: set[str] = set()
        """The native ids of open calls that run a command."""
        self._mcp: set[str] = set()
        """The native ids of open calls of MCP tools."""

    def id_of(self, native_id: str) -> str:
        """Return the id of a call in the stream."""
        known = self._ids.get(native_id)
        if known is not None:
            return known
        name, number = native_id, 2
        while name in self._used_ids or not name:
            name, number = f"{native_id or 'call'}~{number}", number + 1
        self._used_ids.add(name)
        self._ids[native_id] = name
        return name

    def add_input(self, event: ToolInputDelta) -> Iterator[facts.Fact]:
        """Yield the facts of a fragment of the arguments; none for delegations and MCP tools, which begin complete."""
        if event.name in self._delegating or event.mcp is not None:
            return
        if event.call_id not in self._ids:
            self._streaming[event.call_id] = event.name
            yield facts.ToolBegin(self.id_of(event.call_id), event.name)
        yield facts.ToolInput(self.id_of(event.call_id), event.delta)

    def add_arguments(self, event: ToolCalled) -> Iterator[facts.Fact]:
        """Yield the fact that the arguments are complete."""
        call = event.call
        if call.name in self._delegating:
            self._delegations[call.id] = event
            return
        yield from self._ready(event)

    def begin_delegation(self, call_id: str) -> None:
        """Replace a call by the sub-agent that it starts."""
        self._delegations.pop(call_id, None)

    def _ready(self, event: ToolCalled) -> Iterator[facts.Fact]:
        call = event.call
        if call.id not in self._ids:
            self._adopt(call.id, call.name)
        self._streaming.pop(call.id, None)
        self._executed.add(call.id)
        if event.mcp is not None:
            self._mcp.add(call.id)
            yield facts.McpBegin(self.id_of(call.id), event.mcp.server, event.mcp.tool, call.arguments)
            return
        shell = None
        if event.shell_command is not None:
            shell = facts.ShellInvocation(event.shell_command)
            self._commands.add(call.id)
        yield facts.ToolReady(self.id_of(call.id), call.name, call.arguments, shell)

    def add_output(self, event: ToolUpdate) -> Iterator[facts.Fact]:
        """Yield the output of a command. Partial results of other tools are ignored; their result repeats them."""
        if event.call_id in self._commands:
            yield facts.ToolOutput(self.id_of(event.call_id), event.text, event.stream)

    def add_result(self, event: ToolResulted) -> Iterator[facts.Fact]:
        """Yield the fact that a call ended with a result."""
        message = event.message
        if message.name in self._delegating:
            refused = self._delegations.pop(message.tool_call_id, None)
            if refused is None:
                return
            yield from self._ready(refused)
        self._streaming.pop(message.tool_call_id, None)
        ran = next((effect for effect in event.effects if isinstance(effect, effects.CommandRan)), None)
        text = text_of(message)
        # A failed command is a normal result for the model, and an error for consumers of events.
        has_failed = message.is_error or (ran is not None and ran.exit_code != 0)
        if message.tool_call_id in self._mcp:
            error = (text or "the tool failed") if has_failed else None
            yield facts.McpDone(self.id_of(message.tool_call_id), None if has_failed else text, error)
            self._close(message.tool_call_id)
            return
        yield facts.ToolDone(
            self.id_of(message.tool_call_id),
            output=None if has_failed else text,
            error=(text or "the tool failed") if has_failed else None,
            duration_ms=event.duration_ms,
            stdout=ran.stdout if ran is not None else None,
            stderr=ran.stderr if ran is not None else None,
            exit_code=ran.exit_code if ran is not None else None,
            files=tuple(file for effect in event.effects if (file := _file_effect(effect)) is not None),
            name=message.name,
        )
        self._close(message.tool_call_id)

    def end(self, event: ToolCallEnd) -> Iterator[facts.Fact]:
        """Yield the fact that a call ended, if it had no result."""
        if event.call_id in self._ids:
            error = NO_RESULT if event.status == "error" else None
            yield facts.ToolDone(self.id_of(event.call_id), error=error, name=event.name)
            self._close(event.call_id)

    def abandon(self, reason: str) -> Iterator[facts.Fact]:
        """Yield the end of each call with incomplete arguments, with `reason` as its error."""
        for native_id, name in list(self._streaming.items()):
            yield facts.ToolDone(self.id_of(native_id), error=reason, name=name)
            self._close(native_id)

    def clear(self) -> None:
        """Forget the open calls at the end of a turn; the assembler closes their events."""
        self._ids.clear()
        self._streaming.clear()
        self._commands.clear()
        self._delegations.clear()
        self._mcp.clear()

    def _adopt(self, native_id: str, name: str) -> None:
        """Continue a streamed call under its new id: the loop replaces ids that the model reused."""
        started = [each for each, its_name in self._streaming.items() if its_name == name]
        if started:
            first = min(started, key=lambda each: each not in self._executed)
            del self._streaming[first]
            self._ids[native_id] = self._ids.pop(first)

    def _close(self, native_id: str) -> None:
        self._ids.pop(native_id, None)
        self._streaming.pop(native_id, None)
        self._commands.discard(native_id)
        self._mcp.discard(native_id)


def text_of(message: ToolMessage) -> str:
    """Return the content of a tool result as text, with a placeholder for each image."""
    return "\n".join(
        block.text if isinstance(block, Text) else f"[image: {block.mime_type}]"
        for block in message.content
        if isinstance(block, Text | Image)
    )


def _file_effect(effect: effects.ToolEffect) -> facts.FileEffect | None:
    match effect:
        case effects.FileRead(path):
            return facts.FileRead(path)
        case effects.FileWritten(path, byte_count, created):
            return facts.FileWritten(path, byte_count, created)
        case effects.FilePatched(path, diff):
            return facts.FilePatched(path, diff)
        case effects.FileDeleted(path):
            return facts.FileDeleted(path)
        case effects.CommandRan():
            return None
