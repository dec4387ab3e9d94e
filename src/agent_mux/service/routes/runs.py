"""`/v1/runs`: start runs, find them, forget them."""

import base64
import binascii
from typing import Annotated, Any

from fastapi import APIRouter, Header, Query, Request
from starlette.responses import Response

from agent_mux.errors import FieldError, ValidationError
from agent_mux.run.state import TERMINAL
from agent_mux.service.routes.answers import RunId, TheCaller, TheService, json_answer, json_body
from agent_mux.service.store.runs import LIVE, Place, RunFilter
from agent_mux.service.views import RunPage, RunView

router = APIRouter(prefix="/v1/runs", tags=["runs"])
LARGEST_PAGE = 200
LONGEST_KEY = 255
LATEST = 1 << 53  # milliseconds: larger numbers are none in JSON
STATES = ("alive", "over", *sorted(TERMINAL), *LIVE)


@router.post("", status_code=201)
async def create_run(
    request: Request,
    service: TheService,
    caller: TheCaller,
    idempotency_key: Annotated[str | None, Header(min_length=1, max_length=LONGEST_KEY)] = None,
) -> Response:
    """Start a run. The body has the options of `amux run`, as in a profile: camelCase, times in milliseconds.

    With an `Idempotency-Key` that was used before for the same request, the run of then is the answer (200).
    """
    told = await json_body(request, dict[str, Any])
    view, is_new = await service.runs.create(told, owner=caller.name, idempotency_key=idempotency_key)
    headers = {"location": f"/v1/runs/{view.run_id}"}
    return (
        json_answer(view, 201, headers)
        if is_new
        else json_answer(view, 200, {**headers, "idempotent-replayed": "true"})
    )


@router.get("")
async def list_runs(  # noqa: PLR0913, PLR0917  # one for each parameter
    service: TheService,
    agent: Annotated[str | None, Query()] = None,
    state: Annotated[list[str] | None, Query(description="One or more of: " + ", ".join(STATES))] = None,
    exit_reason: Annotated[str | None, Query(alias="exitReason")] = None,
    model: Annotated[str | None, Query()] = None,
    session_id: Annotated[str | None, Query(alias="sessionId")] = None,
    project_id: Annotated[str | None, Query(alias="projectId")] = None,
    owner: Annotated[str | None, Query()] = None,
    tag: Annotated[list[str] | None, Query(description="All of them.")] = None,
    since: Annotated[
        int | None, Query(ge=0, le=LATEST, description="Asked for at or after: ms since the epoch.")
    ] = None,
    until: Annotated[int | None, Query(ge=0, le=LATEST, description="Asked for before: ms since the epoch.")] = None,
    limit: Annotated[int, Query(ge=1, le=LARGEST_PAGE)] = 50,
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
    views = await service.runs.page(wanted, behind=_place(cursor), limit=limit + 1)
    page = RunPage(runs=views[:limit])
    if len(views) > limit:
        page.next = _cursor(page.runs[-1])
    return json_answer(page)


@router.get("/{run_id}")
async def get_run(run_id: RunId, service: TheService) -> Response:
    """One run, with its request and, when it is over, its result."""
    return json_answer(await service.runs.get(run_id))


@router.delete("/{run_id}", status_code=204)
async def delete_run(run_id: RunId, service: TheService) -> Response:
    """Forget a run that is over: its row and its journal."""
    await service.runs.delete(run_id)
    return Response(status_code=204)


def _states(said: list[str]) -> tuple[str, ...]:
    unknown = [FieldError("state", one, ", ".join(STATES)) for one in said if one not in STATES]
    if unknown:
        raise ValidationError(unknown)
    groups = {"alive": LIVE, "over": tuple(sorted(TERMINAL))}
    return tuple(dict.fromkeys(state for one in said for state in groups.get(one, (one,))))


def _cursor(view: RunView) -> str:
    return base64.urlsafe_b64encode(f"{view.created_at}.{view.run_id}".encode()).decode()


def _place(cursor: str | None) -> Place | None:
    if cursor is None:
        return None
    try:
        created_at, _, run_id = base64.urlsafe_b64decode(cursor.encode()).decode().partition(".")
        return Place(int(created_at), run_id)
    except (ValueError, binascii.Error) as error:
        raise ValidationError([FieldError("cursor", cursor, "the `next` of the page before")]) from error
