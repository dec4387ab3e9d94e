"""Events inside a turn or a sub-agent to facts: messages, thoughts, tool calls, commands and files."""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from agent_mux.events import AgentEvent
from agent_mux.events.content import (
    MessageStartEvent,
    MessageStopEvent,
    TextDeltaEvent,
    ThinkingDeltaEvent,
    ThinkingStartEvent,
    ThinkingStopEvent,
)
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
    ToolCallReadyEvent,
    ToolCallStartEvent,
    ToolErrorEvent,
    ToolInputDeltaEvent,
    ToolResultEvent,
)
from agent_mux.sdk import facts

Facts = tuple[facts.Fact, ...]


class EventContent:
    """Reads the content of the main agent or of one sub-agent."""

    def __init__(self) -> None:
        self._has_fragments = False
        """Whether the open message or thought had fragments."""
        self._effort: str | None = None
        self.held: ToolCallStartEvent | None = None
        """A tool call whose start has the whole input; the next event shows whether more input follows."""
        self.handlers: Mapping[type, Callable[[Any], Facts]] = {
            MessageStartEvent: self._begin,
            TextDeltaEvent: lambda event: self.message_fragment(event.delta),
            MessageStopEvent: self._message_stop,
            ThinkingStartEvent: self._begin,
            ThinkingDeltaEvent: lambda event: self.thought_fragment(event.delta),
            ThinkingStopEvent: self._thinking_stop,
            ToolCallStartEvent: self._call_start,
            ToolInputDeltaEvent: lambda event: (facts.ToolInput(event.tool_call_id, event.delta),),
            ToolCallReadyEvent: _ready,
            ToolResultEvent: _result,
            ToolErrorEvent: _failed,
            **_PLAIN,
        }

    def message_fragment(self, delta: str) -> Facts:
        """Return the fact of a message fragment."""
        self._has_fragments = self._has_fragments or bool(delta)
        return (facts.TextDelta(delta),)

    def thought_fragment(self, delta: str) -> Facts:
        """Return the fact of a thought fragment."""
        self._has_fragments = self._has_fragments or bool(delta)
        return (facts.ThinkingDelta(delta, self._effort),)

    def release(self, following: AgentEvent | None) -> Facts:
        """Return the facts of the held tool call, now that the next event is known."""
        held, self.held = self.held, None
        if held is None or (_is_ready_of(following, held) and _is_written_as(following, held.input_accumulated)):
            return ()
        call_id = held.tool_call_id
        return facts.ToolBegin(call_id, held.tool_name), facts.ToolInput(call_id, held.input_accumulated)

    def _begin(self, event: Any) -> Facts:
        self._has_fragments = False
        self._effort = getattr(event, "effort", None)
        return ()

    def _message_stop(self, event: MessageStopEvent) -> Facts:
        had_fragments, self._has_fragments = self._has_fragments, False
        if event.abandoned:
            return () if had_fragments else (facts.TextDelta(event.text),)  # the retry that follows abandons it
        return (facts.TextEnd(),) if had_fragments or not event.text else (facts.WholeText(event.text),)

    def _thinking_stop(self, event: ThinkingStopEvent) -> Facts:
        had_fragments, self._has_fragments = self._has_fragments, False
        return (
            (facts.ThinkingEnd(),)
            if had_fragments or not event.thinking
            else (facts.WholeThinking(event.thinking, self._effort),)
        )

    def _call_start(self, event: ToolCallStartEvent) -> Facts:
        if event.input_accumulated:
            self.held = event
            return ()
        return (facts.ToolBegin(event.tool_call_id, event.tool_name),)


def _is_ready_of(event: AgentEvent | None, started: ToolCallStartEvent) -> bool:
    return isinstance(event, ToolCallReadyEvent) and event.tool_call_id == started.tool_call_id


def _is_written_as(event: Any, written: str) -> bool:
    if isinstance(event.input, str):
        return bool(event.input == written)
    try:
        return msgspec.json.encode(event.input).decode() == written
    except (ValueError, OverflowError, RecursionError):
        return False


def _ready(event: ToolCallReadyEvent) -> Facts:
    return (facts.ToolReady(event.tool_call_id, event.tool_name, event.input),)


def _result(event: ToolResultEvent) -> Facts:
    duration, name = event.duration_ms, event.tool_name
    return (facts.ToolDone(event.tool_call_id, event.output, duration_ms=duration, name=name),)


def _failed(event: ToolErrorEvent) -> Facts:
    return (facts.ToolDone(event.tool_call_id, error=event.error, name=event.tool_name),)


def _written(event: FileWriteEvent | FileCreateEvent) -> Facts:
    created = isinstance(event, FileCreateEvent)
    return (facts.FileTouched(facts.FileWritten(event.path, event.byte_count, created)),)


_PLAIN: Mapping[type, Callable[[Any], Facts]] = {
    McpToolCallStartEvent: lambda event: (
        facts.McpBegin(event.tool_call_id, event.server, event.tool_name, event.input),
    ),
    McpToolResultEvent: lambda event: (facts.McpDone(event.tool_call_id, event.output),),
    McpToolErrorEvent: lambda event: (facts.McpDone(event.tool_call_id, error=event.error),),
    ShellStartEvent: lambda event: (facts.CommandBegan(event.command, event.cwd),),
    ShellStdoutDeltaEvent: lambda event: (facts.CommandOutput(event.delta),),
    ShellStderrDeltaEvent: lambda event: (facts.CommandOutput(event.delta, "stderr"),),
    ShellExitEvent: lambda event: (facts.CommandEnded(event.exit_code, event.duration_ms),),
    FileReadEvent: lambda event: (facts.FileTouched(facts.FileRead(event.path)),),
    FileWriteEvent: _written,
    FileCreateEvent: _written,
    FilePatchEvent: lambda event: (facts.FileTouched(facts.FilePatched(event.path, event.diff)),),
    FileDeleteEvent: lambda event: (facts.FileTouched(facts.FileDeleted(event.path)),),
}
