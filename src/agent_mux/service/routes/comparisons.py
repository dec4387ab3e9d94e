"""`/v1/comparisons`: start, read, stream, export, stop, resume, apply and delete comparisons."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta
from starlette.requests import Request
from starlette.responses import Response

from agent_mux._util.sanitize import to_json_bytes
from agent_mux.compare.report import report_of
from agent_mux.compare.store import report_in
from agent_mux.errors import AnyCode, FieldError, ValidationError
from agent_mux.sdk.options import RUN_ID
from agent_mux.service.comparisons.positions import MAX_LENGTH, StreamPosition
from agent_mux.service.comparisons.requests import ComparisonBody, StrategyName
from agent_mux.service.comparisons.store import StoredComparison
from agent_mux.service.comparisons.streaming import message_as_json_line, message_as_sse
from agent_mux.service.comparisons.views import (
    AppliedView,
    ComparisonEntry,
    ComparisonPage,
    ComparisonStatus,
    ComparisonView,
    FactMessage,
    JudgeRunView,
    TrialEventMessage,
    applied_view,
    entry_of,
    judge_run_view,
    view_of,
)
from agent_mux.service.http_streams import PING, ChunkStream
from agent_mux.service.openapi.descriptions import JSON, JSONL, SSE, BodySpec, Links, ResponseSpec, SseMessages
from agent_mux.service.openapi.operations import OperationGroup
from agent_mux.service.parameters import HeaderParameters, QueryParameters
from agent_mux.service.routes.requests import (
    accepts_lines,
    current_actor,
    current_caller,
    current_service,
    json_body,
    masked_answer,
    read_headers,
    read_query,
)
from agent_mux.service.routes.runs import LARGEST_PAGE, CreationHeaders, Name
from agent_mux.service.routes.sessions import INERT
from agent_mux.service.security.rate_limits import charge
from agent_mux.service.service import Service, in_thread

operations = OperationGroup("/v1/comparisons", tag="comparisons")
START_ERRORS: tuple[AnyCode, ...] = (
    "AGENT_NOT_FOUND",
    "PROFILE_NOT_FOUND",
    "AGENT_NOT_INSTALLED",
    "AUTH_ERROR",
    "CAPABILITY_ERROR",
    "CONFIG_ERROR",
    "SPAWN_ERROR",
)
MAX_VARIABLES = 200
_LINKS: Links = {
    name: {"comparison_id": "$response.body#/id"}
    for name in ("get_comparison", "read_comparison", "export_comparison", "stop_comparison", "delete_comparison")
}
_STREAM = SseMessages(
    (FactMessage, TrialEventMessage),
    id_pattern=r"^[0-9]+(,[A-Za-z0-9._-]+:[0-9]+)*$",
    id_description="Position behind the message. Send it as `Last-Event-ID`, unchanged.",
)


Select = Annotated[
    StrategyName, Meta(max_length=64, description="Strategy that selects a trial; default: that of the comparison.")
]


class RecordsQuery(QueryParameters):
    """Query of comparisons."""

    records: Annotated[bool, Meta(description="Include the stored records.")] = False


class ComparisonQuery(RecordsQuery):
    """Query of one comparison."""

    select: Select | None = None


_DEFAULTS = ComparisonQuery()
_DOCUMENTS = {
    "markdown": ("text/markdown; charset=utf-8", "md"),
    "html": ("text/html; charset=utf-8", "html"),
}
"""Media type and suffix of each kind of document."""


class ListQuery(RecordsQuery):
    """Filters and position of a page of comparisons."""

    status: Annotated[ComparisonStatus, Meta(description="Only comparisons with this status.")] | None = None
    owner: Annotated[Name, Meta(description="Name of the token that created the comparison.")] | None = None
    limit: Annotated[int, Meta(ge=1, le=LARGEST_PAGE, description="Page size.")] = 50
    cursor: Annotated[str, Meta(description="The `next` of the previous page.")] | None = None


class MessageQuery(QueryParameters):
    """Query of a stream."""

    after: Annotated[str, Meta(max_length=MAX_LENGTH, description="Like `Last-Event-ID`.")] | None = None
    events: Annotated[bool, Meta(description="Include the events of the trials.")] = True


class MessageHeaders(HeaderParameters):
    """Headers of a request for a stream."""

    last_event_id: Annotated[str, Meta(description="Id of the last received message; overrides `after`.")] | None = None


class ExportQuery(QueryParameters):
    """Query of an export."""

    format: Annotated[Literal["json", "markdown", "html"], Meta(description="Format of the document.")] = "json"
    select: Select | None = None


class ResumptionBody(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """The body of a request to resume a comparison."""

    env: Annotated[
        dict[str, str],
        Meta(
            max_length=MAX_VARIABLES,
            description="Variables for the agents, if the comparison had some: they are not stored.",
        ),
    ] = {}


class ApplicationBody(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """The body of a request to apply a trial."""

    trial: Annotated[str, Meta(min_length=1, description="Trial id.")]
    check: Annotated[bool, Meta(description="Run the checks again, on a copy of the directory.")] = True


@operations.post(
    "",
    ResponseSpec(
        ComparisonView,
        201,
        "The comparison was started.",
        headers={"Location": "Path of the comparison."},
        links=_LINKS,
    ),
    ResponseSpec(
        ComparisonView,
        200,
        "A request with this key created this comparison before.",
        headers={"Location": "Path of the comparison.", "Idempotent-Replayed": "`true`."},
    ),
    headers=CreationHeaders,
    body=BodySpec(
        shape=ComparisonBody,
        examples={
            "builtIn": {"prompt": "Do nothing.", "candidates": ["null"], "checks": ["true"]},
        },
    ),
    errors=START_ERRORS,
)
async def create_comparison(request: Request) -> Response:
    """Start a comparison: several candidates on one task, each in its own copy of one start, judged by checks.

    Paths are those of the service's machine, inside its roots, absolute or relative to the first root. Each trial of an
    agent counts as the start of a run, and so does each run that a judge may need. Requests of agents wait for an
    answer (`/trials/{trial}/approve`, ...), unless `options` has an `approvalMode`. Repeating a request with the same
    `Idempotency-Key` returns the comparison that it created (200).
    """
    service, actor = current_service(request), current_actor(request)
    key = read_headers(request, CreationHeaders).idempotency_key
    body = await json_body(request, ComparisonBody)
    comparison_id, is_new = await service.comparisons.create(
        body, idempotency_key=key, actor=actor, admit=lambda count: _charge(request, service, count)
    )
    headers = {"location": f"/v1/comparisons/{comparison_id}"}
    if not is_new:
        headers["idempotent-replayed"] = "true"
    return await _view_answer(service, comparison_id, status=201 if is_new else 200, headers=headers)


@operations.get(
    "",
    ResponseSpec(ComparisonPage, links={"get_comparison": {"comparison_id": "$response.body#/comparisons/0/id"}}),
    query=ListQuery,
    errors=("CONFIG_ERROR",),
)
async def list_comparisons(request: Request) -> Response:
    """List comparisons that match all filters, latest first."""
    service, query = current_service(request), read_query(request, ListQuery)
    if query.cursor is not None and RUN_ID.fullmatch(query.cursor) is None:
        raise ValidationError([FieldError("(cursor)", query.cursor[:80], "the `next` of the previous page")])
    return await masked_answer(service, await in_thread(service, _page, service, query))


def _page(service: Service, query: ListQuery) -> ComparisonPage:
    entries: list[ComparisonEntry] = []
    for stored in service.comparisons.store.page(query.cursor):
        if query.status in {None, stored.record.status} and query.owner in {None, stored.requester.owner}:
            if len(entries) == query.limit:
                return ComparisonPage(comparisons=entries, next=entries[-1].id)
            entries.append(entry_of(stored, has_record=query.records))
    return ComparisonPage(comparisons=entries)


@operations.get(
    "/{comparison_id}",
    ResponseSpec(ComparisonView),
    query=ComparisonQuery,
    errors=("NOT_FOUND", "CONFIG_ERROR"),
)
async def get_comparison(request: Request) -> Response:
    """Get a comparison: its state, and the results so far as a table and as the report of `amux compare --json`."""
    query = read_query(request, ComparisonQuery)
    return await _view_answer(current_service(request), comparison_id_of(request), query)


@operations.get(
    "/{comparison_id}/events",
    ResponseSpec(
        description="The messages. The stream ends with the comparison.",
        other_media={SSE: _STREAM, JSONL: (FactMessage, TrialEventMessage)},
    ),
    ResponseSpec(status=204, description="The comparison is over and nothing follows that id."),
    query=MessageQuery,
    headers=MessageHeaders,
    errors=("NOT_FOUND", "CONFIG_ERROR"),
    is_stream=True,
)
async def read_comparison(request: Request) -> Response:
    """Stream the facts of a comparison and the events of its trials, from the first or after `Last-Event-ID`.

    The events of an attempt follow its `attempt_started` and precede its `attempt_ended` or `trial_ended`; those of
    different trials are in the order of their arrival. The stream ends when the comparison is over (`ended`); it
    continues there if the comparison is resumed. Server-Sent Events, or with `Accept: application/jsonl` JSON lines.
    """
    service, query = current_service(request), read_query(request, MessageQuery)
    comparison_id = comparison_id_of(request)
    received = (read_headers(request, MessageHeaders).last_event_id or "").strip()
    if received:
        position = StreamPosition.parse(received)
    else:
        position = StreamPosition() if query.after is None else StreamPosition.parse(query.after, "after")
    if await service.comparison_streams.is_past_end(comparison_id, position):
        return Response(status_code=204)
    is_lines = accepts_lines(request)
    frame, media_type, ping = (message_as_json_line, JSONL, b"") if is_lines else (message_as_sse, SSE, PING)
    chunks = service.comparison_streams.chunks(comparison_id, position, frame, has_events=query.events)
    return ChunkStream(chunks, media_type=media_type, ping=ping)


@operations.get(
    "/{comparison_id}/export",
    ResponseSpec(
        ComparisonView,
        description="The document, as an attachment.",
        other_media={"text/markdown": str, "text/html": str},
        headers={"Content-Disposition": "`attachment` with a file name."},
    ),
    query=ExportQuery,
    errors=("NOT_FOUND", "CONFIG_ERROR"),
)
async def export_comparison(request: Request) -> Response:
    """Export a comparison as JSON with its records, as Markdown, or as one HTML file that needs no network."""
    service, query = current_service(request), read_query(request, ExportQuery)
    comparison_id = comparison_id_of(request)
    content, media_type, suffix = await in_thread(service, _export, service, comparison_id, query)
    headers = {"content-disposition": f'attachment; filename="comparison-{comparison_id}.{suffix}"', **INERT}
    return Response(content, headers=headers, media_type=media_type)


def _export(service: Service, comparison_id: str, query: ExportQuery) -> tuple[bytes, str, str]:
    """Return a document without secrets, its media type and the suffix of its file."""
    kept, strategy, mask = service.comparisons.store, query.select, service.secrets.mask
    if query.format == "json":
        stored = kept.get(comparison_id)
        report = report_in(kept.folder(comparison_id).path, stored.record, strategy=strategy)
        return mask(to_json_bytes(view_of(stored, report, has_record=True))), JSON, "json"
    name = kept.folder(comparison_id).path.name
    text = kept.comparisons.export(query.format, name, strategy=strategy, adapters=service.mux.adapters)
    media_type, suffix = _DOCUMENTS[query.format]
    return mask(text.encode("utf-8", "replace")), media_type, suffix


@operations.post("/{comparison_id}/stop", ResponseSpec(ComparisonView), errors=("NOT_FOUND", "CONFIG_ERROR"))
async def stop_comparison(request: Request) -> Response:
    """Abort the active trials and start no further one; answer when the comparison is over. It can be resumed.

    A comparison that is not active stays as it is.
    """
    service, comparison_id = current_service(request), comparison_id_of(request)
    await service.comparisons.stop(comparison_id, actor=current_actor(request))
    return await _view_answer(service, comparison_id)


@operations.post(
    "/{comparison_id}/resume",
    ResponseSpec(ComparisonView, description="The comparison continues."),
    body=BodySpec(shape=ResumptionBody, is_required=False),
    errors=("NOT_FOUND", "INVALID_STATE_TRANSITION", *START_ERRORS),
)
async def resume_comparison(request: Request) -> Response:
    """Run the trials that a comparison has left, after a stop, a pause or a crash of the service.

    Finished trials stay as they are; an attempt that was interrupted is kept and repeated. Each trial of an agent that
    is left counts as the start of a run.
    """
    service, comparison_id = current_service(request), comparison_id_of(request)
    body = await json_body(request, ResumptionBody)
    await service.comparisons.resume(
        comparison_id,
        env=body.env,
        actor=current_actor(request),
        admit=lambda count: _charge(request, service, count),
    )
    return await _view_answer(service, comparison_id)


@operations.post(
    "/{comparison_id}/apply",
    ResponseSpec(AppliedView, description="The changes were made, uncommitted."),
    body=BodySpec(shape=ApplicationBody),
    errors=("NOT_FOUND", "FORBIDDEN", "INVALID_STATE_TRANSITION", "CONFIG_ERROR", "INTERNAL"),
)
async def apply_comparison(request: Request) -> Response:
    """Make the changes of a trial in the directory that was compared on, and run the checks again on a copy of it.

    If the directory has changed since, the changes are merged (three-way). If they conflict, nothing is changed (409).
    """
    service, comparison_id = current_service(request), comparison_id_of(request)
    body = await json_body(request, ApplicationBody)
    applied = await service.comparisons.apply(
        comparison_id, body.trial, has_checks=body.check, actor=current_actor(request)
    )
    return await masked_answer(service, applied_view(applied))


@operations.delete(
    "/{comparison_id}",
    ResponseSpec(status=204, description="The comparison was deleted."),
    errors=("NOT_FOUND", "INVALID_STATE_TRANSITION", "CONFIG_ERROR"),
)
async def delete_comparison(request: Request) -> Response:
    """Delete a comparison that is not active, with all its records."""
    service, comparison_id = current_service(request), comparison_id_of(request)
    await service.comparisons.delete(comparison_id, actor=current_actor(request))
    return Response(status_code=204)


def comparison_id_of(request: Request) -> str:
    """Return the id in a path; the store refuses what cannot be one."""
    return str(request.path_params["comparison_id"])


async def _view_answer(
    service: Service,
    comparison_id: str,
    query: ComparisonQuery = _DEFAULTS,
    *,
    status: int = 200,
    headers: dict[str, str] | None = None,
) -> Response:
    live = service.comparisons.live(comparison_id)
    judge_run = None if live is None or live.judge_run is None else judge_run_view(*live.judge_run)
    view = await in_thread(service, _view, service, comparison_id, query, judge_run)
    return await masked_answer(service, view, headers, status=status)


def _view(
    service: Service, comparison_id: str, query: ComparisonQuery, judge_run: JudgeRunView | None
) -> ComparisonView:
    stored = service.comparisons.store.get(comparison_id)
    return view_of(stored, _report(service, stored, query.select), judge_run, has_record=query.records)


def _report(service: Service, stored: StoredComparison, strategy: str | None) -> Any:
    """Return the report; differences between candidates are known when the comparison is over."""
    if stored.record.status == "active":
        return report_of(stored.record, strategy=strategy)
    return report_in(service.comparisons.store.folder(stored.record.plan.id).path, stored.record, strategy=strategy)


def _charge(request: Request, service: Service, count: int) -> None:
    if count:
        charge(request.scope["state"], service.limiter, current_caller(request), "runs", count=count)
