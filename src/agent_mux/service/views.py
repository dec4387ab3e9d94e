"""JSON views of runs: camelCase, absent fields omitted. Their schemas are part of the OpenAPI document."""

from dataclasses import asdict
from typing import Annotated, Any

from msgspec import UNSET, Meta, Raw, UnsetType

from agent_mux.api import JsonView
from agent_mux.run.base import RunState
from agent_mux.sdk.codec import Delivery
from agent_mux.sdk.interactions import PendingInteraction
from agent_mux.sdk.options import FailOn
from agent_mux.settings.options_json import camel


class PendingView(JsonView, kw_only=True):
    """An approval or a question that the agent waits for."""

    id: str
    type: Annotated[str, Meta(description="`approval` or `input`.")]
    run_id: str
    description: Annotated[str, Meta(description="One line for people.")]
    detail: Annotated[
        dict[str, Any],
        Meta(
            description=(
                "Approval: action, detail, toolName, riskLevel, command, paths, toolCallId, toolInput, diff. Question: "
                "question, context, options, source."
            )
        ),
    ]
    created_at: Annotated[int, Meta(description="Milliseconds since the epoch.")]


class RunView(JsonView, kw_only=True):
    """A run. Times are milliseconds since the epoch, durations milliseconds."""

    run_id: str
    agent: str
    model: str | UnsetType = UNSET
    session_id: Annotated[str | UnsetType, Meta(description="The agent's own session id.")] = UNSET
    state: Annotated[RunState, Meta(description="`spawned`: waiting in the queue or starting.")]
    queue_position: Annotated[
        int | UnsetType, Meta(description="Position in the queue while waiting; 1 starts next.")
    ] = UNSET
    is_busy: Annotated[bool | UnsetType, Meta(description="While alive: whether the agent is working on a prompt.")] = (
        UNSET
    )
    pending: Annotated[
        list[PendingView] | UnsetType, Meta(description="While alive: the interactions that the agent waits for.")
    ] = UNSET
    exit_reason: str | UnsetType = UNSET
    created_at: int
    started_at: int | UnsetType = UNSET
    ended_at: int | UnsetType = UNSET
    duration_ms: int | UnsetType = UNSET
    cwd: str
    owner: Annotated[str | UnsetType, Meta(description="Name of the token that created the run.")] = UNSET
    project_id: str | UnsetType = UNSET
    tags: list[str] | UnsetType = UNSET
    event_count: Annotated[
        int | UnsetType, Meta(description="Number of events so far; events are numbered from 0.")
    ] = UNSET
    revision: Annotated[
        int | UnsetType,
        Meta(
            description=(
                "Increases when anything but the number of events changes; the view with the larger revision is "
                "the newer one."
            )
        ),
    ] = UNSET
    event_types: Annotated[dict[str, int] | UnsetType, Meta(description="After the end: number of events by type.")] = (
        UNSET
    )
    turn_count: int | UnsetType = UNSET
    cost_usd: float | UnsetType = UNSET
    error_code: str | UnsetType = UNSET
    failed_on: Annotated[
        list[FailOn] | UnsetType,
        Meta(description="The conditions of `failOn` that held, so that the run counts as failed."),
    ] = UNSET
    journal: Annotated[str | UnsetType, Meta(description="Path of the journal on the service's machine.")] = UNSET
    request: Annotated[Raw | UnsetType, Meta(description="The options as requested, without secrets.")] = UNSET
    result: Annotated[Raw | UnsetType, Meta(description="After the end: the `run_result`.")] = UNSET


class RunPage(JsonView, kw_only=True):
    """A page of runs, latest first."""

    runs: list[RunView]
    next: Annotated[
        str | UnsetType, Meta(description="Pass it as `cursor` to get the next page; absent on the last page.")
    ] = UNSET


class PendingPage(JsonView, kw_only=True):
    """The interactions that an agent waits for."""

    pending: Annotated[list[PendingView], Meta(description="In the order of the agent's requests.")]


class CommandResult(JsonView, kw_only=True):
    """Result of a command that was executed."""

    delivery: Annotated[
        Delivery | UnsetType,
        Meta(
            description=(
                "How the command was delivered. `applied`: done; a prompt starts its turn. `merged`: the running turn "
                "receives the message. `queued`: the prompt waits. `unneeded`: there was nothing to do, such as a "
                "second interruption of a turn."
            )
        ),
    ] = UNSET
    count: Annotated[int | UnsetType, Meta(description="Number of requests that were answered.")] = UNSET
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
