"""`/v1/runs/{id}/events` and `/v1/runs/{id}/ws`: the events of a run, as a stream or over a WebSocket with commands."""

from collections.abc import Mapping
from typing import Annotated

from fastapi import APIRouter, Header, Query, WebSocket
from starlette.datastructures import QueryParams
from starlette.responses import Response

from agent_mux.errors import AgentMuxError, FieldError, ValidationError
from agent_mux.events import ALL_EVENTS
from agent_mux.run.base import TERMINAL_STATES
from agent_mux.service.openapi.descriptions import JSONL, SSE, ResponseSpec, SchemaRef, described
from agent_mux.service.routes.requests import CurrentService, RunId, current_service
from agent_mux.service.service import Service
from agent_mux.service.streaming import (
    PING,
    ChunkStream,
    EventSelection,
    Frame,
    as_json_line,
    as_sse,
    event_stream,
    event_stream_with_snapshots,
)
from agent_mux.service.websocket import RunWebSocket, close_code, numbered_frame, plain_frame

router = APIRouter(prefix="/v1/runs", tags=["events"])
TYPES = frozenset(event.type for event in ALL_EVENTS)
_FRAMES: Mapping[str, tuple[Frame, bytes]] = {SSE: (as_sse, PING), JSONL: (as_json_line, b"")}
_BOOLEANS = {"true": True, "false": False}


@router.get("/{run_id}/events")
@described(
    ResponseSpec(
        description="The events, then the result. The stream ends with the run.",
        other_media=dict.fromkeys((SSE, JSONL), (SchemaRef("AgentEvent"), SchemaRef("RunResult"))),
    ),
    ResponseSpec(status=204, description="The run has ended and nothing follows that id."),
    errors=("RUN_NOT_FOUND",),
    is_stream=True,
)
async def read_events(  # noqa: PLR0913, PLR0917  # query parameters
    run_id: RunId,
    service: CurrentService,
    accept: Annotated[str, Header()] = "",
    last_event_id: Annotated[
        str | None, Header(description="Id of the last received event; overrides `after`.")
    ] = None,
    after: Annotated[
        int | None, Query(ge=-1, le=1 << 53, description="Like `Last-Event-ID`; -1 starts at the first event.")
    ] = None,
    types: Annotated[str | None, Query(description="Only these event types, comma-separated.")] = None,
    accumulated: Annotated[bool, Query(description="Include accumulated text in delta events.")] = True,
    snapshots: Annotated[bool, Query(description="Include snapshots of the run whenever it changes.")] = False,
) -> Response:
    """Stream the events of a run, from the first or after `Last-Event-ID`, until its end; its result comes last.

    The `id` of an event is its number, from 0. The format is Server-Sent Events, or with `Accept: application/jsonl`
    the lines of `amux run --json`. 204: the run has ended, and the stream after that id is empty.

    With `snapshots`, messages of type `run` have the state of the run, as `GET /v1/runs/{id}` returns it: one at the
    start, and one whenever it changed, before the events that changed it. They have no id. Server-Sent Events only.
    """
    media_type = JSONL if "jsonl" in accept or "ndjson" in accept else SSE
    start = _start(last_event_id, after)
    if await is_past_end(service, run_id, start):
        return Response(status_code=204)
    frame, ping = _FRAMES[media_type]
    selection = EventSelection(start=start, types=parse_types(types), accumulated=accumulated)
    if snapshots and media_type != SSE:
        raise ValidationError([FieldError("snapshots", snapshots, "false, unless `Accept` is text/event-stream")])
    if snapshots:
        chunks = event_stream_with_snapshots(service.runs, service.event_cache, run_id, selection)
    else:
        chunks = event_stream(service.runs, service.event_cache, run_id, selection, frame)
    return ChunkStream(chunks, media_type=media_type, ping=ping)


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
        await service.runs.check_readable(view)  # before the response starts
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


@router.websocket("/{run_id}/ws")
async def connect_run(run_id: str, websocket: WebSocket) -> None:
    """Send events and receive commands of a run. Query: `after`, `types`, `accumulated` as for `events`; `numbered`.

    Close codes: 1000 after the result, else 4000 plus the HTTP status of the error, such as 4404. The query is
    validated here, after the handshake, so that browsers receive the error, too.
    """
    await websocket.accept()
    try:
        service = current_service(websocket)
        selection, is_numbered = _parse_query(websocket.query_params)
        is_done = await is_past_end(service, run_id, selection.start)
    except AgentMuxError as error:
        await websocket.close(*close_code(error))
        return
    if is_done:
        await websocket.close()
        return
    connection = RunWebSocket(
        websocket,
        service.runs,
        service.event_cache,
        run_id,
        selection=selection,
        frame=numbered_frame if is_numbered else plain_frame,
        may_command=_may_command(websocket),
    )
    await connection.serve()


def _parse_query(query: QueryParams) -> tuple[EventSelection, bool]:
    unknown = sorted(set(query) - {"after", "types", "accumulated", "numbered"})
    if unknown:
        raise ValidationError([FieldError(unknown[0], query[unknown[0]], "after, types, accumulated, numbered")])
    selection = EventSelection(
        start=_parse_number(query.get("after", "-1")) + 1,
        types=parse_types(query.get("types")),
        accumulated=_parse_bool("accumulated", query.get("accumulated", "true")),
    )
    return selection, _parse_bool("numbered", query.get("numbered", "false"))


def _parse_number(value: str) -> int:
    if value == "-1" or (value.isascii() and value.isdigit() and len(value) <= 15):
        return int(value)
    raise ValidationError([FieldError("after", value, "the number of an event, or -1")])


def _parse_bool(name: str, value: str) -> bool:
    if value not in _BOOLEANS:
        raise ValidationError([FieldError(name, value, "true or false")])
    return _BOOLEANS[value]


def _may_command(websocket: WebSocket) -> bool:
    """Return whether the caller may send commands: reading needs the scope `read`, commands need `run`."""
    caller = getattr(websocket.state, "caller", None)
    return caller is None or bool(caller.may("run"))
