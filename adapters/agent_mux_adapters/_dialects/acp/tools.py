"""The tool calls of a session: the facts of each update about a call."""

from collections.abc import Mapping
from typing import Any

from agent_mux.sdk.facts import (
    Fact,
    Ignored,
    McpBegin,
    McpDone,
    SubagentBegin,
    SubagentDone,
    ToolDone,
    ToolOutput,
    ToolReady,
)
from agent_mux.sdk.streamed_text import missing_text
from agent_mux_adapters._dialects.acp.tool_reader import AcpCall, ToolReader
from agent_mux_adapters._dialects.tolerant import mapping, text


class AcpTools:
    """The open calls of one session, and the ids of those that ended."""

    def __init__(self, reader: ToolReader, cwd: str) -> None:
        self._reader = reader
        self._cwd = cwd
        self._open: dict[str, AcpCall] = {}
        self._over: set[str] = set()
        self._plans = 0
        self.servers: set[str] = set()
        """The names of the session's MCP servers."""
        self.step_is_over = True
        """Whether the calls of the last model call have ended, so that the next output belongs to another one."""

    def inner(self) -> "AcpTools":
        """Return a tracker for the calls of a sub-agent."""
        inner = AcpTools(self._reader, self._cwd)
        inner.servers = self.servers
        return inner

    @property
    def open(self) -> list[AcpCall]:
        """The open calls in the order of their announcement."""
        return list(self._open.values())

    @property
    def is_idle(self) -> bool:
        """Whether no call is open."""
        return not self._open

    def call(self, call_id: str) -> AcpCall | None:
        """Return an open call; None when the id is unknown or the call ended."""
        return self._open.get(call_id)

    def announced(self, update: Mapping[str, Any]) -> tuple[Fact, ...]:
        """Read a `tool_call` update, which announces a call; return nothing for a call that ended."""
        call_id = text(update.get("toolCallId"))
        if call_id in self._over:
            return ()
        call = self._open.setdefault(call_id, AcpCall(call_id))
        call.apply(update)
        if not call.is_announced:
            call.is_announced, call.announced = True, call.content
        return self._report(call)

    def updated(self, update: Mapping[str, Any]) -> tuple[Fact, ...]:
        """Read a `tool_call_update`; return nothing for a call that ended."""
        call_id = text(update.get("toolCallId"))
        if call_id in self._over:
            return ()
        call = self._open.setdefault(call_id, AcpCall(call_id))
        call.apply(update)
        return self._report(call)

    def permission_requested(self, tool_call: Any) -> tuple[tuple[Fact, ...], AcpCall]:
        """Read the `toolCall` of a permission request; return its facts and the call, which may be new."""
        shown = mapping(tool_call)
        asked = AcpCall(text(shown.get("toolCallId")))
        asked.apply_permission_request(shown)
        known = self._open.get(asked.id) or self._open.get(self._reader.call_for(asked, self.open) or "")
        if known is not None:
            known.apply_permission_request(shown)
            return self._ready(known), known
        if not asked.id or asked.id in self._over:
            return (), asked
        self.step_is_over = False
        self._open[asked.id] = asked
        return self._ready(asked), asked

    def end_silent(self, *, but: str = "") -> tuple[Fact, ...]:
        """End the calls whose end the agent does not report, because the agent continues without them.

        `but` is the id of the call that the current update is about.
        """
        emitted = [call for call in self._open.values() if call.is_emitted and call.id != but]
        silent = [call for call in emitted if call.denial is not None or self._reader.ends_silently(call)]
        return tuple(fact for call in silent for fact in self._end(call, error=call.denial))

    def turn_over(self) -> tuple[Fact, ...]:
        """End the turn's calls. The assembler closes those without a reported end."""
        facts = self.end_silent()
        self._over.update(self._open)
        self._open.clear()
        self.step_is_over = True
        return facts

    def planned(self, entries: Any) -> tuple[Fact, ...]:
        """Emit a rewritten plan as a tool call, because the agent shows it in this form only."""
        self._plans += 1
        call_id = f"plan:{self._plans}"
        return ToolReady(call_id, "plan", {"entries": entries}), ToolDone(call_id, name="plan")

    def continues_step(self, update: Mapping[str, Any]) -> bool:
        """Return whether this announcement or permission request belongs to the same model call."""
        call_id = text(update.get("toolCallId"))
        if not self.step_is_over or call_id in self._open or call_id in self._over:
            return True
        call = AcpCall(call_id)
        call.apply(update)
        return self._reader.continues_step(call)

    # -- inside

    def _report(self, call: AcpCall) -> tuple[Fact, ...]:
        self.step_is_over = False
        facts: tuple[Fact, ...] = ()
        if call.has_ended or self._reader.is_complete(call):
            facts = self._ready(call)
        if call.has_ended:
            return *facts, *self._end(call)
        return *facts, *self._output(call)

    def _ready(self, call: AcpCall) -> tuple[Fact, ...]:
        if call.is_emitted:
            return ()
        reader = self._reader
        call.name = reader.name(call)
        call.mcp = reader.mcp(call, self.servers)
        if call.mcp is not None:
            return (McpBegin(call.id, *call.mcp, reader.input(call)),)
        delegated = reader.subagent(call)
        if delegated is not None:
            call.is_subagent = True
            return (SubagentBegin(call.id, *delegated),)
        shell = reader.shell(call)
        call.is_shell = shell is not None
        return (ToolReady(call.id, call.name, reader.input(call), shell),)

    def _output(self, call: AcpCall) -> tuple[Fact, ...]:
        if not call.is_shell:
            return ()
        output = self._reader.output_so_far(call)
        new_output = missing_text(output, call.streamed)
        if not new_output:
            return ()
        call.streamed = output
        return (ToolOutput(call.id, new_output),)

    def _end(self, call: AcpCall, *, error: str | None = None) -> tuple[Fact, ...]:
        del self._open[call.id]
        self._over.add(call.id)
        self.step_is_over = not self._open
        reader = self._reader
        failed = error or reader.error(call)
        if call.mcp is not None:
            return (McpDone(call.id, None if failed else reader.result(call), failed),)
        if call.is_subagent:
            return (SubagentDone(call.id, "" if failed else reader.output(call), failed),)
        ran = call.is_shell and call.denial is None
        stdout, stderr = reader.streams(call) if ran else (None, None)
        return (
            ToolDone(
                call.id,
                None if failed else reader.result(call),
                failed,
                stdout=stdout,
                stderr=stderr,
                exit_code=reader.exit_code(call) if ran else None,
                files=() if failed else reader.files(call, self._cwd),
                name=call.name,
            ),
        )


def unchanged_call(kind: str) -> Ignored:
    """Return the fact for an update that adds nothing to its call."""
    return Ignored(kind, "adds nothing to its call")
