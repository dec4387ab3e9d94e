"""`/v1/runs/{id}/events` and `/v1/runs/{id}/ws`: the events of a run, as a stream or over a WebSocket with commands."""

from collections.abc import Mapping
from typing import Annotated

from msgspec import Meta
from starlette.requests import Request
from starlette.responses import Response
from starlette.websockets import WebSocket

from agent_mux.errors import AgentMuxError, FieldError, ValidationError
from agent_mux.events import ALL_EVENTS
from agent_mux.run.base import TERMINAL_STATES
from agent_mux.service.http_streams import (
    PING,
    ChunkStream,
    EventSelection,
    Frame,
    as_json_line,
    as_sse,
    event_stream,
    event_stream_with_snapshots,
)
from agent_mux.service.openapi.descriptions import JSONL, SSE, ResponseSpec, SchemaRef, SseMessages
from agent_mux.service.openapi.operations import OperationGroup
from agent_mux.service.parameters import HeaderParameters, QueryParameters, parameters_of
from agent_mux.service.routes.requests import (
    accepts_lines,
    current_actor,
    current_caller,
    current_service,
    read_headers,
    read_query,
    run_id_of,
)
from agent_mux.service.security.http_rules import RequestRefused
from agent_mux.service.service import Service, in_thread
from agent_mux.service.websocket import RunWebSocket, close_code, numbered_frame, plain_frame

operations = OperationGroup("/v1/runs", tag="events")
TYPES = frozenset(event.type for event in ALL_EVENTS)
_FRAMES: Mapping[str, tuple[Frame, bytes]] = {SSE: (as_sse, PING), JSONL: (as_json_line, b"")}
LATEST = 1 << 53  # JSON numbers are exact up to here
LARGEST_PART = 16 << 20  # bytes of a text in one response


class SelectionQuery(QueryParameters):
    """Query that selects events."""

    after: (
        Annotated[int, Meta(ge=-1, le=LATEST, description="Like `Last-Event-ID`; -1 starts at the first event.")] | None
    ) = None
    types: Annotated[str, Meta(description="Only these event types, comma-separated.")] | None = None
    accumulated: Annotated[bool, Meta(description="Include accumulated text in delta events.")] = False


class StreamQuery(SelectionQuery):
    """Query of a stream of events."""

    snapshots: Annotated[bool, Meta(description="Include snapshots of the run whenever it changes.")] = False


class StreamHeaders(HeaderParameters):
    """Headers of a request for a stream."""

    last_event_id: Annotated[str, Meta(description="Id of the last received event; overrides `after`.")] | None = None


class SocketQuery(SelectionQuery):
    """Query of a WebSocket."""

    numbered: Annotated[bool, Meta(description="Send each event with its number.")] = False


class TextQuery(QueryParameters):
    """Which part of the text to read."""

    offset: Annotated[int, Meta(ge=0, le=LATEST, description="First byte.")] = 0
    limit: (
        Annotated[
            int,
            Meta(ge=0, le=LARGEST_PART, description="Maximum number of bytes; without it, a longer text is refused."),
        ]
        | None
    ) = None


@operations.get(
    "/{run_id}/events",
    ResponseSpec(
        description="The events, then the result. The stream ends with the run.",
        other_media={
            SSE: SseMessages((SchemaRef("AgentEvent"), SchemaRef("RunResult")), SchemaRef("RunSnapshot")),
            JSONL: (SchemaRef("AgentEvent"), SchemaRef("RunResult")),
        },
    ),
    ResponseSpec(status=204, description="The run has ended and nothing follows that id."),
    query=StreamQuery,
    headers=StreamHeaders,
    errors=("RUN_NOT_FOUND",),
    is_stream=True,
)
async def read_events(request: Request) -> Response:
    """Stream the events of a run, from the first or after `Last-Event-ID`, until its end; its result comes last.

    The `id` of an event is its number, from 0. The format is Server-Sent Events, or with `Accept: application/jsonl`
    the lines of `amux run --json --compact`. 204: the run has ended, and the stream after that id is empty. A stream
    whose token is no longer valid ends with a message of type `error`, with the code UNAUTHENTICATED.

    With `snapshots`, messages of type `run` have the state of the run, as `GET /v1/runs` lists it: one at the start,
    and one whenever it changed, before the events that changed it. They have no id. Server-Sent Events only; with
    `Accept: application/jsonl`, `snapshots` is refused (422).
    """
    run_id, service, query = run_id_of(request), current_service(request), read_query(request, StreamQuery)
    media_type = JSONL if accepts_lines(request) else SSE
    start = _start(read_headers(request, StreamHeaders).last_event_id, query.after)
    if query.snapshots and media_type != SSE:
        raise ValidationError([FieldError("snapshots", query.snapshots, "false, unless `Accept` is text/event-stream")])
    selection = _selection(query, start)
    if await is_past_end(service, run_id, start):
        return Response(status_code=204)
    frame, ping = _FRAMES[media_type]
    if query.snapshots:
        chunks = event_stream_with_snapshots(service, run_id, selection)
    else:
        chunks = event_stream(service, run_id, selection, frame)
    return ChunkStream(chunks, media_type=media_type, ping=ping)


