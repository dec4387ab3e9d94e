"""`/v1/sessions` and `/v1/cost`: sessions that the agents stored themselves, and what they cost. Read-only.

Session ids come from the agents and may contain anything. They are only compared with the ids of sessions that were
found; no path is derived from them.
"""

import re
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request
from starlette.responses import Response

from agent_mux.api.costs import CostView, cost_json
from agent_mux.sdk.options import MAX_TAG_LENGTH
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
LATEST = 1 << 53  # milliseconds; JSON numbers are exact up to here
Tag = Annotated[str, Query(max_length=MAX_TAG_LENGTH)]
router = APIRouter(prefix="/v1/sessions", tags=["sessions"], route_class=RawPathRoute)
LARGEST_PAGE = 1000
FURTHEST = 1_000_000
LONGEST_FILE_NAME = 80  # characters
LONGEST_TEXT = 1000  # characters of a search text
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
"""Headers that keep exported agent output from running as a script, even when it is opened in place."""
Limit = Annotated[int, Query(ge=1, le=LARGEST_PAGE, description="Page size.")]
Offset = Annotated[int, Query(ge=0, le=FURTHEST, description="Number of results to skip.")]
cost_router = APIRouter(prefix="/v1/cost", tags=["cost"])


def _session_filter(  # noqa: PLR0913, PLR0917  # query parameters
    agent: Annotated[str | None, Query(max_length=LONGEST_NAME, description="Agent name or alias.")] = None,
    model: Annotated[str | None, Query(max_length=LONGEST_NAME, description="Sessions with this model.")] = None,
    since: Annotated[
        int | None, Query(ge=0, le=LATEST, description="Changed at or after: milliseconds since the epoch.")
    ] = None,
    until: Annotated[
        int | None, Query(ge=0, le=LATEST, description="Changed before: milliseconds since the epoch.")
    ] = None,
    tag: Annotated[
        list[Tag] | None, Query(max_length=MAX_TAGS, description="Sessions of runs with all of these tags.")
    ] = None,
    cwd: Annotated[
        str | None, Query(max_length=LONGEST_PATH, description="Sessions in this directory or below it.")
    ] = None,
) -> SessionFilter:
    return SessionFilter(agent=agent, model=model, since=since, until=until, tags=tuple(tag or ()), cwd=cwd)


SessionQuery = Annotated[SessionFilter, Depends(_session_filter)]


@router.get("")
@described(
    ResponseSpec(
        list[SessionSummary],
        headers={"Link": 'The next page, `rel="next"` (RFC 8288); absent on the last page.'},
        links={"get_session": {"agent": "$response.body#/0/agent", "session_id": "$response.body#/0/nativeId"}},
    ),
    errors=("AGENT_NOT_FOUND", "CAPABILITY_ERROR"),
)
async def list_sessions(  # noqa: PLR0913, PLR0917  # query parameters
    request: Request,
    service: CurrentService,
    session_filter: SessionQuery,
    sort: Annotated[Sort, Query(description="Order: latest, most expensive or longest first.")] = "date",
    limit: Limit = 100,
    offset: Offset = 0,
) -> Response:
    """List stored sessions of one agent or of all agents, latest first."""
    sessions_found = await in_thread(
        service, _list_summaries, service.mux.sessions, session_filter, sort, offset + limit + 1
    )
    return _page_response(request, sessions_found, offset, limit)


@router.get("/search")
@described(
    ResponseSpec(list[Hit], headers={"Link": 'The next page, `rel="next"` (RFC 8288); absent on the last page.'}),
    errors=("AGENT_NOT_FOUND", "CAPABILITY_ERROR"),
    parameters={"q": "hello"},
)
async def search_sessions(  # noqa: PLR0913, PLR0917  # query parameters
    request: Request,
    service: CurrentService,
    session_filter: SessionQuery,
    q: Annotated[
        str,
        Query(min_length=1, max_length=LONGEST_TEXT, pattern=r"\S", description="Text to find, case-insensitive."),
    ],
    sort: Annotated[
        SearchOrder, Query(description="Order: most matches, latest or most expensive first.")
    ] = "relevance",
    limit: Limit = 50,
    offset: Offset = 0,
) -> Response:
    """Search sessions for text in messages and in the inputs and outputs of tools."""
    sessions_found = await in_thread(
        service, _search, service.mux.sessions, q, session_filter, sort, offset + limit + 1
    )
    return _page_response(request, sessions_found, offset, limit)


