"""`/v1/sessions`: the conversations that the agents stored themselves. Nothing here writes.

Ids come from the agents and may hold anything. They are compared with those of the sessions that were found, and
nothing is made of them, no path either.


`/v1/cost`: what the agents' stored sessions cost."""

import re
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request
from starlette.responses import Response

from agent_mux.api.costs import CostView, cost_json
from agent_mux.sdk.options import LONGEST_TAG
from agent_mux.service.openapi.descriptions import JSON, JSONL, ResponseSpec, SchemaRef, described
from agent_mux.service.routes.requests import CurrentService, RawPathRoute, json_answer
from agent_mux.service.service import in_thread
from agent_mux.service.streaming import ChunkStream, as_json_line, open_session_events, session_event_stream
from agent_mux.sessions.client import Sessions
from agent_mux.sessions.conversation import Session
from agent_mux.sessions.export import Format
from agent_mux.sessions.library import Sort
from agent_mux.sessions.queries import GroupBy, Hit, SearchOrder
from agent_mux.sessions.summary import SessionFilter, SessionSummary

LONGEST_NAME = 200  # characters
LONGEST_PATH = 4096
MAX_TAGS = 32
LATEST = 1 << 53  # milliseconds: larger numbers are none in JSON
Tag = Annotated[str, Query(max_length=LONGEST_TAG)]


def _session_filter(  # noqa: PLR0913, PLR0917  # one for each parameter
    agent: Annotated[str | None, Query(max_length=LONGEST_NAME, description="Name of an agent, or an alias.")] = None,
    model: Annotated[str | None, Query(max_length=LONGEST_NAME, description="Only those with this model.")] = None,
    since: Annotated[
        int | None, Query(ge=0, le=LATEST, description="Changed at or after: milliseconds since the epoch.")
    ] = None,
    until: Annotated[
        int | None, Query(ge=0, le=LATEST, description="Changed before: milliseconds since the epoch.")
    ] = None,
    tag: Annotated[
        list[Tag] | None, Query(max_length=MAX_TAGS, description="Only those of runs with all of these tags.")
    ] = None,
    cwd: Annotated[
        str | None, Query(max_length=LONGEST_PATH, description="Only those held in this directory, or below.")
    ] = None,
) -> SessionFilter:
    return SessionFilter(agent=agent, model=model, since=since, until=until, tags=tuple(tag or ()), cwd=cwd)


SessionQuery = Annotated[SessionFilter, Depends(_session_filter)]
router = APIRouter(prefix="/v1/sessions", tags=["sessions"], route_class=RawPathRoute)
LARGEST_PAGE = 1000
FURTHEST = 1_000_000
LONGEST_FILE_NAME = 80  # characters
LONGEST_TEXT = 1000  # characters that are searched for
_ERRORS: Any = ("AGENT_NOT_FOUND", "SESSION_NOT_FOUND", "CAPABILITY_ERROR")
_MEDIA_TYPES = {
    "json": (JSON, "json"),
    "jsonl": (JSONL, "jsonl"),
    "markdown": ("text/markdown; charset=utf-8", "md"),
    "html": ("text/html; charset=utf-8", "html"),
}
_INERT = {
    "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; sandbox",
    "x-content-type-options": "nosniff",
}
"""What agents said is nobody's program, also where somebody opens it in place."""
Limit = Annotated[int, Query(ge=1, le=LARGEST_PAGE, description="How many at most.")]
Offset = Annotated[int, Query(ge=0, le=FURTHEST, description="How many are left out at the beginning.")]


@router.get("")
@described(
    ResponseSpec(
        list[SessionSummary],
        headers={"Link": 'The next page, `rel="next"` (RFC 8288); absent on the last one.'},
        links={"get_session": {"agent": "$response.body#/0/agent", "session_id": "$response.body#/0/nativeId"}},
    ),
    errors=("AGENT_NOT_FOUND", "CAPABILITY_ERROR"),
)
async def list_sessions(  # noqa: PLR0913, PLR0917  # one for each parameter
    request: Request,
    service: CurrentService,
    wanted: SessionQuery,
    sort: Annotated[Sort, Query(description="The latest, the dearest or the longest first.")] = "date",
    limit: Limit = 100,
    offset: Offset = 0,
) -> Response:
    """The stored sessions of an agent, or of all agents: the latest first."""
    found = await in_thread(service, _list_summaries, service.mux.sessions, wanted, sort, offset + limit + 1)
    return _page_response(request, found, offset, limit)


