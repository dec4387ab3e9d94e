"""Tool events of one agent: native calls with their commands and files, and MCP calls.

Each call is started, made ready and ended exactly once. Shell events are emitted inside their call, file events after
it. See docs/spec/events.md, sections 9 to 12 and 25.3.
"""

from collections.abc import Callable
from typing import Any

import msgspec

from agent_mux.assembler.costs import non_negative
from agent_mux.assembler.emitter import Emitter, StreamContext
from agent_mux.assembler.masks import MaskedText, Masks
from agent_mux.assembler.text_limit import LimitedText
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
from agent_mux.sdk.streamed_text import missing_text

NEVER_EXITED = -1
UNFINISHED = "no result: the agent ended, or moved on, before this call did"


class _NativeCall:
    """An open call of a native tool."""

    __slots__ = (
        "input",
        "is_ready",
        "masked",
        "masked_output",
        "name",
        "parsed",
        "ready_at",
        "shell",
        "shell_started_at",
        "streamed",
    )

    def __init__(self, name: str, text: LimitedText, masks: Masks) -> None:
        self.name = name
        self.input = text
        self.masked = MaskedText(masks)
        """The fragments of the input."""
        self.masked_output = {"stdout": MaskedText(masks), "stderr": MaskedText(masks)}
        """The fragments of the output, by stream."""
        self.parsed: Any = None
        """The complete input."""
        self.is_ready = False
        self.ready_at = 0
        self.shell: facts.ShellInvocation | None = None
        self.shell_started_at: int | None = None
        self.streamed: dict[str, LimitedText] = {}
        """The output that was emitted, by stream."""


