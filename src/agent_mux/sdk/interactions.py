"""Pending approvals and questions, and the responses to them. See docs/spec/run-api.md, section 3."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class ApprovalDetail:
    """What needs permission."""

    action: str
    detail: str
    tool_name: str | None
    risk_level: Literal["low", "medium", "high"]
    command: str | None = None
    """The command line that would run, where one would."""
    paths: tuple[str, ...] = ()
    """The files it is about, as far as the agent says."""
    tool_call_id: str | None = None
    """The tool call that waits, as in its events, where the agent says which."""


@dataclass(frozen=True, slots=True)
class InputDetail:
    """What is asked."""

    question: str
    context: str | None
    options: tuple[str, ...]
    source: Literal["agent", "tool"]


@dataclass(frozen=True, slots=True)
class PendingInteraction:
    """Something the agent waits for. Answer it once, with `run.interaction.respond(id, ...)`."""

    id: str
    type: Literal["approval", "input"]
    run_id: str
    description: str
    """One line for a person."""
    detail: ApprovalDetail | InputDetail
    created_at: int
    """Milliseconds since the epoch."""


@dataclass(frozen=True, slots=True)
class Approve:
    """Allow it. `always`: and the like for the rest of the session, where the agent can."""

    always: bool = False


@dataclass(frozen=True, slots=True)
class Deny:
    """Refuse it, or decline to answer."""

    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Text:
    """A free answer."""

    text: str


@dataclass(frozen=True, slots=True)
class Choice:
    """One of the options: its label, or its position from 0."""

    option: str | int


Response = Approve | Deny | Text | Choice


Responder = Callable[[PendingInteraction], Awaitable[Response | None] | Response | None]
