"""Interaction events. Source: agent-events spec, section 18."""

from typing import ClassVar, Literal

from agent_mux.events.base import BaseEvent


class InputRequiredEvent(BaseEvent, frozen=True):
    """The agent asks a question and waits. Source: agent-events spec, section 18.1."""

    type: ClassVar[Literal["input_required"]] = "input_required"

    interaction_id: str
    """Answer with `run.interaction.respond(interaction_id, ...)`."""
    question: str
    """What it asks."""
    source: Literal["agent", "tool"]
    """Who asks."""
    context: str | None = None
    """What it is about."""


class ApprovalRequestEvent(BaseEvent, frozen=True):
    """The agent asks for permission and waits. Source: agent-events spec, section 18.1."""

    type: ClassVar[Literal["approval_request"]] = "approval_request"

    interaction_id: str
    """Shared by request and decision."""
    action: str
    """Short: what it wants to do."""
    detail: str
    """Exactly what: the whole command, path or input."""
    risk_level: Literal["low", "medium", "high"]
    """low: reads; medium: writes and ordinary commands; high: destructive, network, privileged."""
    tool_name: str | None = None
    """The tool."""


class ApprovalGrantedEvent(BaseEvent, frozen=True):
    """Permission was given. Source: agent-events spec, section 18.1."""

    type: ClassVar[Literal["approval_granted"]] = "approval_granted"

    interaction_id: str
    """The request."""


class ApprovalDeniedEvent(BaseEvent, frozen=True):
    """Permission was refused, or the request was dropped. Source: agent-events spec, section 18.1."""

    type: ClassVar[Literal["approval_denied"]] = "approval_denied"

    interaction_id: str
    """The request."""
    reason: str | None = None
    """Why."""