@router.get("/search")
@described(
    ResponseSpec(list[Hit], headers={"Link": 'The next page, `rel="next"` (RFC 8288); absent on the last one.'}),
    errors=("AGENT_NOT_FOUND", "CAPABILITY_ERROR"),
    parameters={"q": "hello"},
)
async def search_sessions(  # noqa: PLR0913, PLR0917  # one for each parameter
    request: Request,
    service: CurrentService,
    wanted: SessionQuery,
    q: Annotated[
        str,
        Query(min_length=1, max_length=LONGEST_TEXT, pattern=r"\S", description="What was said or done, in any case."),
    ],
    sort: Annotated[
        SearchOrder, Query(description="Where it is found most often, the latest or the dearest first.")
    ] = "relevance",
    limit: Limit = 50,
    offset: Offset = 0,
) -> Response:
    """Find sessions by what was said in them, or by what tools were given and answered."""
    found = await in_thread(service, _search, service.mux.sessions, q, wanted, sort, offset + limit + 1)
    return _page_response(request, found, offset, limit)


@router.get("/{agent}/{session_id}")
@described(ResponseSpec(Session), errors=_ERRORS)
async def get_session(agent: str, session_id: str, service: CurrentService) -> Response:
    """One session, with all its messages."""
    return json_answer(await in_thread(service, service.mux.sessions.get, *_session_reference(agent, session_id)))


@router.get("/{agent}/{session_id}/events")
@described(
    ResponseSpec(description="One event a line, as JSON.", other_media={JSONL: SchemaRef("AgentEvent")}),
    errors=_ERRORS,
    is_stream=True,
)
async def read_session_events(
    agent: str,
    session_id: str,
    service: CurrentService,
    accumulated: Annotated[bool, Query(description="False: deltas without the text so far.")] = True,
) -> Response:
    """One session as the events that a run of it would have had."""
    events = await in_thread(service, open_session_events, service.mux.sessions, *_session_reference(agent, session_id))
    chunks = session_event_stream(service, events, as_json_line, accumulated=accumulated)
    return ChunkStream(chunks, media_type=JSONL)


@router.get("/{agent}/{session_id}/export")
@described(
    ResponseSpec(
        Session,
        description="The document, to be saved: it is never shown in place.",
        other_media={JSONL: dict[str, Any], "text/markdown": str, "text/html": str},
        headers={"Content-Disposition": "`attachment`, with a file name."},
    ),
    errors=_ERRORS,
)
async def export_session(
    agent: str,
    session_id: str,
    service: CurrentService,
    form: Annotated[Format, Query(alias="format", description="Of the document.")] = "json",
) -> Response:
    """One session as a document: JSON, JSON lines, Markdown, or one HTML file that needs no other and does nothing."""
    named, wanted = _session_reference(agent, session_id)
    text = await in_thread(service, service.mux.sessions.export, named, form, wanted)
    media_type, suffix = _MEDIA_TYPES[form]
    headers = {"content-disposition": f'attachment; filename="{file_name(agent, session_id, suffix)}"', **_INERT}
    return Response(text.encode("utf-8", "replace"), headers=headers, media_type=media_type)


def file_name(agent: str, session_id: str, suffix: str) -> str:
    """A name that every system can take, whatever the id is."""
    name = re.sub(r"[^A-Za-z0-9_-]+", "-", f"{agent}-{session_id}")[:LONGEST_FILE_NAME]
    return f"{name}.{suffix}"


def _session_reference(agent: str, session_id: str) -> tuple[str, SessionFilter]:
    """The agent is said in front, so that an id with a colon is not taken for another's."""
    return f"{agent}:{session_id}", SessionFilter(agent=agent)


def _list_summaries(sessions: Sessions, wanted: SessionFilter, sort: Sort, limit: int) -> list[SessionSummary]:
    return sessions.list(wanted, sort=sort, limit=limit)


def _search(sessions: Sessions, text: str, wanted: SessionFilter, sort: SearchOrder, limit: int) -> list[Hit]:
    return sessions.search(text, wanted, sort=sort, limit=limit)


def _page_response(request: Request, found: list[Any], offset: int, limit: int) -> Response:
    after_position = offset + limit
    if len(found) <= after_position:
        return json_answer(found[offset:])
    following = request.url.include_query_params(offset=after_position, limit=limit)
    link = f'<{following.path}?{following.query}>; rel="next"'
    return json_answer(found[offset:after_position], headers={"link": link})


cost_router = APIRouter(prefix="/v1/cost", tags=["cost"])


@cost_router.get("")
@described(ResponseSpec(CostView), errors=("AGENT_NOT_FOUND", "CAPABILITY_ERROR"), parameters={"by": "day"})
async def report_cost(
    service: CurrentService, wanted: SessionQuery, by: Annotated[GroupBy, Query(description="Sum up by.")] = "agent"
) -> Response:
    """What the stored sessions cost, in US dollars. Each model call counts once, also where a fork has a copy of it.

    What agents tell themselves (native) and what price lists say (computed) are kept apart; calls that nobody can
    price are counted. Times and models are those of the calls.
    """
    return json_answer(await in_thread(service, _cost_report, service.mux.sessions, wanted, by))


def _cost_report(sessions: Sessions, wanted: SessionFilter, by: GroupBy) -> dict[str, Any]:
    return cost_json(by, sessions.total_cost(wanted, group_by=by))
