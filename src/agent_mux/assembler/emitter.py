"""Where events come out: run id, agent, time and scope are put on them here."""

from hashlib import blake2b
from typing import Any

from msgspec.structs import replace
from ulid import ULID

from agent_mux.events import AgentEvent
from agent_mux.events.base import BaseEvent


class Emitter:
    """Collects the events of one run. Time is handed in and never goes back."""

    __slots__ = ("_ids", "agent", "now", "out", "raw", "run_id")

    def __init__(self, run_id: str, agent: str) -> None:
        self.run_id = run_id
        self.agent = agent
        self.now = 1
        self.raw: str | None = None
        """The native line that is being read, in debug mode."""
        self.out: list[AgentEvent] = []
        self._ids = 0

    def emit(self, kind: type[BaseEvent], *values: Any, subagent: str | None = None) -> None:
        """Make an event of its own fields, in order."""
        event: Any = kind(self.run_id, self.agent, self.now, *values)
        if subagent is not None or self.raw is not None:
            event = _labelled(event, subagent, self.raw)
        self.out.append(event)

    def new_id(self) -> str:
        """A ULID that depends on nothing but the run, the time and how many there were: deriving gives the same."""
        self._ids += 1
        seed = blake2b(f"{self.run_id}/{self._ids}".encode(), digest_size=10).digest()
        return str(ULID.from_bytes(self.now.to_bytes(6, "big") + seed))


def _labelled(event: BaseEvent, subagent: str | None, raw: str | None) -> BaseEvent:
    labels = {"raw": raw} if raw is not None else {}
    return replace(event, **labels, **({"subagent_id": subagent} if subagent is not None else {}))