class ToolCallAssembler:
    """Emits the tool, shell, file and MCP events of the main agent, or of one sub-agent."""

    def __init__(
        self, emitter: Emitter, context: StreamContext, masks: Masks, used_ids: set[str], subagent: str | None = None
    ) -> None:
        """Share `used_ids` between all agents of the run: a call id is used once in a run."""
        self._emitter = emitter
        self._masks = masks
        self._cwd = context.cwd
        self._buffered = context.buffered
        self._permission_pending = context.permission_pending
        self._subagent = subagent
        self._native: dict[str, _NativeCall] = {}
        self._mcp: dict[str, facts.McpBegin] = {}
        self._used = used_ids
        self._has_ready_call = False
        """Whether a call became ready in this turn."""
        self.commands = CommandAssembler(self._emit, lambda: emitter.now, self._command_capacity, masks)
        """The commands that the agent reports apart from their calls."""

    def is_new(self, call_id: str) -> bool:
        """Return whether no call of the run has had this id."""
        return call_id not in self._used

    def is_open(self, call_id: str) -> bool:
        """Return whether a call with this id has started and not ended."""
        return call_id in self._native or call_id in self._mcp

    def input_of(self, call_id: str) -> Any:
        """Return the complete input of an open call; None if there is none."""
        if call_id in self._mcp:
            return self._mcp[call_id].input
        return self._native[call_id].parsed if call_id in self._native else None

    # -- native calls

    def begin(self, call_id: str, name: str) -> None:
        """Start a call whose input follows in fragments."""
        if self.is_new(call_id):
            self._open(call_id, name)
            if not self._buffered:
                self._emit(ToolCallStartEvent, call_id, name, "")

    def add_input(self, call_id: str, delta: str) -> None:
        """Add a fragment of the input."""
        call = self._native.get(call_id)
        if call is None or call.is_ready or not delta:
            return
        self._append_input(call_id, call, call.masked.add(delta))

    def _append_input(self, call_id: str, call: _NativeCall, delta: str) -> None:
        delta = call.input.fit(delta)
        if delta:
            view = call.input.append(delta)
            if not self._buffered:
                self._emitter.emit(ToolInputDeltaEvent, call_id, delta, view, subagent=self._subagent)

    def flush(self) -> None:
        """Emit what is held back of inputs and of the output of commands."""
        for call_id, call in self._native.items():
            self._append_input(call_id, call, call.masked.flush())
            self._flush_output(call)
        self.commands.flush()

    def make_ready(self, fact: facts.ToolReady) -> None:
        """Complete the input; start the call first if it is new."""
        call = self._native.get(fact.call_id)
        if call is None:
            if not self.is_new(fact.call_id):
                return
            call = self._open(fact.call_id, fact.name)
            self._emit(ToolCallStartEvent, fact.call_id, fact.name, _as_text(fact.input))
        elif call.is_ready:
            return
        else:
            self._append_input(fact.call_id, call, call.masked.flush())
            if self._buffered:
                self._emit(ToolCallStartEvent, fact.call_id, call.name, str(call.input) or _as_text(fact.input))
        self._mark_ready(fact.call_id, call, fact.input)
        call.shell = fact.shell
        if fact.permitted or not self._permission_pending:
            self._start_shell(call)

    def expect_approvals(self) -> None:
        """Start the commands of calls that are ready only with evidence, because they may be denied."""
        self._permission_pending = True

    def permit(self, call_id: str) -> None:
        """Start the command of a call that was approved."""
        call = self._native.get(call_id)
        if call is not None:
            self._start_shell(call)

    def add_output(self, fact: facts.ToolOutput) -> None:
        """Add a chunk of a running command's output."""
        call = self._native.get(fact.call_id)
        if call is None or call.shell is None or not fact.text:
            return
        self._start_shell(call)
        self._emit_output(call, fact.stream, call.masked_output[fact.stream].add(fact.text))

    def end(self, fact: facts.ToolDone) -> None:
        """End a call. A result without a call opens and ends one."""
        call = self._native.pop(fact.call_id, None)
        if call is None:
            if not self.is_new(fact.call_id):
                return
            name = fact.name or "unknown"
            self.make_ready(facts.ToolReady(fact.call_id, name, None))
            call = self._native.pop(fact.call_id)
        self._ensure_ready(fact.call_id, call)
        self._end_shell(call, fact)
        self.commands.end_excess(self._command_capacity())
        if fact.error is None:
            duration = self._duration(fact, call.ready_at)
            self._emit(ToolResultEvent, fact.call_id, call.name, fact.output, duration)
        else:
            self._emit(ToolErrorEvent, fact.call_id, call.name, fact.error)
        for effect in fact.files:
            self._emit_file(effect)

    def touch_file(self, effect: facts.FileEffect) -> None:
        """Emit a file effect that names no call. It is dropped while no call of the turn has been ready."""
        if self._has_ready_call:
            self._emit_file(effect)

    # -- MCP calls

    def begin_mcp(self, fact: facts.McpBegin) -> None:
        """Start a call of an MCP tool."""
        if self.is_new(fact.call_id):
            self._used.add(fact.call_id)
            self._mcp[fact.call_id] = fact
            self._emit(McpToolCallStartEvent, fact.call_id, fact.server, fact.tool, fact.input)

    def end_mcp(self, fact: facts.McpDone) -> None:
        """End a call of an MCP tool; ignore an id that is not open."""
        call = self._mcp.pop(fact.call_id, None)
        if call is None:
            return
        if fact.error is None:
            self._emit(McpToolResultEvent, fact.call_id, call.server, call.tool, fact.output)
        else:
            self._emit(McpToolErrorEvent, fact.call_id, call.server, call.tool, fact.error)

    # -- closing

    def abandon_inputs(self, reason: str) -> None:
        """End the calls whose input is incomplete."""
        for call_id in [call_id for call_id, call in self._native.items() if not call.is_ready]:
            self.end(facts.ToolDone(call_id, error=reason))

    def close(self, reason: str = UNFINISHED) -> None:
        """End every open call with an error."""
        for call_id in list(self._native):
            self.end(facts.ToolDone(call_id, error=reason))
        for call_id in list(self._mcp):
            self.end_mcp(facts.McpDone(call_id, error=reason))
        self._has_ready_call = False

    # -- internals

    def _emit(self, kind: Any, *values: Any) -> None:
        self._emitter.emit(kind, *values, subagent=self._subagent)

    def _command_capacity(self) -> int:
        return sum(call.is_ready and call.shell_started_at is None for call in self._native.values())

    def _open(self, call_id: str, name: str) -> _NativeCall:
        self._used.add(call_id)
        call = self._native[call_id] = _NativeCall(name, self._emitter.new_text(), self._masks)
        return call

    def _mark_ready(self, call_id: str, call: _NativeCall, value: Any) -> None:
        call.is_ready = self._has_ready_call = True
        call.ready_at = self._emitter.now
        call.parsed = value
        left_out = call.input.left_out or None if isinstance(value, str) else None
        self._emit(ToolCallReadyEvent, call_id, call.name, value, left_out)

    def _ensure_ready(self, call_id: str, call: _NativeCall) -> None:
        if call.is_ready:
            return
        self._append_input(call_id, call, call.masked.flush())
        text = str(call.input)
        if self._buffered:
            self._emit(ToolCallStartEvent, call_id, call.name, text)
        # The contract requires a ready event before every end; an incomplete input is shown as its text.
        self._mark_ready(call_id, call, text)

    def _start_shell(self, call: _NativeCall) -> None:
        if call.shell is not None and call.shell_started_at is None:
            call.shell_started_at = self._emitter.now
            self.commands.end_excess(self._command_capacity())
            cwd = call.shell.cwd if call.shell.cwd is not None else self._cwd
            self._emit(ShellStartEvent, call.shell.command, cwd)

    def _end_shell(self, call: _NativeCall, fact: facts.ToolDone) -> None:
        if call.shell is None:
            return
        since = call.shell_started_at
        if since is None:
            if fact.error is not None and fact.exit_code is None and not fact.stdout and not fact.stderr:
                return  # the command never ran
            # The result is the first evidence that the command ran. It may have started when the call became ready.
            self._start_shell(call)
            since = call.ready_at
        self._flush_output(call)
        self._emit_rest(call, "stdout", fact.stdout)
        self._emit_rest(call, "stderr", fact.stderr)
        unreported = 0 if fact.error is None else NEVER_EXITED
        exit_code = unreported if fact.exit_code is None else fact.exit_code
        left_out = sum(text.left_out for text in call.streamed.values()) or None
        self._emit(ShellExitEvent, exit_code, self._duration(fact, since), left_out)

    def _flush_output(self, call: _NativeCall) -> None:
        for stream, masked in call.masked_output.items():
            self._emit_output(call, stream, masked.flush())

    def _emit_output(self, call: _NativeCall, stream: str, text: str) -> None:
        if not text:
            return
        streamed = call.streamed.get(stream)
        if streamed is None:
            streamed = call.streamed[stream] = self._emitter.new_text()
        text = streamed.fit(text)
        streamed.append(text)
        if text:
            self._emit(ShellStderrDeltaEvent if stream == "stderr" else ShellStdoutDeltaEvent, text)

    def _emit_rest(self, call: _NativeCall, stream: str, whole: str | None) -> None:
        before = call.streamed.get(stream)
        if not whole or (before is not None and before.left_out):
            return  # it was cut already
        missing = missing_text(whole, "" if before is None else str(before))
        if missing:
            self._emit_output(call, stream, missing)

    def _duration(self, fact: facts.ToolDone, since: int) -> int:
        reported = fact.duration_ms
        return reported if reported is not None and reported >= 0 else self._emitter.now - since

    def _emit_file(self, effect: facts.FileEffect) -> None:
        match effect:
            case facts.FileRead(path):
                self._emit(FileReadEvent, path)
            case facts.FileWritten(path, byte_count, created):
                self._emit(FileCreateEvent if created else FileWriteEvent, path, non_negative(byte_count))
            case facts.FilePatched(path, diff):
                self._emit(FilePatchEvent, path, diff)
            case facts.FileDeleted(path):
                self._emit(FileDeleteEvent, path)


