"""`/v1/sessions` and `/v1/cost`: sessions that the agents stored themselves, and what they cost.

They are only read here; `session_changes` has what changes them.

Secrets are hidden in all answers, as in the events of runs: an agent stores what its tools printed.

Session ids come from the agents and may contain anything. They are only compared with the ids of sessions that were
found; no path is derived from them.
"""

import re
from collections.abc import Mapping
from typing import Annotated, Any

from msgspec import Meta
from starlette.requests import Request
from starlette.responses import Response

from agent_mux.api.costs import CostView, cost_json
from agent_mux.api.headers import SKIPPED_FILES
from agent_mux.sdk.options import MAX_TAG_LENGTH
from agent_mux.service.http_streams import ChunkStream, as_json_line, open_session_events, session_event_stream
from agent_mux.service.openapi.descriptions import JSON, JSONL, ResponseSpec, SchemaRef
from agent_mux.service.openapi.operations import OperationGroup
from agent_mux.service.parameters import QueryParameters
from agent_mux.service.routes.requests import current_service, json_answer, masked_answer, read_query
from agent_mux.service.service import Service, in_thread
from agent_mux.sessions.client import Sessions
from agent_mux.sessions.conversation import Session
from agent_mux.sessions.export import Format
from agent_mux.sessions.library import Order, SessionListing, SkippedFile, Sort
from agent_mux.sessions.queries import GroupBy, Hit, SearchOrder
from agent_mux.sessions.summary import SessionFilter, SessionSummary

LONGEST_NAME = 200  # characters
LONGEST_PATH = 4096
MAX_TAGS = 32
LATEST = 1 << 53  # milliseconds; JSON numbers are exact up to here
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
INERT = {
    "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; sandbox",
    "x-content-type-options": "nosniff",
}
"""Headers that keep exported agent output from running as a script, even when it is opened in place."""
operations = OperationGroup("/v1/sessions", tag="sessions", matches_raw_path=True)
cost_operations = OperationGroup("/v1/cost", tag="cost")
Name = Annotated[str, Meta(max_length=LONGEST_NAME)]
Time = Annotated[int, Meta(ge=0, le=LATEST)]
Tag = Annotated[str, Meta(max_length=MAX_TAG_LENGTH)]
Limit = Annotated[int, Meta(ge=1, le=LARGEST_PAGE, description="Page size.")]
Offset = Annotated[int, Meta(ge=0, le=FURTHEST, description="Number of results to skip.")]


class SessionQuery(QueryParameters):
    """Query that selects sessions."""

    agent: Annotated[Name, Meta(description="Agent name or alias.")] | None = None
    model: Annotated[Name, Meta(description="Sessions with this model.")] | None = None
    since: Annotated[Time, Meta(description="Changed at or after: milliseconds since the epoch.")] | None = None
    until: Annotated[Time, Meta(description="Changed before: milliseconds since the epoch.")] | None = None
    tag: (
        Annotated[list[Tag], Meta(max_length=MAX_TAGS, description="Sessions of runs with all of these tags.")] | None
    ) = None
    cwd: Annotated[str, Meta(max_length=LONGEST_PATH, description="Sessions in this directory or below it.")] | None = (
        None
    )

    def as_filter(self) -> SessionFilter:
        """Return the query as a filter of stored sessions."""
        return SessionFilter(
            agent=self.agent,
            model=self.model,
            since=self.since,
            until=self.until,
            tags=tuple(self.tag or ()),
            cwd=self.cwd,
        )


_ORDER = "Direction: the largest or latest first (desc), or the smallest or oldest (asc)."


class ListQuery(SessionQuery):
    """Query of a page of sessions."""

    sort: Annotated[Sort, Meta(description="Order: by time, cost or number of turns.")] = "date"
    order: Annotated[Order, Meta(description=_ORDER)] = "desc"
    limit: Limit = 100
    offset: Offset = 0