@router.get("/{agent}/{session_id}")
@described(ResponseSpec(Session), errors=_ERRORS)
async def get_session(agent: str, session_id: str, service: CurrentService) -> Response:
    """Get one session with all its messages."""
    return json_answer(await in_thread(service, service.mux.sessions.get, *_session_reference(agent, session_id)))


@router.get("/{agent}/{session_id}/events")
@described(
    ResponseSpec(description="One event per line, as JSON.", other_media={JSONL: SchemaRef("AgentEvent")}),
    errors=_ERRORS,
    is_stream=True,
)
async def read_session_events(
    agent: str,
    session_id: str,
    service: CurrentService,
    accumulated: Annotated[bool, Query(description="Include accumulated text in delta events.")] = True,
) -> Response:
    """Get a session as the events of an equivalent run."""
    events = await in_thread(service, open_session_events, service.mux.sessions, *_session_reference(agent, session_id))
    chunks = session_event_stream(service, events, as_json_line, accumulated=accumulated)
    return ChunkStream(chunks, media_type=JSONL)


@router.get("/{agent}/{session_id}/export")
@described(
    ResponseSpec(
        Session,
        description="The document, as an attachment.",
        other_media={JSONL: dict[str, Any], "text/markdown": str, "text/html": str},
        headers={"Content-Disposition": "`attachment` with a file name."},
    ),
    errors=_ERRORS,
)
async def export_session(
    agent: str,
    session_id: str,
    service: CurrentService,
    form: Annotated[Format, Query(alias="format", description="Format of the document.")] = "json",
) -> Response:
    """Export a session as JSON, JSON lines, Markdown, or one self-contained HTML file without scripts."""
    named, session_filter = _session_reference(agent, session_id)
    text = await in_thread(service, service.mux.sessions.export, named, form, session_filter)
    media_type, suffix = _MEDIA_TYPES[form]
    headers = {"content-disposition": f'attachment; filename="{file_name(agent, session_id, suffix)}"', **_INERT}
    return Response(text.encode("utf-8", "replace"), headers=headers, media_type=media_type)


def file_name(agent: str, session_id: str, suffix: str) -> str:
    """Return a file name that is valid on every system, whatever the session id contains."""
    name = re.sub(r"[^A-Za-z0-9_-]+", "-", f"{agent}-{session_id}")[:LONGEST_FILE_NAME]
    return f"{name}.{suffix}"


def _session_reference(agent: str, session_id: str) -> tuple[str, SessionFilter]:
    """Return the session with its agent as prefix, so that a colon in the id is not taken for one."""
    return f"{agent}:{session_id}", SessionFilter(agent=agent)


def _list_summaries(sessions: Sessions, session_filter: SessionFilter, sort: Sort, limit: int) -> list[SessionSummary]:
    return sessions.list(session_filter, sort=sort, limit=limit)


def _search(sessions: Sessions, text: str, session_filter: SessionFilter, sort: SearchOrder, limit: int) -> list[Hit]:
    return sessions.search(text, session_filter, sort=sort, limit=limit)


def _page_response(request: Request, sessions_found: list[Any], offset: int, limit: int) -> Response:
    after_position = offset + limit
    if len(sessions_found) <= after_position:
        return json_answer(sessions_found[offset:])
    following = request.url.include_query_params(offset=after_position, limit=limit)
    link = f'<{following.path}?{following.query}>; rel="next"'
    return json_answer(sessions_found[offset:after_position], headers={"link": link})


@cost_router.get("")
@described(ResponseSpec(CostView), errors=("AGENT_NOT_FOUND", "CAPABILITY_ERROR"), parameters={"by": "day"})
async def report_cost(
    service: CurrentService,
    session_filter: SessionQuery,
    by: Annotated[GroupBy, Query(description="Grouping of the report.")] = "agent",
) -> Response:
    """Report the cost of stored sessions in US dollars. A model call that a fork copied counts once.

    Costs reported by agents (native) and costs computed from price lists (computed) are separate; calls without a known
    price are counted. Times and models are those of the calls.
    """
    return json_answer(await in_thread(service, _cost_report, service.mux.sessions, session_filter, by))


def _cost_report(sessions: Sessions, session_filter: SessionFilter, by: GroupBy) -> dict[str, Any]:
    return cost_json(by, sessions.total_cost(session_filter, group_by=by))
