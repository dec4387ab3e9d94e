"""`/v1/runs`: start, list and delete runs."""

from typing import Annotated, Any

from msgspec import Meta
from starlette.requests import Request
from starlette.responses import Response

from agent_mux.errors import FieldError, ValidationError
from agent_mux.run.base import TERMINAL_STATES
from agent_mux.sdk.options import MAX_TAG_LENGTH
from agent_mux.service.openapi.descriptions import BodySpec, Links, ResponseSpec, SchemaRef
from agent_mux.service.openapi.operations import OperationGroup
from agent_mux.service.parameters import HeaderParameters, QueryParameters
from agent_mux.service.routes.requests import (
    current_actor,
    current_caller,
    current_service,
    format_cursor,
    json_answer,
    json_body,
    parse_cursor,
    read_headers,
    read_query,
    run_id_of,
)
from agent_mux.service.security.rate_limits import charge
from agent_mux.service.store.runs import LIVE, RunFilter, RunPosition
from agent_mux.service.views import RunPage, RunView

operations = OperationGroup("/v1/runs", tag="runs")
LARGEST_PAGE = 200
LONGEST_KEY = 255
LATEST = 1 << 53  # milliseconds; JSON numbers are exact up to here
LONGEST_NAME = 200  # characters
MAX_TAGS = 32
_RUN_LINKS: Links = {
    name: {"run_id": "$response.body#/runId"}
    for name in ("get_run", "read_events", "list_interactions", "input_run", "interrupt_run", "abort_run", "delete_run")
}
STATES = ("alive", "over", *sorted(TERMINAL_STATES), *LIVE)
Name = Annotated[str, Meta(max_length=LONGEST_NAME)]
State = Annotated[str, Meta(extra_json_schema={"enum": list(STATES)})]
Tag = Annotated[str, Meta(max_length=MAX_TAG_LENGTH)]
Time = Annotated[int, Meta(ge=0, le=LATEST)]


class CreationHeaders(HeaderParameters):
    """Headers of a request for a run."""

    idempotency_key: (
        Annotated[
            str,
            Meta(
                min_length=1,
                max_length=LONGEST_KEY,
                description="Chosen by the client; a repeated key returns the same run.",
            ),
        ]
        | None
    ) = None


class RunQuery(QueryParameters):
    """Filters and position of a page of runs."""

    agent: Annotated[Name, Meta(description="Agent name.")] | None = None
    state: (
        Annotated[
            list[State],
            Meta(max_length=len(STATES), description="One or more states; `alive` and `over` stand for groups."),
        ]
        | None
    ) = None
    exit_reason: Annotated[Name, Meta(description="Exit reason: `completed`, ...")] | None = None
    model: Annotated[Name, Meta(description="Model name.")] | None = None
    session_id: Annotated[Name, Meta(description="The agent's own session id.")] | None = None
    project_id: Annotated[Name, Meta(description="Project id of the run.")] | None = None
    owner: Annotated[Name, Meta(description="Name of the token that created the run.")] | None = None
    tag: Annotated[list[Tag], Meta(max_length=MAX_TAGS, description="Runs with all of these tags.")] | None = None
    since: Annotated[Time, Meta(description="Created at or after: ms since the epoch.")] | None = None
    until: Annotated[Time, Meta(description="Created before: ms since the epoch.")] | None = None
    limit: Annotated[int, Meta(ge=1, le=LARGEST_PAGE, description="Page size.")] = 50
    cursor: Annotated[str, Meta(description="The `next` of the previous page.")] | None = None

    def as_filter(self) -> RunFilter:
        """Return the filter. Raises `ValidationError` for an unknown state."""
        return RunFilter(
            agent=self.agent,
            states=_states(self.state or []),
            exit_reason=self.exit_reason,
            model=self.model,
            session_id=self.session_id,
            project_id=self.project_id,
            owner=self.owner,
            tags=tuple(self.tag or ()),
            since=self.since,
            until=self.until,
        )


@operations.post(
    "",
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
    headers=CreationHeaders,
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
async def create_run(request: Request) -> Response:
    """Start a run. The body has the options of `amux run` as in a profile: camelCase, times in milliseconds.

    Repeating a request with the same `Idempotency-Key` returns the run that it created (200).
    """
    service, actor = current_service(request), current_actor(request)
    key = read_headers(request, CreationHeaders).idempotency_key
    payload = await json_body(request, dict[str, Any])
    view, is_new = await service.starter.create(
        payload,
        owner=actor.name,
        idempotency_key=key,
        actor=actor,
        admit=lambda: charge(request.scope["state"], service.limiter, current_caller(request), "runs"),
    )
    headers = {"location": f"/v1/runs/{view.run_id}"}
    return (
        json_answer(view, 201, headers)
        if is_new
        else json_answer(view, 200, {**headers, "idempotent-replayed": "true"})
    )


@operations.get(
    "", ResponseSpec(RunPage, links={"get_run": {"run_id": "$response.body#/runs/0/runId"}}), query=RunQuery
)
async def list_runs(request: Request) -> Response:
    """List runs that match all filters, latest first."""
    service, query = current_service(request), read_query(request, RunQuery)
    position = RunPosition(*parse_cursor(query.cursor)) if query.cursor else None
    views = await service.runs.page(query.as_filter(), after_position=position, limit=query.limit + 1)
    page = RunPage(runs=views[: query.limit])
    if len(views) > query.limit:
        page.next = format_cursor(page.runs[-1].created_at, page.runs[-1].run_id)
    return json_answer(page)


@operations.get("/{run_id}", ResponseSpec(RunView), errors=("RUN_NOT_FOUND",))
async def get_run(request: Request) -> Response:
    """Get one run with its request and, after its end, its result."""
    run_id, service = run_id_of(request), current_service(request)
    return json_answer(await service.runs.get(run_id))


@operations.delete(
    "/{run_id}",
    ResponseSpec(status=204, description="The run was deleted."),
    errors=("RUN_NOT_FOUND", "INVALID_STATE_TRANSITION"),
)
async def delete_run(request: Request) -> Response:
    """Delete an ended run with its journal."""
    run_id, service = run_id_of(request), current_service(request)
    async with service.audit.recorded(current_actor(request), "run.delete", "run", run_id):
        await service.runs.delete(run_id)
    return Response(status_code=204)


def _states(names: list[str]) -> tuple[str, ...]:
    unknown = [FieldError("state", one, ", ".join(STATES)) for one in names if one not in STATES]
    if unknown:
        raise ValidationError(unknown)
    groups = {"alive": LIVE, "over": tuple(sorted(TERMINAL_STATES))}
    return tuple(dict.fromkeys(state for one in names for state in groups.get(one, (one,))))