class SkippedQuery(QueryParameters):
    """Query of the files that cannot be read."""

    agent: Annotated[Name, Meta(description="Agent name or alias.")] | None = None


class SearchQuery(SessionQuery, kw_only=True):
    """Query of a page of search results."""

    q: Annotated[
        str,
        Meta(min_length=1, max_length=LONGEST_TEXT, pattern=r"\S", description="Text to find, case-insensitive."),
    ]
    sort: Annotated[SearchOrder, Meta(description="Order: by number of matches, time or cost.")] = "relevance"
    order: Annotated[Order, Meta(description=_ORDER)] = "desc"
    limit: Limit = 50
    offset: Offset = 0


class EventsQuery(QueryParameters):
    """Query of the events of a session."""

    accumulated: Annotated[bool, Meta(description="Include accumulated text in delta events.")] = False


class ExportQuery(QueryParameters):
    """Query of an export."""

    format: Annotated[Format, Meta(description="Format of the document.")] = "json"


class CostQuery(SessionQuery):
    """Query of a cost report."""

    by: Annotated[GroupBy, Meta(description="Grouping of the report.")] = "agent"


@operations.get(
    "",
    ResponseSpec(
        list[SessionSummary],
        headers={
            "Link": 'The next page, `rel="next"` (RFC 8288); absent on the last page.',
            SKIPPED_FILES: "Number of files that cannot be read as a session; absent without such files.",
        },
        links={"get_session": {"agent": "$response.body#/0/agent", "session_id": "$response.body#/0/nativeId"}},
    ),
    query=ListQuery,
    errors=("AGENT_NOT_FOUND", "CAPABILITY_ERROR"),
)
async def list_sessions(request: Request) -> Response:
    """List stored sessions of one agent or of all agents."""
    service, query = current_service(request), read_query(request, ListQuery)
    most = query.offset + query.limit + 1
    how: Any = {"sort": query.sort, "order": query.order, "limit": most}
    found = await in_thread(service, _list_summaries, service.mux.sessions, query.as_filter(), how)
    response = await _page_response(request, found, query.offset, query.limit)
    if found.skipped:
        response.headers[SKIPPED_FILES] = str(len(found.skipped))
    return response


@operations.get(
    "/skipped", ResponseSpec(list[SkippedFile]), query=SkippedQuery, errors=("AGENT_NOT_FOUND", "CAPABILITY_ERROR")
)
async def list_skipped_files(request: Request) -> Response:
    """List the files that cannot be read as a session, with the reasons."""
    service, query = current_service(request), read_query(request, SkippedQuery)
    wanted = SessionFilter(agent=query.agent)
    found = await in_thread(service, _list_summaries, service.mux.sessions, wanted, {"limit": 0})
    return await masked_answer(service, found.skipped)


@operations.get(
    "/search",
    ResponseSpec(list[Hit], headers={"Link": 'The next page, `rel="next"` (RFC 8288); absent on the last page.'}),
    errors=("AGENT_NOT_FOUND", "CAPABILITY_ERROR"),
    query=SearchQuery,
    examples={"q": "hello"},
)
async def search_sessions(request: Request) -> Response:
    """Search sessions for text in messages and in the inputs and outputs of tools."""
    service, query = current_service(request), read_query(request, SearchQuery)
    most = query.offset + query.limit + 1
    how: Any = {"sort": query.sort, "order": query.order, "limit": most}
    found = await in_thread(service, _search, service, query.q, query.as_filter(), how)
    return await _page_response(request, found, query.offset, query.limit)


@operations.get("/{agent}/{session_id}", ResponseSpec(Session), errors=_ERRORS)
async def get_session(request: Request) -> Response:
    """Get one session with all its messages."""
    service = current_service(request)
    return await masked_answer(service, await in_thread(service, service.mux.sessions.get, *session_reference(request)))


