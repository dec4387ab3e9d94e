"""`/v1/runs`: start, list and delete runs."""

from typing import Annotated, Any

from fastapi import APIRouter, Header, Query, Request
from starlette.responses import Response

from agent_mux.errors import FieldError, ValidationError
from agent_mux.run.base import TERMINAL_STATES
from agent_mux.sdk.options import MAX_TAG_LENGTH
from agent_mux.service.openapi.descriptions import BodySpec, Links, ResponseSpec, SchemaRef, described
from agent_mux.service.routes.requests import (
    CurrentCaller,
    CurrentService,
    RunId,
    format_cursor,
    json_answer,
    json_body,
    parse_cursor,
)
from agent_mux.service.store.runs import LIVE, RunFilter, RunPosition
from agent_mux.service.views import RunPage, RunView

router = APIRouter(prefix="/v1/runs", tags=["runs"])
LARGEST_PAGE = 200
LONGEST_KEY = 255
LATEST = 1 << 53  # milliseconds; JSON numbers are exact up to here
LONGEST_NAME = 200  # characters
MAX_TAGS = 32
_RUN_LINKS: Links = {
    name: {"run_id": "$response.body#/runId"}
    for name in ("get_run", "read_events", "list_interactions", "input_run", "interrupt_run", "abort_run", "delete_run")
}
State = Annotated[str, Query(json_schema_extra={"enum": ["alive", "over", *sorted(TERMINAL_STATES), *LIVE]})]
STATES = ("alive", "over", *sorted(TERMINAL_STATES), *LIVE)


@router.post("", status_code=201)
@described(
    ResponseSpec(
        RunView,
        201,
        "The run was started or queued.",
        headers={"Location": "Path of the run."},
        links=_RUN_LINKS,
    ),
    ResponseSpec(
        RunView,
        200,
        "A request with this key created this run before.",
        headers={"Location": "Path of the run.", "Idempotent-Replayed": "`true`."},
    ),
    body=BodySpec(
        shape=SchemaRef("RunRequest"),
        examples={"demo": {"agent": "replay", "prompt": "demo", "env": {"AMUX_REPLAY_SPEED": "0"}, "tags": ["demo"]}},
    ),
    errors=(
        "AGENT_NOT_FOUND",
        "PROFILE_NOT_FOUND",
        "AGENT_NOT_INSTALLED",
        "AUTH_ERROR",
        "CAPABILITY_ERROR",
        "LIMIT_EXCEEDED",
        "CONFIG_ERROR",
    ),
)
async def create_run(
    request: Request,
    service: CurrentService,
    caller: CurrentCaller,
    idempotency_key: Annotated[
        str | None,
        Header(
            min_length=1,
            max_length=LONGEST_KEY,
            description="Chosen by the client; a repeated key returns the same run.",
        ),
    ] = None,
) -> Response:
    """Start a run. The body has the options of `amux run` as in a profile: camelCase, times in milliseconds.

    Repeating a request with the same `Idempotency-Key` returns the run that it created (200).
    """
    payload = await json_body(request, dict[str, Any])
    view, is_new = await service.runs.create(payload, owner=caller.name, idempotency_key=idempotency_key)
    headers = {"location": f"/v1/runs/{view.run_id}"}
    return (
        json_answer(view, 201, headers)
        if is_new
        else json_answer(view, 200, {**headers, "idempotent-replayed": "true"})
    )


@router.get("")
@described(ResponseSpec(RunPage, links={"get_run": {"run_id": "$response.body#/runs/0/runId"}}))
async def list_runs(  # noqa: PLR0913, PLR0917  # query parameters
    service: CurrentService,
    agent: Annotated[str | None, Query(max_length=LONGEST_NAME, description="Agent name.")] = None,
    state: Annotated[
        list[State] | None,
        Query(max_length=len(STATES), description="One or more states; `alive` and `over` stand for groups."),
    ] = None,
    exit_reason: Annotated[
        str | None, Query(alias="exitReason", max_length=LONGEST_NAME, description="Exit reason: `completed`, ...")
    ] = None,
    model: Annotated[str | None, Query(max_length=LONGEST_NAME, description="Model name.")] = None,
    session_id: Annotated[
        str | None, Query(alias="sessionId", max_length=LONGEST_NAME, description="The agent's own session id.")
    ] = None,
    project_id: Annotated[
        str | None, Query(alias="projectId", max_length=LONGEST_NAME, description="Project id of the run.")
    ] = None,
    owner: Annotated[
        str | None, Query(max_length=LONGEST_NAME, description="Name of the token that created the run.")
    ] = None,
    tag: Annotated[
        list[Annotated[str, Query(max_length=MAX_TAG_LENGTH)]] | None,
        Query(max_length=MAX_TAGS, description="Runs with all of these tags."),
    ] = None,
    since: Annotated[int | None, Query(ge=0, le=LATEST, description="Created at or after: ms since the epoch.")] = None,
    until: Annotated[int | None, Query(ge=0, le=LATEST, description="Created before: ms since the epoch.")] = None,
    limit: Annotated[int, Query(ge=1, le=LARGEST_PAGE, description="Page size.")] = 50,
    cursor: Annotated[str | None, Query(description="The `next` of the previous page.")] = None,
) -> Response:
    """List runs that match all filters, latest first."""
    run_filter = RunFilter(
        agent=agent,
        states=_states(state or []),
        exit_reason=exit_reason,
        model=model,
        session_id=session_id,
        project_id=project_id,
        owner=owner,
        tags=tuple(tag or ()),
        since=since,
        until=until,
    )
    views = await service.runs.page(
        run_filter, after_position=RunPosition(*parse_cursor(cursor)) if cursor else None, limit=limit + 1
    )
    page = RunPage(runs=views[:limit])
    if len(views) > limit:
        page.next = format_cursor(page.runs[-1].created_at, page.runs[-1].run_id)
    return json_answer(page)


@router.get("/{run_id}")
@described(ResponseSpec(RunView), errors=("RUN_NOT_FOUND",))
async def get_run(run_id: RunId, service: CurrentService) -> Response:
    """Get one run with its request and, after its end, its result."""
    return json_answer(await service.runs.get(run_id))


@router.delete("/{run_id}", status_code=204)
@described(
    ResponseSpec(status=204, description="The run was deleted."), errors=("RUN_NOT_FOUND", "INVALID_STATE_TRANSITION")
)
async def delete_run(run_id: RunId, service: CurrentService) -> Response:
    """Delete an ended run with its journal."""
    await service.runs.delete(run_id)
    return Response(status_code=204)


def _states(names: list[str]) -> tuple[str, ...]:
    unknown = [FieldError("state", one, ", ".join(STATES)) for one in names if one not in STATES]
    if unknown:
        raise ValidationError(unknown)
    groups = {"alive": LIVE, "over": tuple(sorted(TERMINAL_STATES))}
    return tuple(dict.fromkeys(state for one in names for state in groups.get(one, (one,))))
