"""`/v1/webhooks`: notify other programs about runs. Only for administrators: a webhook receives everybody's runs."""

from collections.abc import Mapping
from typing import Annotated, Any
from urllib.parse import urlsplit

from msgspec import Meta
from starlette.requests import Request
from starlette.responses import Response

from agent_mux.errors import AnyCode, FieldError, ValidationError
from agent_mux.service.openapi.descriptions import BodySpec, Links, ResponseSpec
from agent_mux.service.openapi.operations import OperationGroup
from agent_mux.service.parameters import QueryParameters
from agent_mux.service.routes.requests import (
    current_actor,
    current_service,
    format_cursor,
    json_answer,
    json_body,
    parse_cursor,
    read_query,
)
from agent_mux.service.store.webhooks import DeliveryPosition, DeliveryState
from agent_mux.service.webhooks.schemas import (
    EVENTS,
    LONGEST_TEXT,
    LONGEST_URL,
    MAX_ITEMS,
    DeliveryPage,
    DeliveryView,
    NewSecret,
    NewWebhook,
    WebhookChange,
    WebhookView,
    delivery_view,
    validated_secret,
    webhook_columns,
    webhook_view,
)

operations = OperationGroup("/v1/webhooks", tag="webhooks")
LARGEST_PAGE = 200
_WEBHOOK_LINKS: Links = {
    name: {"webhook_id": "$response.body#/webhookId"}
    for name in (
        "get_webhook",
        "change_webhook",
        "delete_webhook",
        "rotate_secret",
        "test_webhook",
        "list_deliveries",
    )
}
_NOT_FOUND: tuple[AnyCode, ...] = ("NOT_FOUND",)
_CONSTRAINTS: Mapping[str, Mapping[str, Any]] = {
    "url": {"format": "uri", "maxLength": LONGEST_URL},
    "events": {"minItems": 1, "items": {"enum": list(EVENTS)}},
    "tags": {"maxItems": MAX_ITEMS, "items": {"type": "string", "minLength": 1, "maxLength": LONGEST_TEXT}},
    "description": {"maxLength": LONGEST_TEXT},
    "secret": {"pattern": "^whsec_[A-Za-z0-9+/]{32,86}={0,2}$"},
}
LONGEST_OVERLAP = 30 * 24 * 3600 * 1000  # milliseconds


class DeliveryQuery(QueryParameters):
    """Query of a page of deliveries."""

    state: Annotated[DeliveryState, Meta(description="Deliveries in this state.")] | None = None
    limit: Annotated[int, Meta(ge=1, le=LARGEST_PAGE, description="Page size.")] = 50
    cursor: Annotated[str, Meta(description="The `next` of the previous page.")] | None = None


@operations.post(
    "",
    ResponseSpec(
        WebhookView, 201, "The webhook was created.", headers={"Location": "Path of the webhook."}, links=_WEBHOOK_LINKS
    ),
    body=BodySpec(
        shape=NewWebhook,
        examples={"ends": {"url": "https://hooks.example.com/amux", "events": ["run.ended"], "tags": ["nightly"]}},
        constraints=_CONSTRAINTS,
    ),
    errors=("LIMIT_EXCEEDED",),
)
async def create_webhook(request: Request) -> Response:
    """Create a webhook. The response contains its secret, which is not shown again."""
    service = current_service(request)
    change = await json_body(request, NewWebhook)
    values = webhook_columns(change, service.mux.adapters, allow_private=service.webhooks.allow_private)
    secret = validated_secret(change.secret) if isinstance(change.secret, str) else None
    host = urlsplit(values["url"]).hostname
    recording = service.audit.recording(current_actor(request), "webhook.create", "webhook", host=host)
    row = await service.webhooks.create(values, secret, recording=recording)
    return json_answer(webhook_view(row, secret=row.secret), 201, {"location": f"/v1/webhooks/{row.webhook_id}"})


@operations.get("", ResponseSpec(list[WebhookView]))
async def list_webhooks(request: Request) -> Response:
    """List all webhooks in order of creation."""
    return json_answer([webhook_view(row) for row in current_service(request).webhooks.all()])


@operations.get("/{webhook_id}", ResponseSpec(WebhookView), errors=_NOT_FOUND)
async def get_webhook(request: Request) -> Response:
    """Get one webhook, without its secret."""
    return json_answer(webhook_view(current_service(request).webhooks.get(request.path_params["webhook_id"])))