@operations.get(
    "/{agent}/{session_id}/events",
    ResponseSpec(description="One event per line, as JSON.", other_media={JSONL: SchemaRef("AgentEvent")}),
    query=EventsQuery,
    errors=_ERRORS,
    is_stream=True,
)
async def read_session_events(request: Request) -> Response:
    """Get a session as the events of an equivalent run."""
    service, query = current_service(request), read_query(request, EventsQuery)
    events = await in_thread(service, open_session_events, service.mux.sessions, *session_reference(request))
    chunks = session_event_stream(service, events, as_json_line, accumulated=query.accumulated)
    return ChunkStream(chunks, media_type=JSONL)


@operations.get(
    "/{agent}/{session_id}/export",
    ResponseSpec(
        Session,
        description="The document, as an attachment.",
        other_media={JSONL: dict[str, Any], "text/markdown": str, "text/html": str},
        headers={"Content-Disposition": "`attachment` with a file name."},
    ),
    query=ExportQuery,
    errors=_ERRORS,
)
async def export_session(request: Request) -> Response:
    """Export a session as JSON, JSON lines, Markdown, or one self-contained HTML file without scripts."""
    service, query = current_service(request), read_query(request, ExportQuery)
    named, session_filter = session_reference(request)
    content = await in_thread(service, _export, service, named, query.format, session_filter)
    media_type, suffix = _MEDIA_TYPES[query.format]
    headers = {"content-disposition": f'attachment; filename="{file_name(*_path_of(request), suffix)}"', **INERT}
    return Response(content, headers=headers, media_type=media_type)


def file_name(agent: str, session_id: str, suffix: str) -> str:
    """Return a file name that is valid on every system, whatever the session id contains."""
    name = re.sub(r"[^A-Za-z0-9_-]+", "-", f"{agent}-{session_id}")[:LONGEST_FILE_NAME]
    return f"{name}.{suffix}"


def session_reference(request: Request) -> tuple[str, SessionFilter]:
    """Return the session with its agent as prefix, so that a colon in the id is not taken for one."""
    agent, session_id = _path_of(request)
    return f"{agent}:{session_id}", SessionFilter(agent=agent)


def _path_of(request: Request) -> tuple[str, str]:
    return request.path_params["agent"], request.path_params["session_id"]


def _list_summaries(sessions: Sessions, session_filter: SessionFilter, how: Mapping[str, Any]) -> SessionListing:
    return sessions.list(session_filter, **how)


def _search(service: Service, text: str, session_filter: SessionFilter, how: Mapping[str, Any]) -> list[Hit]:
    return service.mux.sessions.search(text, session_filter, **how, mask=service.secrets.mask_text)


def _export(service: Service, session: str, format_: Format, session_filter: SessionFilter) -> bytes:
    return service.secrets.mask(
        service.mux.sessions.export(session, format_, session_filter).encode("utf-8", "replace")
    )


async def _page_response(request: Request, found: list[Any], offset: int, limit: int) -> Response:
    service, after_position = current_service(request), offset + limit
    if len(found) <= after_position:
        return await masked_answer(service, found[offset:])
    following = request.url.include_query_params(offset=after_position, limit=limit)
    link = f'<{following.path}?{following.query}>; rel="next"'
    return await masked_answer(service, found[offset:after_position], {"link": link})


@cost_operations.get(
    "", ResponseSpec(CostView), query=CostQuery, errors=("AGENT_NOT_FOUND", "CAPABILITY_ERROR"), examples={"by": "day"}
)
async def report_cost(request: Request) -> Response:
    """Report the cost of stored sessions in US dollars. A model call that a fork copied counts once.

    Costs reported by agents (native) and costs computed from price lists (computed) are separate; calls without a known
    price are counted. Times and models are those of the calls.
    """
    service, query = current_service(request), read_query(request, CostQuery)
    return json_answer(await in_thread(service, _cost_report, service.mux.sessions, query.as_filter(), query.by))


def _cost_report(sessions: Sessions, session_filter: SessionFilter, by: GroupBy) -> dict[str, Any]:
    return cost_json(by, sessions.total_cost(session_filter, group_by=by))
