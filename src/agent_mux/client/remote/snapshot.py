"""How a run is, as the service tells it: a `RunView`, as far as a handle needs it."""

from typing import Any, Literal

import msgspec

from agent_mux.assembler import OpenInteraction
from agent_mux.run.base import TERMINAL_STATES, RunState
from agent_mux.sdk import facts


class PendingSnapshot(msgspec.Struct, rename="camel"):
    """Something that the agent waits for."""

    id: str
    type: Literal["approval", "input"]
    detail: dict[str, Any]
    created_at: int

    def opened(self) -> OpenInteraction:
        """As the agent's own side of it, by the id that the service knows it by."""
        told = self.detail
        asked: facts.ApprovalAsked | facts.InputAsked
        if self.type == "approval":
            asked = facts.ApprovalAsked(
                self.id,
                told.get("action", ""),
                told.get("detail", ""),
                told.get("riskLevel", "medium"),
                told.get("toolName"),
                command=told.get("command"),
                paths=tuple(told.get("paths", ())),
            )
        else:
            asked = facts.InputAsked(
                self.id,
                told.get("question", ""),
                told.get("context"),
                tuple(told.get("options", ())),
                told.get("source", "agent"),
            )
        return OpenInteraction(
            interaction_id=self.id, request_id=self.id, kind=self.type, asked=asked, created_at=self.created_at
        )


class Snapshot(msgspec.Struct, rename="camel"):
    """A run at one time."""

    run_id: str
    agent: str
    state: RunState
    revision: int = 0
    """Of what is said while it runs, the later has the larger one."""
    model: str | None = None
    session_id: str | None = None
    queue_position: int | None = None
    is_busy: bool = False
    pending: list[PendingSnapshot] = []
    event_count: int = 0
    journal: str | None = None

    @property
    def is_over(self) -> bool:
        """It reached a terminal state."""
        return self.state in TERMINAL_STATES

    def follows(self, other: "Snapshot") -> bool:
        """It was said later."""
        return not other.is_over and (self.is_over or self.revision > other.revision)


class Told(msgspec.Struct):
    """What a command is answered with."""

    run: Snapshot
    delivery: Literal["applied", "queued", "merged", "unneeded"] = "applied"
