"""The JSON of the run endpoints: commands that the client sends, and snapshots of a run that the service returns."""

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from agent_mux.assembler import OpenInteraction
from agent_mux.run.base import TERMINAL_STATES, RunState
from agent_mux.sdk import facts
from agent_mux.sdk.codec import AnswerAction, AnyAction, ApproveAction, DenyAction, Send, Steer


class PendingSnapshot(msgspec.Struct, rename="camel"):
    """A pending approval or question in a snapshot of a run."""

    id: str
    type: Literal["approval", "input"]
    detail: dict[str, Any]
    created_at: int

    def to_open_interaction(self) -> OpenInteraction:
        """Return the interaction as the local classes represent it; the service's id also serves as request id."""
        detail = self.detail
        asked: facts.ApprovalRequested | facts.InputRequested
        if self.type == "approval":
            asked = facts.ApprovalRequested(
                self.id,
                detail.get("action", ""),
                detail.get("detail", ""),
                detail.get("riskLevel", "medium"),
                detail.get("toolName"),
                call_id=detail.get("toolCallId"),
                command=detail.get("command"),
                paths=tuple(detail.get("paths", ())),
                tool_input=detail.get("toolInput"),
                diff=detail.get("diff"),
            )
        else:
            asked = facts.InputRequested(
                self.id,
                detail.get("question", ""),
                detail.get("context"),
                tuple(detail.get("options", ())),
                detail.get("source", "agent"),
            )
        return OpenInteraction(
            interaction_id=self.id, request_id=self.id, kind=self.type, asked=asked, created_at=self.created_at
        )


class Snapshot(msgspec.Struct, rename="camel"):
    """The state of a run at one time: the fields of the service's `RunView` that a handle needs."""

    run_id: str
    agent: str
    state: RunState
    revision: int = 0
    """Increases with each snapshot of a run that has not ended."""
    model: str | None = None
    session_id: str | None = None
    queue_position: int | None = None
    is_busy: bool = False
    pending: list[PendingSnapshot] = []
    event_count: int = 0
    journal: str | None = None

    @property
    def is_over(self) -> bool:
        """Whether the run has reached a terminal state."""
        return self.state in TERMINAL_STATES

    def open_interactions(self) -> tuple[OpenInteraction, ...]:
        """Return the approvals and questions that the agent waits for."""
        return () if self.is_over else tuple(one.to_open_interaction() for one in self.pending)

    def is_newer_than(self, other: "Snapshot") -> bool:
        """Return whether this snapshot was taken after the other one of the same run."""
        return not other.is_over and (self.is_over or self.revision > other.revision)


class CommandResponse(msgspec.Struct):
    """The response to a command: the run after it, and how the command was delivered."""

    run: Snapshot
    delivery: Literal["applied", "queued", "merged", "unneeded"] = "applied"


def command_of(action: AnyAction) -> tuple[str, Mapping[str, Any]]:
    """Return the path below the run, and the body, of the request for an action.

    Raises `TypeError` for an action that no method of a handle requests.
    """
    match action:
        case Send(text, own_turn):
            return ("queue" if own_turn else "input"), {"text": text}
        case Steer(text):
            return "steer", {"text": text}
        case ApproveAction(request_id, always):
            return "approve", {"interactionId": request_id, "always": always}
        case DenyAction(request_id, reason):
            return "deny", {"interactionId": request_id, "reason": reason}
        case AnswerAction(request_id, text):
            return "respond", {"interactionId": request_id, "text": text}
    raise TypeError(f"a handle has no such action: {action!r}")
