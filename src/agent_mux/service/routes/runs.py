"""`/v1/runs`: start runs, find them, forget them."""

from typing import Annotated, Any

from fastapi import APIRouter, Header, Query, Request
from starlette.responses import Response

from agent_mux.errors import FieldError, ValidationError
from agent_mux.run.base import TERMINAL
from agent_mux.sdk.options import LONGEST_TAG
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
LATEST = 1 << 53  # milliseconds: larger numbers are none in JSON
LONGEST_NAME = 200  # characters
MAX_TAGS = 32
_RUN_LINKS: Links = {
    name: {"run_id": "$response.body#/runId"}
    for name in ("get_run", "read_events", "list_interactions", "input_run", "interrupt_run", "abort_run", "delete_run")
}
State = Annotated[str, Query(json_schema_extra={"enum": ["alive", "over", *sorted(TERMINAL), *LIVE]})]
STATES = ("alive", "over", *sorted(TERMINAL), *LIVE)


@router.post("", status_code=201)
@described(
    ResponseSpec(
        RunView,
        201,
        "It is started, or waits for a place.",
        headers={"Location": "Path of the run."},
        links=_RUN_LINKS,
    ),
    ResponseSpec(
        RunView,
        200,
        "The same was asked for before, under this key: the run of then.",
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
        Header(min_length=1, max_length=LONGEST_KEY, description="Chosen by the client: the same key, the same run."),
    ] = None,
) -> Response:
    """Start a run. The body has the options of `amux run`, as in a profile: camelCase, times in milliseconds.

    With an `Idempotency-Key` that was used before for the same request, the run of then is the answer (200).
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
async def list_runs(  # noqa: PLR0913, PLR0917  # one for each parameter
    service: CurrentService,
    agent: Annotated[str | None, Query(max_length=LONGEST_NAME, description="Registered name of an agent.")] = None,
    state: Annotated[
        list[State] | None, Query(max_length=len(STATES), description="One or more; `alive` and `over` are several.")
    ] = None,
    exit_reason: Annotated[
        str | None, Query(alias="exitReason", max_length=LONGEST_NAME, description="Why it ended: `completed`, ...")
    ] = None,
    model: Annotated[str | None, Query(max_length=LONGEST_NAME, description="Name of the model.")] = None,
    session_id: Annotated[
        str | None, Query(alias="sessionId", max_length=LONGEST_NAME, description="The agent's own id of the session.")
    ] = None,
    project_id: Annotated[
        str | None, Query(alias="projectId", max_length=LONGEST_NAME, description="What it is counted to.")
    ] = None,
    owner: Annotated[
        str | None, Query(max_length=LONGEST_NAME, description="Name of the token that asked for it.")
    ] = None,
    tag: Annotated[
        list[Annotated[str, Query(max_length=LONGEST_TAG)]] | None,
        Query(max_length=MAX_TAGS, description="It has all of these."),
    ] = None,
    since: Annotated[
        int | None, Query(ge=0, le=LATEST, description="Asked for at or after: ms since the epoch.")
    ] = None,
    until: Annotated[int | None, Query(ge=0, le=LATEST, description="Asked for before: ms since the epoch.")] = None,
    limit: Annotated[int, Query(ge=1, le=LARGEST_PAGE, description="How many at most.")] = 50,
    cursor: Annotated[str | None, Query(description="The `next` of the page before.")] = None,
) -> Response:
    """The runs, the latest first."""
    wanted = RunFilter(
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
        wanted, after_position=RunPosition(*parse_cursor(cursor)) if cursor else None, limit=limit + 1
    )
    page = RunPage(runs=views[:limit])
    if len(views) > limit:
        page.next = format_cursor(page.runs[-1].created_at, page.runs[-1].run_id)
    return json_answer(page)


@router.get("/{run_id}")
@described(ResponseSpec(RunView), errors=("RUN_NOT_FOUND",))
async def get_run(run_id: RunId, service: CurrentService) -> Response:
    """One run, with its request and, when it is over, its result."""
    return json_answer(await service.runs.get(run_id))


@router.delete("/{run_id}", status_code=204)
@described(
    ResponseSpec(status=204, description="It is forgotten."), errors=("RUN_NOT_FOUND", "INVALID_STATE_TRANSITION")
)
async def delete_run(run_id: RunId, service: CurrentService) -> Response:
    """Forget a run that is over: its row and its journal."""
    await service.runs.delete(run_id)
    return Response(status_code=204)


def _states(names: list[str]) -> tuple[str, ...]:
    unknown = [FieldError("state", one, ", ".join(STATES)) for one in names if one not in STATES]
    if unknown:
        raise ValidationError(unknown)
    groups = {"alive": LIVE, "over": tuple(sorted(TERMINAL))}
    return tuple(dict.fromkeys(state for one in names for state in groups.get(one, (one,))))