@operations.get(
    "/{run_id}/text",
    ResponseSpec(
        description="The bytes of the text, in UTF-8.",
        other_media={"text/plain": str},
        headers={"X-Text-Size": "Number of bytes of the whole text."},
    ),
    query=TextQuery,
    errors=("RUN_NOT_FOUND", "PARSE_ERROR"),
)
async def read_text(request: Request) -> Response:
    """Read the whole text of the last turn of a run by range, from the journal.

    The `text` of the result is its beginning when the text exceeds `maxTextBytes`. A text of more than 16 MiB needs a
    `limit`.
    """
    run_id, service, query = run_id_of(request), current_service(request), read_query(request, TextQuery)
    await service.runs.get(run_id, full=False)
    limit = LARGEST_PART if query.limit is None else query.limit
    content, size = await in_thread(service, service.streams.text, run_id, query.offset, limit)
    if query.limit is None and size - query.offset > len(content):
        raise RequestRefused(413, f"the text has {size} bytes; read it in parts with `offset` and `limit`")
    return Response(content, headers={"x-text-size": str(size)}, media_type="text/plain")


def _start(last_event_id: str | None, after: int | None) -> int:
    """Return the number of the first event to send. `Last-Event-ID` of a reconnecting client overrides its URL."""
    if last_event_id is None or not last_event_id.strip():
        return 0 if after is None else after + 1
    value = last_event_id.strip()
    if not (value.isascii() and value.isdigit() and len(value) <= 16):
        raise ValidationError([FieldError("Last-Event-ID", value, "the id of an event: a number")])
    return int(value) + 1


async def is_past_end(service: Service, run_id: str, start: int) -> bool:
    """Return whether the run has ended and neither events nor the result follow this number.

    Raises RUN_NOT_FOUND, also for a missing journal, and `ValidationError` for a number beyond the events so far.
    """
    view = await service.runs.get(run_id, full=False)
    count = view.event_count if isinstance(view.event_count, int) else 0
    if start <= count:
        await service.streams.check_readable(view)  # before the response starts
        return False
    if view.state in TERMINAL_STATES and start == count + 1:
        return True
    raise ValidationError(
        [FieldError("Last-Event-ID", start - 1, f"the id of an event; the run has {count}, numbered from 0")]
    )


def parse_types(value: str | None) -> frozenset[str] | None:
    """Return the selected event types; None: all. Raises `ValidationError` for unknown ones."""
    if value is None:
        return None
    selection = frozenset(part.strip() for part in value.split(",") if part.strip())
    unknown = [FieldError("types", one, "event types; see `amux schema event`") for one in selection - TYPES]
    if unknown:
        raise ValidationError(unknown)
    return selection


def _selection(query: SelectionQuery, start: int) -> EventSelection:
    return EventSelection(start=start, types=parse_types(query.types), accumulated=query.accumulated)


async def connect_run(websocket: WebSocket) -> None:
    """Send events and receive commands of a run. Query: `after`, `types`, `accumulated` as for `events`; `numbered`.

    Close codes: 1000 after the result, else 4000 plus the HTTP status of the error, such as 4404, or 4401 when the
    token is no longer valid. The query is
    validated here, after the handshake, so that browsers receive the error, too.
    """
    await websocket.accept()
    try:
        run_id, service, query = run_id_of(websocket), current_service(websocket), _read_socket_query(websocket)
        selection = _selection(query, _start(None, query.after))
        is_done = await is_past_end(service, run_id, selection.start)
    except AgentMuxError as error:
        await websocket.close(*close_code(error))
        return
    if is_done:
        await websocket.close()
        return
    connection = RunWebSocket(
        websocket,
        service,
        run_id,
        actor=current_actor(websocket),
        selection=selection,
        caller=current_caller(websocket),
        frame=numbered_frame if query.numbered else plain_frame,
    )
    await connection.serve()


def _read_socket_query(websocket: WebSocket) -> SocketQuery:
    names = [one.name for one in parameters_of(SocketQuery)]
    unknown = [
        FieldError(one, websocket.query_params[one], ", ".join(names))
        for one in websocket.query_params.keys() - set(names)
    ]
    if unknown:
        raise ValidationError(unknown)
    return read_query(websocket, SocketQuery)
