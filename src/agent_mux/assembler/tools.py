"""Commands that the agent tells of apart from their tool calls: nested in the calls that are open. §11, §25.3.4.

Tool calls of one scope: start -> ready -> exactly one end, with the shell inside and the files after. §9-12.
"""

from collections.abc import Callable
from typing import Any

import msgspec

from agent_mux.assembler.emitter import Emitter, StreamContext, possible
from agent_mux.events.content import GrowingText
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

NEVER_EXITED = -1


class Commands:
    """The open commands of one scope that belong to no call in particular: never more than there is room for."""

    def __init__(self, emit: Callable[..., None], now: Callable[[], int], room: Callable[[], int]) -> None:
        """`room`: how many may run, which is how many calls are ready and have no command of their own."""
        self._emit = emit
        self._now = now
        self._room = room
        self._began: list[int] = []

    def begin(self, fact: facts.CommandBegan) -> None:
        """A command runs."""
        if len(self._began) < self._room():
            self._began.append(self._now())
            self._emit(ShellStartEvent, fact.command, fact.cwd)

    def show(self, fact: facts.CommandOutput) -> None:
        """Output of one of them."""
        if self._began and fact.text:
            kind: Any = ShellStderrDeltaEvent if fact.stream == "stderr" else ShellStdoutDeltaEvent
            self._emit(kind, fact.text)

    def end(self, fact: facts.CommandEnded) -> None:
        """One of them is over: the oldest, as far as anybody knows."""
        if self._began:
            since = self._began.pop(0)
            said = fact.duration_ms
            duration = said if said is not None and said >= 0 else self._now() - since
            self._emit(ShellExitEvent, fact.exit_code, duration)

    def make_room(self, left: int) -> None:
        """End those for which there is no room any more."""
        while len(self._began) > max(left, 0):
            self.end(facts.CommandEnded(NEVER_EXITED))


UNFINISHED = "no result: the agent ended, or moved on, before this call did"


class _Call:
    """An open call of a native tool."""

    __slots__ = ("input", "name", "ready", "ready_at", "shell", "shell_started_at", "streamed")

    def __init__(self, name: str) -> None:
        self.name = name
        self.input = GrowingText()
        self.ready = False
        self.ready_at = 0
        self.shell: facts.Shell | None = None
        self.shell_started_at: int | None = None
        self.streamed: dict[str, GrowingText] = {}