@operations.patch(
    "/{webhook_id}",
    ResponseSpec(WebhookView),
    body=BodySpec(
        shape=WebhookChange, is_required=False, examples={"off": {"enabled": False}}, constraints=_CONSTRAINTS
    ),
    errors=_NOT_FOUND,
)
async def change_webhook(request: Request) -> Response:
    """Change fields of a webhook. Disabling it discards its pending deliveries."""
    service, webhook_id = current_service(request), request.path_params["webhook_id"]
    service.webhooks.get(webhook_id)
    change = await json_body(request, WebhookChange)
    values = webhook_columns(change, service.mux.adapters, allow_private=service.webhooks.allow_private)
    recording = service.audit.recording(
        current_actor(request), "webhook.change", "webhook", fields=", ".join(sorted(values))
    )
    return json_answer(webhook_view(await service.webhooks.change(webhook_id, values, recording=recording)))


@operations.delete("/{webhook_id}", ResponseSpec(status=204, description="The webhook was deleted."), errors=_NOT_FOUND)
async def delete_webhook(request: Request) -> Response:
    """Delete a webhook with its pending deliveries."""
    service = current_service(request)
    recording = service.audit.recording(current_actor(request), "webhook.delete", "webhook")
    await service.webhooks.remove(request.path_params["webhook_id"], recording=recording)
    return Response(status_code=204)


@operations.post(
    "/{webhook_id}/secret",
    ResponseSpec(WebhookView, description="The webhook with its new secret."),
    body=BodySpec(
        shape=NewSecret,
        is_required=False,
        examples={"hour": {"overlap": 3_600_000}},
        constraints={**_CONSTRAINTS, "overlap": {"minimum": 0, "maximum": LONGEST_OVERLAP}},
    ),
    errors=_NOT_FOUND,
)
async def rotate_secret(request: Request) -> Response:
    """Replace the secret. For `overlap` milliseconds (default: a day) messages carry signatures of both secrets."""
    service, webhook_id = current_service(request), request.path_params["webhook_id"]
    service.webhooks.get(webhook_id)
    change = await json_body(request, NewSecret)
    if not 0 <= change.overlap <= LONGEST_OVERLAP:
        raise ValidationError([FieldError("overlap", change.overlap, f"milliseconds, 0 to {LONGEST_OVERLAP}")])
    secret = validated_secret(change.secret) if isinstance(change.secret, str) else None
    recording = service.audit.recording(current_actor(request), "webhook.rotate", "webhook", overlap=change.overlap)
    row = await service.webhooks.rotate(webhook_id, change.overlap, secret, recording=recording)
    return json_answer(webhook_view(row, secret=row.secret))


@operations.post(
    "/{webhook_id}/test",
    ResponseSpec(DeliveryView, 202, "The message was queued."),
    errors=(*_NOT_FOUND, "INVALID_STATE_TRANSITION"),
)
async def test_webhook(request: Request) -> Response:
    """Send a `webhook.test` message. Its outcome appears among the deliveries."""
    service = current_service(request)
    recording = service.audit.recording(current_actor(request), "webhook.test", "webhook")
    delivery = await service.webhooks.test(request.path_params["webhook_id"], recording=recording)
    return json_answer(delivery_view(delivery), 202)


@operations.get("/{webhook_id}/deliveries", ResponseSpec(DeliveryPage), query=DeliveryQuery, errors=_NOT_FOUND)
async def list_deliveries(request: Request) -> Response:
    """List pending and finished deliveries of the last week, latest first."""
    service, webhook_id = current_service(request), request.path_params["webhook_id"]
    query = read_query(request, DeliveryQuery)
    service.webhooks.get(webhook_id)
    after_position = DeliveryPosition(*parse_cursor(query.cursor)) if query.cursor else None
    rows = await service.webhooks.store.page(
        webhook_id, state=query.state, after_position=after_position, limit=query.limit + 1
    )
    page = DeliveryPage(deliveries=[delivery_view(row) for row in rows[: query.limit]])
    if len(rows) > query.limit:
        last = rows[query.limit - 1]
        page.next = format_cursor(last.created_at, last.delivery_id)
    return json_answer(page)
