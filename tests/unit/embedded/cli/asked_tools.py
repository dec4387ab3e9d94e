"""Tools of each kind, an event stream that collects its events, and a tool gate."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agent_loop.cli.stream import ApprovalMode, EmittedEvent, EventStream, stream_context
from agent_loop.hooks.contexts import ToolGate
from agent_loop.tools.tool import Risk, Tool, ToolContext, ToolKind
from agent_mux.events import AgentEvent
from agent_mux.sdk import facts

RUN_ID = "01ARZ3NDEKTSV4RRFFQ69G5FAV"


@dataclass(frozen=True)
class Plain:
    """A tool of some kind."""

    name: str
    kind: ToolKind
    risk: Risk = "medium"
    description: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)

    async def execute(self, arguments: dict[str, Any], context: ToolContext) -> str:
        return "done"


class Sandboxed(Plain):
    """A tool whose commands run in a sandbox that they can leave."""

    def leaves_sandbox(self, arguments: Mapping[str, Any]) -> bool:
        return bool(arguments.get("unsandboxed"))


SHELL = Plain("shell", "execute", "high")
READ = Plain("read_file", "read", "low")
WRITE = Plain("write_file", "edit")
TODOS = Plain("write_todos", "other", "low")
OTHER = Plain("anything", "other")
FETCH = Plain("fetch", "fetch")
ASK = Plain("ask_user", "ask", "low")


class Collected:
    """A stream, and what it gave."""

    def __init__(self, mode: ApprovalMode = "prompt") -> None:
        self.events: list[AgentEvent] = []
        self.extra: list[tuple[str, dict[str, Any]]] = []
        self._time = 1_763_762_400_000
        self.stream = EventStream(stream_context(RUN_ID, cwd="/work", approvals=mode), self._take, self._tick)
        self.stream.emit(facts.SessionKnown("s1"))

    def _take(self, emitted: Sequence[EmittedEvent]) -> None:
        for event, extra in emitted:
            self.events.append(event)
            self.extra += [(event.type, dict(extra))] if extra else []

    def _tick(self) -> int:
        self._time += 1
        return self._time

    def of(self, *kinds: str) -> list[Any]:
        return [event for event in self.events if event.type in kinds]


def gate_of(tool: Tool | None, call_id: str = "c1", **arguments: Any) -> ToolGate:
    return ToolGate(call_id=call_id, name=tool.name if tool else "nowhere", tool=tool, arguments=arguments)
