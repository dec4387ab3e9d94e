"""What the service says of runs, as JSON: camelCase, absent fields left out. The shapes are also the OpenAPI schema.

Looking for agents on the machine, for many who ask: one look at a time, which all who waited for it share.
"""

from dataclasses import asdict
from typing import Any

from msgspec import UNSET, Raw, UnsetType

from agent_mux.api import Shape
from agent_mux.run.base import RunState
from agent_mux.sdk.codec import Delivery
from agent_mux.sdk.interactions import PendingInteraction
from agent_mux.settings.fields import camel


class PendingView(Shape, kw_only=True):
    """Something that an agent waits for."""

    id: str
    type: str
    """`approval` or `input`."""
    run_id: str
    description: str
    """One line for a person."""
    detail: dict[str, Any]
    """Of an approval: action, detail, toolName, riskLevel, command, paths. Of a question: question, options, source."""
    created_at: int
    """Milliseconds since the epoch."""


class RunView(Shape, kw_only=True):
    """A run. Times are milliseconds since the epoch, durations milliseconds."""

    run_id: str
    agent: str
    model: str | UnsetType = UNSET
    session_id: str | UnsetType = UNSET
    """The agent's own id of the session."""
    state: RunState
    """`spawned`: it waits for a place, or is being started."""
    queue_position: int | UnsetType = UNSET
    """While it waits for a place: 1 is the next one to begin."""
    is_busy: bool | UnsetType = UNSET
    """While it runs: the agent has a prompt that it has not dealt with."""
    pending: list[PendingView] | UnsetType = UNSET
    """While it runs: what the agent waits for."""
    exit_reason: str | UnsetType = UNSET
    created_at: int
    started_at: int | UnsetType = UNSET
    ended_at: int | UnsetType = UNSET
    duration_ms: int | UnsetType = UNSET
    cwd: str
    owner: str | UnsetType = UNSET
    """The name of the token that asked for it."""
    project_id: str | UnsetType = UNSET
    tags: list[str] | UnsetType = UNSET
    event_count: int | UnsetType = UNSET
    """So far; the number of an event is its position, from 0."""
    revision: int | UnsetType = UNSET
    """Larger whenever anything but the number of events changed: the view with the larger one is the later one."""
    event_types: dict[str, int] | UnsetType = UNSET
    """Of a run that is over: how many events of each type there are."""
    turn_count: int | UnsetType = UNSET
    cost_usd: float | UnsetType = UNSET
    error_code: str | UnsetType = UNSET
    journal: str | UnsetType = UNSET
    """Path of the recording, on the machine of the service."""
    request: Raw | UnsetType = UNSET
    """The options as they were asked for, without secrets."""
    result: Raw | UnsetType = UNSET
    """Of a run that is over: its `run_result`."""


class RunPage(Shape, kw_only=True):
    """Runs, the latest first."""

    runs: list[RunView]
    next: str | UnsetType = UNSET
    """Give it as `cursor` for the next page; absent on the last one."""


class PendingPage(Shape, kw_only=True):
    """What an agent waits for."""

    pending: list[PendingView]
    """In the order in which it asked."""


class CommandResult(Shape, kw_only=True):
    """A command was carried out."""

    delivery: Delivery | UnsetType = UNSET
    """What became of it: applied, or kept for a later moment."""
    count: int | UnsetType = UNSET
    """How many requests were answered."""
    run: RunView


def pending_view(pending: PendingInteraction) -> PendingView:
    """What an agent waits for."""
    detail = {camel(name): value for name, value in asdict(pending.detail).items() if value is not None}
    return PendingView(
        id=pending.id,
        type=pending.type,
        run_id=pending.run_id,
        description=pending.description,
        detail=detail,
        created_at=pending.created_at,
    )


def present(value: Any) -> Any:
    """What is None is left out."""
    return UNSET if value is None else value