class CommandAssembler:
    """Emits the shell events of commands that the agent reports without naming their tool call.

    Shell events must be nested in tool calls that are ready, so no more commands run than such calls are open.
    """

    def __init__(
        self, emit: Callable[..., None], now: Callable[[], int], capacity: Callable[[], int], masks: Masks
    ) -> None:
        """`capacity` returns how many commands may run: the number of ready calls without a command of their own."""
        self._emit = emit
        self._now = now
        self._capacity = capacity
        self._started_at: list[int] = []
        self._masks = masks
        self._output: dict[str, MaskedText] = {}
        """The output of the running commands, by stream."""

    def begin(self, fact: facts.CommandBegan) -> None:
        """Start a command, unless the capacity is reached."""
        if len(self._started_at) < self._capacity():
            if not self._started_at:
                self._output = {"stdout": MaskedText(self._masks), "stderr": MaskedText(self._masks)}
            self._started_at.append(self._now())
            self._emit(ShellStartEvent, fact.command, fact.cwd)

    def add_output(self, fact: facts.CommandOutput) -> None:
        """Add output of one of the running commands."""
        if self._started_at and fact.text:
            self._emit_output(fact.stream, self._output[fact.stream].add(fact.text))

    def flush(self) -> None:
        """Emit the output that is held back."""
        for stream, masked in self._output.items():
            self._emit_output(stream, masked.flush())

    def _emit_output(self, stream: str, text: str) -> None:
        if text:
            kind: Any = ShellStderrDeltaEvent if stream == "stderr" else ShellStdoutDeltaEvent
            self._emit(kind, text)

    def end(self, fact: facts.CommandEnded) -> None:
        """End one command. Commands have no ids, so the oldest one is assumed."""
        if self._started_at:
            self.flush()
            since = self._started_at.pop(0)
            reported = fact.duration_ms
            duration = reported if reported is not None and reported >= 0 else self._now() - since
            self._emit(ShellExitEvent, fact.exit_code, duration)

    def end_excess(self, capacity: int) -> None:
        """End commands until no more than `capacity` are running."""
        while len(self._started_at) > max(capacity, 0):
            self.end(facts.CommandEnded(NEVER_EXITED))


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
