"""`/v1/webhooks`: notify other programs about runs. Only for administrators: a webhook receives everybody's runs."""

from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from agent_mux.errors import AnyCode, FieldError, ValidationError
from agent_mux.service.openapi.descriptions import BodySpec, Links, ResponseSpec, described
from agent_mux.service.routes.requests import CurrentService, format_cursor, json_answer, json_body, parse_cursor
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

router = APIRouter(prefix="/v1/webhooks", tags=["webhooks"])
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


@router.post("", status_code=201)
@described(
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
async def create_webhook(request: Request, service: CurrentService) -> Response:
    """Create a webhook. The response contains its secret, which is not shown again."""
    change = await json_body(request, NewWebhook)
    values = webhook_columns(change, service.mux.adapters, allow_private=service.webhooks.allow_private)
    secret = validated_secret(change.secret) if isinstance(change.secret, str) else None
    row = await service.webhooks.create(values, secret)
    return json_answer(webhook_view(row, secret=row.secret), 201, {"location": f"/v1/webhooks/{row.webhook_id}"})


@router.get("")
@described(ResponseSpec(list[WebhookView]))
async def list_webhooks(service: CurrentService) -> Response:
    """List all webhooks in order of creation."""
    return json_answer([webhook_view(row) for row in service.webhooks.all()])


@router.get("/{webhook_id}")
@described(ResponseSpec(WebhookView), errors=_NOT_FOUND)
async def get_webhook(webhook_id: str, service: CurrentService) -> Response:
    """Get one webhook, without its secret."""
    return json_answer(webhook_view(service.webhooks.get(webhook_id)))


@router.patch("/{webhook_id}")
@described(
    ResponseSpec(WebhookView),
    body=BodySpec(
        shape=WebhookChange, is_required=False, examples={"off": {"enabled": False}}, constraints=_CONSTRAINTS
    ),
    errors=_NOT_FOUND,
)
async def change_webhook(webhook_id: str, request: Request, service: CurrentService) -> Response:
    """Change fields of a webhook. Disabling it discards its pending deliveries."""
    service.webhooks.get(webhook_id)
    change = await json_body(request, WebhookChange)
    values = webhook_columns(change, service.mux.adapters, allow_private=service.webhooks.allow_private)
    return json_answer(webhook_view(await service.webhooks.change(webhook_id, values)))


@router.delete("/{webhook_id}", status_code=204)
@described(ResponseSpec(status=204, description="The webhook was deleted."), errors=_NOT_FOUND)
async def delete_webhook(webhook_id: str, service: CurrentService) -> Response:
    """Delete a webhook with its pending deliveries."""
    await service.webhooks.remove(webhook_id)
    return Response(status_code=204)


@router.post("/{webhook_id}/secret")
@described(
    ResponseSpec(WebhookView, description="The webhook with its new secret."),
    body=BodySpec(
        shape=NewSecret,
        is_required=False,
        examples={"hour": {"overlap": 3_600_000}},
        constraints={**_CONSTRAINTS, "overlap": {"minimum": 0, "maximum": LONGEST_OVERLAP}},
    ),
    errors=_NOT_FOUND,
)
async def rotate_secret(webhook_id: str, request: Request, service: CurrentService) -> Response:
    """Replace the secret. For `overlap` milliseconds (default: a day) messages carry signatures of both secrets."""
    service.webhooks.get(webhook_id)
    change = await json_body(request, NewSecret)
    if not 0 <= change.overlap <= LONGEST_OVERLAP:
        raise ValidationError([FieldError("overlap", change.overlap, f"milliseconds, 0 to {LONGEST_OVERLAP}")])
    secret = validated_secret(change.secret) if isinstance(change.secret, str) else None
    row = await service.webhooks.rotate(webhook_id, change.overlap, secret)
    return json_answer(webhook_view(row, secret=row.secret))


@router.post("/{webhook_id}/test", status_code=202)
@described(ResponseSpec(DeliveryView, 202, "The message was queued."), errors=(*_NOT_FOUND, "INVALID_STATE_TRANSITION"))
async def test_webhook(webhook_id: str, service: CurrentService) -> Response:
    """Send a `webhook.test` message. Its outcome appears among the deliveries."""
    return json_answer(delivery_view(await service.webhooks.test(webhook_id)), 202)


@router.get("/{webhook_id}/deliveries")
@described(ResponseSpec(DeliveryPage), errors=_NOT_FOUND)
async def list_deliveries(
    webhook_id: str,
    service: CurrentService,
    state: Annotated[DeliveryState | None, Query(description="Deliveries in this state.")] = None,
    limit: Annotated[int, Query(ge=1, le=LARGEST_PAGE, description="Page size.")] = 50,
    cursor: Annotated[str | None, Query(description="The `next` of the previous page.")] = None,
) -> Response:
    """List pending and finished deliveries of the last week, latest first."""
    service.webhooks.get(webhook_id)
    after_position = DeliveryPosition(*parse_cursor(cursor)) if cursor else None
    rows = await service.webhooks.store.page(webhook_id, state=state, after_position=after_position, limit=limit + 1)
    page = DeliveryPage(deliveries=[delivery_view(row) for row in rows[:limit]])
    if len(rows) > limit:
        page.next = format_cursor(rows[limit - 1].created_at, rows[limit - 1].delivery_id)
    return json_answer(page)
