"""The tool calls of a session: what each update about one of them means."""

from collections.abc import Mapping
from typing import Any

from agent_mux.facts import (
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
from agent_mux_adapters._dialects.acp.tool_reader import AcpCall, ToolReader
from agent_mux_adapters._dialects.tolerant import mapping, text


class AcpTools:
    """The calls of one session that were told and are not over, and the names of those that are."""

    def __init__(self, reader: ToolReader, cwd: str) -> None:
        self._reader = reader
        self._cwd = cwd
        self._open: dict[str, AcpCall] = {}
        self._over: set[str] = set()
        self._plans = 0
        self.servers: set[str] = set()
        """The MCP servers of the session."""
        self.step_is_over = True
        """The calls of the last model call have ended, so what comes next is from another one."""

    def inner(self) -> "AcpTools":
        """For the calls of a sub-agent."""
        inner = AcpTools(self._reader, self._cwd)
        inner.servers = self.servers
        return inner

    @property
    def open(self) -> list[AcpCall]:
        """The calls that are not over, in the order of their announcement."""
        return list(self._open.values())

    @property
    def is_idle(self) -> bool:
        """No call is open."""
        return not self._open

    def call(self, call_id: str) -> AcpCall | None:
        """An open call."""
        return self._open.get(call_id)

    def announced(self, update: Mapping[str, Any]) -> tuple[Fact, ...]:
        """`tool_call`."""
        call_id = text(update.get("toolCallId"))
        if call_id in self._over:
            return ()
        call = self._open.setdefault(call_id, AcpCall(call_id))
        call.take(update)
        if not call.is_announced:
            call.is_announced, call.announced = True, call.content
        return self._tell(call)

    def updated(self, update: Mapping[str, Any]) -> tuple[Fact, ...]:
        """`tool_call_update`."""
        call_id = text(update.get("toolCallId"))
        if call_id in self._over:
            return ()
        call = self._open.setdefault(call_id, AcpCall(call_id))
        call.take(update)
        return self._tell(call)

    def asked(self, tool_call: Any) -> tuple[tuple[Fact, ...], AcpCall]:
        """The `toolCall` of a request for permission: the call it is about, which may not have been told before."""
        shown = mapping(tool_call)
        asked = AcpCall(text(shown.get("toolCallId")))
        asked.take_asked(shown)
        known = self._open.get(asked.id) or self._open.get(self._reader.call_for(asked, self.open) or "")
        if known is not None:
            known.take_asked(shown)
            return self._ready(known), known
        if not asked.id or asked.id in self._over:
            return (), asked
        self.step_is_over = False
        self._open[asked.id] = asked
        return self._ready(asked), asked

    def end_silent(self, *, but: str = "") -> tuple[Fact, ...]:
        """The agent goes on: the calls are over whose end it does not tell. `but`: the call it tells of now."""
        told = [call for call in self._open.values() if call.is_told and call.id != but]
        silent = [call for call in told if call.denial is not None or self._reader.ends_silently(call)]
        return tuple(fact for call in silent for fact in self._end(call, error=call.denial))

    def turn_over(self) -> tuple[Fact, ...]:
        """The turn is over, and its calls with it. Those that were not heard of again are closed by the assembler."""
        facts = self.end_silent()
        self._over.update(self._open)
        self._open.clear()
        self.step_is_over = True
        return facts

    def planned(self, entries: Any) -> tuple[Fact, ...]:
        """The plan was written anew: a tool call that is shown in this form only."""
        self._plans += 1
        call_id = f"plan:{self._plans}"
        return ToolReady(call_id, "plan", {"entries": entries}), ToolDone(call_id, name="plan")

    def continues_step(self, update: Mapping[str, Any]) -> bool:
        """This announcement, or request for permission, is no sign of another model call."""
        call_id = text(update.get("toolCallId"))
        if not self.step_is_over or call_id in self._open or call_id in self._over:
            return True
        call = AcpCall(call_id)
        call.take(update)
        return self._reader.continues_step(call)

    # -- inside

    def _tell(self, call: AcpCall) -> tuple[Fact, ...]:
        self.step_is_over = False
        facts: tuple[Fact, ...] = ()
        if call.has_ended or self._reader.is_complete(call):
            facts = self._ready(call)
        if call.has_ended:
            return *facts, *self._end(call)
        return *facts, *self._output(call)

    def _ready(self, call: AcpCall) -> tuple[Fact, ...]:
        if call.is_told:
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
        so_far = self._reader.output_so_far(call)
        if len(so_far) <= len(call.streamed) or not so_far.startswith(call.streamed):
            return ()
        news, call.streamed = so_far[len(call.streamed) :], so_far
        return (ToolOutput(call.id, news),)

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
    """An update about a call that says nothing to anybody."""
    return Ignored(kind, "nothing new about its call")
