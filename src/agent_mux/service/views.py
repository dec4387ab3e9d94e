"""JSON views of runs: camelCase, absent fields omitted. Their schemas are part of the OpenAPI document."""

from dataclasses import asdict
from typing import Any

from msgspec import UNSET, Raw, UnsetType

from agent_mux.api import JsonView
from agent_mux.run.base import RunState
from agent_mux.sdk.codec import Delivery
from agent_mux.sdk.interactions import PendingInteraction
from agent_mux.settings.options_json import camel


class PendingView(JsonView, kw_only=True):
    """An approval or a question that the agent waits for."""

    id: str
    type: str
    """`approval` or `input`."""
    run_id: str
    description: str
    """One line for people."""
    detail: dict[str, Any]
    """Approval: action, detail, toolName, riskLevel, command, paths. Question: question, options, source."""
    created_at: int
    """Milliseconds since the epoch."""


class RunView(JsonView, kw_only=True):
    """A run. Times are milliseconds since the epoch, durations milliseconds."""

    run_id: str
    agent: str
    model: str | UnsetType = UNSET
    session_id: str | UnsetType = UNSET
    """The agent's own session id."""
    state: RunState
    """`spawned`: waiting in the queue or starting."""
    queue_position: int | UnsetType = UNSET
    """Position in the queue while waiting; 1 starts next."""
    is_busy: bool | UnsetType = UNSET
    """While alive: whether the agent is working on a prompt."""
    pending: list[PendingView] | UnsetType = UNSET
    """While alive: the interactions that the agent waits for."""
    exit_reason: str | UnsetType = UNSET
    created_at: int
    started_at: int | UnsetType = UNSET
    ended_at: int | UnsetType = UNSET
    duration_ms: int | UnsetType = UNSET
    cwd: str
    owner: str | UnsetType = UNSET
    """Name of the token that created the run."""
    project_id: str | UnsetType = UNSET
    tags: list[str] | UnsetType = UNSET
    event_count: int | UnsetType = UNSET
    """Number of events so far; events are numbered from 0."""
    revision: int | UnsetType = UNSET
    """Increases when anything but the number of events changes; the view with the larger revision is the newer one."""
    event_types: dict[str, int] | UnsetType = UNSET
    """After the end: number of events by type."""
    turn_count: int | UnsetType = UNSET
    cost_usd: float | UnsetType = UNSET
    error_code: str | UnsetType = UNSET
    journal: str | UnsetType = UNSET
    """Path of the journal on the service's machine."""
    request: Raw | UnsetType = UNSET
    """The options as requested, without secrets."""
    result: Raw | UnsetType = UNSET
    """After the end: the `run_result`."""


class RunPage(JsonView, kw_only=True):
    """A page of runs, latest first."""

    runs: list[RunView]
    next: str | UnsetType = UNSET
    """Pass it as `cursor` to get the next page; absent on the last page."""


class PendingPage(JsonView, kw_only=True):
    """The interactions that an agent waits for."""

    pending: list[PendingView]
    """In the order of the agent's requests."""


class CommandResult(JsonView, kw_only=True):
    """Result of a command that was executed."""

    delivery: Delivery | UnsetType = UNSET
    """What happened to the message: applied now or queued for later."""
    count: int | UnsetType = UNSET
    """Number of requests that were answered."""
    run: RunView


def pending_view(pending: PendingInteraction) -> PendingView:
    """Return the view of a pending interaction."""
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
    """Return UNSET for None, so that the field is omitted, else the value."""
    return UNSET if value is None else value
