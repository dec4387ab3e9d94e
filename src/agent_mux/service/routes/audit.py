"""`/v1/audit`: who did what. Only for administrators: it names all callers and their addresses."""

from typing import Annotated, Any

from msgspec import UNSET, Meta, UnsetType, json
from starlette.requests import Request
from starlette.responses import Response

from agent_mux.api import JsonView
from agent_mux.service.audit.entries import Action, Origin, TargetType
from agent_mux.service.openapi.descriptions import ResponseSpec
from agent_mux.service.openapi.operations import OperationGroup
from agent_mux.service.parameters import QueryParameters
from agent_mux.service.routes.requests import current_service, format_cursor, json_answer, parse_cursor, read_query
from agent_mux.service.store.audit import AuditFilter, AuditPosition, AuditRow

operations = OperationGroup("/v1/audit", tag="audit")
LARGEST_PAGE = 200
LATEST = 1 << 53  # milliseconds; JSON numbers are exact up to here
MAX_ACTIONS = 32
Name = Annotated[str, Meta(max_length=200)]
Time = Annotated[int, Meta(ge=0, le=LATEST)]


class AuditView(JsonView, kw_only=True):
    """One recorded action. Times are milliseconds since the epoch."""

    audit_id: str
    created_at: Annotated[int, Meta(description="Before the action was carried out.")]
    action: Action
    actor: Annotated[str | UnsetType, Meta(description="Name of the token; absent without one.")] = UNSET
    token_id: Annotated[str | UnsetType, Meta(description="Id of the token, never its secret.")] = UNSET
    origin: Annotated[Origin, Meta(description="How the action was requested; `retention`: by the service itself.")]
    client: Annotated[
        str | UnsetType, Meta(description="Address of the peer, a proxy included; for `cli` the user of the machine.")
    ] = UNSET
    request_id: Annotated[str | UnsetType, Meta(description="`X-Request-Id` of the request.")] = UNSET
    target_type: TargetType
    target: Annotated[str, Meta(description="Id of the run, the webhook or the token, or name of the profile.")]
    detail: Annotated[dict[str, Any], Meta(description="What the action depended on, without secrets and contents.")]
    outcome: Annotated[
        str | UnsetType,
        Meta(description="`ok` or an error code; absent while it is carried out, or if the service was killed then."),
    ] = UNSET


class AuditPage(JsonView, kw_only=True):
    """A page of the audit trail, latest first."""

    entries: list[AuditView]
    next: Annotated[
        str | UnsetType, Meta(description="Pass it as `cursor` to get the next page; absent on the last page.")
    ] = UNSET


class AuditQuery(QueryParameters):
    """Filters and position of a page of the audit trail."""

    action: Annotated[list[Action], Meta(max_length=MAX_ACTIONS, description="One or more actions.")] | None = None
    actor: Annotated[Name, Meta(description="Name of the token.")] | None = None
    target_type: Annotated[TargetType, Meta(description="Kind of the target.")] | None = None
    target: Annotated[Name, Meta(description="Id or name of the target, such as a run id.")] | None = None
    outcome: Annotated[Name, Meta(description="`ok` or an error code.")] | None = None
    since: Annotated[Time, Meta(description="At or after: ms since the epoch.")] | None = None
    until: Annotated[Time, Meta(description="Before: ms since the epoch.")] | None = None
    limit: Annotated[int, Meta(ge=1, le=LARGEST_PAGE, description="Page size.")] = 50
    cursor: Annotated[str, Meta(description="The `next` of the previous page.")] | None = None

    def as_filter(self) -> AuditFilter:
        """Return the query as a filter of the audit log."""
        return AuditFilter(
            actions=tuple(self.action or ()),
            actor=self.actor,
            target_type=self.target_type,
            target=self.target,
            outcome=self.outcome,
            since=self.since,
            until=self.until,
        )


def audit_view(row: AuditRow) -> AuditView:
    """Return the view of an entry."""
    given: dict[str, Any] = {
        name: getattr(row, name) or UNSET for name in ("actor", "token_id", "client", "request_id", "outcome")
    }
    return AuditView(
        audit_id=row.audit_id,
        created_at=row.created_at,
        action=row.action,  # type: ignore[arg-type]  # the columns have what `new_entry` wrote
        origin=row.origin,  # type: ignore[arg-type]
        target_type=row.target_type,  # type: ignore[arg-type]
        target=row.target,
        detail=json.decode(row.detail),
        **given,
    )


@operations.get("", ResponseSpec(AuditPage), query=AuditQuery)
async def list_audit(request: Request) -> Response:
    """List who started, controlled and deleted runs and changed tokens, webhooks and profiles, latest first.

    An entry is written before its action is carried out, or together with it. Needs the scope `admin`.
    """
    service, query = current_service(request), read_query(request, AuditQuery)
    position = AuditPosition(*parse_cursor(query.cursor)) if query.cursor else None
    rows = await service.audit.page(query.as_filter(), after_position=position, limit=query.limit + 1)
    page = AuditPage(entries=[audit_view(row) for row in rows[: query.limit]])
    if len(rows) > query.limit:
        last = rows[query.limit - 1]
        page.next = format_cursor(last.created_at, last.audit_id)
    return json_answer(page)