class Tools:
    """The open calls of one scope, native and MCP."""

    def __init__(
        self, emitter: Emitter, context: StreamContext, used_ids: set[str], subagent: str | None = None
    ) -> None:
        self._emitter = emitter
        self._cwd = context.cwd
        self._buffered = context.buffered
        self._permission_pending = context.permission_pending
        self._subagent = subagent
        self._calls: dict[str, _Call] = {}
        self._mcp: dict[str, facts.McpBegin] = {}
        self._used = used_ids
        """Of all scopes: a call id is used once in a run."""
        self._any_ready = False
        """A call was ready in this turn."""
        self.commands = Commands(self._emit, lambda: emitter.now, self._room)
        """Those that were told of apart from their calls."""

    def _emit(self, kind: Any, *values: Any) -> None:
        self._emitter.emit(kind, *values, subagent=self._subagent)

    def is_new(self, call_id: str) -> bool:
        """No call had this id yet."""
        return call_id not in self._used

    def is_open(self, call_id: str) -> bool:
        """A call with this id waits for its end."""
        return call_id in self._calls or call_id in self._mcp

    # -- native calls

    def begin(self, call_id: str, name: str) -> None:
        """The input begins to stream."""
        if self.is_new(call_id):
            self._open(call_id, name)
            if not self._buffered:
                self._emit(ToolCallStartEvent, call_id, name, "")

    def add_input(self, call_id: str, delta: str) -> None:
        """A fragment of the input."""
        call = self._calls.get(call_id)
        if call is None or call.ready or not delta:
            return
        view = call.input.append(delta)
        if not self._buffered:
            self._emitter.emit(ToolInputDeltaEvent, call_id, delta, view, subagent=self._subagent)

    def make_ready(self, fact: facts.ToolReady) -> None:
        """The input is complete."""
        call = self._calls.get(fact.call_id)
        if call is None:
            if not self.is_new(fact.call_id):
                return
            call = self._open(fact.call_id, fact.name)
            self._emit(ToolCallStartEvent, fact.call_id, fact.name, _as_text(fact.input))
        elif call.ready:
            return
        elif self._buffered:
            self._emit(ToolCallStartEvent, fact.call_id, call.name, str(call.input) or _as_text(fact.input))
        self._mark_ready(fact.call_id, call, fact.input)
        call.shell = fact.shell
        if fact.permitted or not self._permission_pending:
            self._start_shell(call)

    def permit(self, call_id: str) -> None:
        """The call was approved: its command runs."""
        call = self._calls.get(call_id)
        if call is not None:
            self._start_shell(call)

    def add_output(self, fact: facts.ToolOutput) -> None:
        """A chunk of a running command's output."""
        call = self._calls.get(fact.call_id)
        if call is None or call.shell is None or not fact.text:
            return
        self._start_shell(call)
        self._show_output(call, fact.stream, fact.text)

    def end(self, fact: facts.ToolDone) -> None:
        """The call ended."""
        call = self._calls.pop(fact.call_id, None)
        if call is None:
            if not self.is_new(fact.call_id):
                return
            name = fact.name or "unknown"
            self.make_ready(facts.ToolReady(fact.call_id, name, None))
            call = self._calls.pop(fact.call_id)
        self._ensure_ready(fact.call_id, call)
        self._end_shell(call, fact)
        self.commands.make_room(self._room())
        if fact.error is None:
            duration = self._duration(fact, call.ready_at)
            self._emit(ToolResultEvent, fact.call_id, call.name, fact.output, duration)
        else:
            self._emit(ToolErrorEvent, fact.call_id, call.name, fact.error)
        for effect in fact.files:
            self._show_file(effect)

    def touch(self, effect: facts.FileEffect) -> None:
        """A file was touched: nobody says by which call."""
        if self._any_ready:
            self._show_file(effect)

    # -- MCP calls

    def begin_mcp(self, fact: facts.McpBegin) -> None:
        """An MCP tool is called."""
        if self.is_new(fact.call_id):
            self._used.add(fact.call_id)
            self._mcp[fact.call_id] = fact
            self._emit(McpToolCallStartEvent, fact.call_id, fact.server, fact.tool, fact.input)

    def end_mcp(self, fact: facts.McpDone) -> None:
        """An MCP tool ended."""
        call = self._mcp.pop(fact.call_id, None)
        if call is None:
            return
        if fact.error is None:
            self._emit(McpToolResultEvent, fact.call_id, call.server, call.tool, fact.output)
        else:
            self._emit(McpToolErrorEvent, fact.call_id, call.server, call.tool, fact.error)

    # -- closing

    def abandon_inputs(self, why: str) -> None:
        """Close the calls whose input never became complete."""
        for call_id in [call_id for call_id, call in self._calls.items() if not call.ready]:
            self.end(facts.ToolDone(call_id, error=why))

    def close(self, why: str = UNFINISHED) -> None:
        """Close every open call."""
        for call_id in list(self._calls):
            self.end(facts.ToolDone(call_id, error=why))
        for call_id in list(self._mcp):
            self.end_mcp(facts.McpDone(call_id, error=why))
        self._any_ready = False

    # -- inside

    def _room(self) -> int:
        return sum(call.ready and call.shell_started_at is None for call in self._calls.values())

    def _open(self, call_id: str, name: str) -> _Call:
        self._used.add(call_id)
        call = self._calls[call_id] = _Call(name)
        return call

    def _mark_ready(self, call_id: str, call: _Call, value: Any) -> None:
        call.ready = self._any_ready = True
        call.ready_at = self._emitter.now
        self._emit(ToolCallReadyEvent, call_id, call.name, value)

    def _ensure_ready(self, call_id: str, call: _Call) -> None:
        if call.ready:
            return
        text = str(call.input)
        if self._buffered:
            self._emit(ToolCallStartEvent, call_id, call.name, text)
        # The contract promises a ready before every end; an input that never became complete is shown as its text.
        self._mark_ready(call_id, call, text)

    def _start_shell(self, call: _Call) -> None:
        if call.shell is not None and call.shell_started_at is None:
            call.shell_started_at = self._emitter.now
            self.commands.make_room(self._room())
            cwd = call.shell.cwd if call.shell.cwd is not None else self._cwd
            self._emit(ShellStartEvent, call.shell.command, cwd)

    def _show_output(self, call: _Call, stream: str, text: str) -> None:
        call.streamed.setdefault(stream, GrowingText()).append(text)
        kind = ShellStderrDeltaEvent if stream == "stderr" else ShellStdoutDeltaEvent
        self._emit(kind, text)

    def _duration(self, fact: facts.ToolDone, since: int) -> int:
        said = fact.duration_ms
        return said if said is not None and said >= 0 else self._emitter.now - since

    def _end_shell(self, call: _Call, fact: facts.ToolDone) -> None:
        if call.shell is None:
            return
        since = call.shell_started_at
        if since is None:
            if fact.error is not None and fact.exit_code is None and not fact.stdout and not fact.stderr:
                return  # it never ran
            self._start_shell(call)  # it did run, though nobody said so before: since it was ready, as far as we know
            since = call.ready_at
        self._show_rest(call, "stdout", fact.stdout)
        self._show_rest(call, "stderr", fact.stderr)
        unsaid = 0 if fact.error is None else NEVER_EXITED
        exit_code = unsaid if fact.exit_code is None else fact.exit_code
        self._emit(ShellExitEvent, exit_code, self._duration(fact, since))

    def _show_rest(self, call: _Call, stream: str, whole: str | None) -> None:
        streamed = str(call.streamed.get(stream, ""))
        if whole and whole.startswith(streamed) and len(whole) > len(streamed):
            self._show_output(call, stream, whole[len(streamed) :])

    def _show_file(self, effect: facts.FileEffect) -> None:
        match effect:
            case facts.FileRead(path):
                self._emit(FileReadEvent, path)
            case facts.FileWritten(path, byte_count, created):
                self._emit(FileCreateEvent if created else FileWriteEvent, path, possible(byte_count))
            case facts.FilePatched(path, diff):
                self._emit(FilePatchEvent, path, diff)
            case facts.FileDeleted(path):
                self._emit(FileDeleteEvent, path)


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
