"""`/v1/webhooks`: who is told of runs. For administrators: a webhook sees the runs of everybody."""

import base64
import binascii
from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from agent_mux.errors import FieldError, ValidationError
from agent_mux.service.routes.answers import TheService, json_answer, json_body
from agent_mux.service.store.webhooks import DeliveryPlace, DeliveryState
from agent_mux.service.webhooks.requests import (
    DeliveryPage,
    NewSecret,
    NewWebhook,
    WebhookChange,
    checked_secret,
    chosen,
    delivery_view,
    webhook_view,
)

router = APIRouter(prefix="/v1/webhooks", tags=["webhooks"])
LARGEST_PAGE = 200
LONGEST_OVERLAP = 30 * 24 * 3600 * 1000  # milliseconds


@router.post("", status_code=201)
async def create_webhook(request: Request, service: TheService) -> Response:
    """Make a webhook. The answer is the only one that has its secret."""
    told = await json_body(request, NewWebhook)
    values = chosen(told, service.mux.adapters, allow_private=service.webhooks.allow_private)
    secret = checked_secret(told.secret) if isinstance(told.secret, str) else None
    row = await service.webhooks.create(values, secret)
    return json_answer(webhook_view(row, secret=row.secret), 201, {"location": f"/v1/webhooks/{row.webhook_id}"})


@router.get("")
async def list_webhooks(service: TheService) -> Response:
    """Every webhook, the first one first."""
    return json_answer({"webhooks": [webhook_view(row) for row in service.webhooks.all()]})


@router.get("/{webhook_id}")
async def get_webhook(webhook_id: str, service: TheService) -> Response:
    """One webhook."""
    return json_answer(webhook_view(service.webhooks.get(webhook_id)))


@router.patch("/{webhook_id}")
async def change_webhook(webhook_id: str, request: Request, service: TheService) -> Response:
    """Change some of it. Switched off, it gets nothing, and what it had still to get is given up."""
    service.webhooks.get(webhook_id)
    told = await json_body(request, WebhookChange)
    values = chosen(told, service.mux.adapters, allow_private=service.webhooks.allow_private)
    return json_answer(webhook_view(await service.webhooks.change(webhook_id, values)))


@router.delete("/{webhook_id}", status_code=204)
async def delete_webhook(webhook_id: str, service: TheService) -> Response:
    """Forget it, and what it had still to get."""
    await service.webhooks.remove(webhook_id)
    return Response(status_code=204)


@router.post("/{webhook_id}/secret")
async def rotate_secret(webhook_id: str, request: Request, service: TheService) -> Response:
    """Give it a new secret. For `overlap` milliseconds (a day) messages have signatures of both."""
    service.webhooks.get(webhook_id)
    told = await json_body(request, NewSecret)
    if not 0 <= told.overlap <= LONGEST_OVERLAP:
        raise ValidationError([FieldError("overlap", told.overlap, f"milliseconds, 0 to {LONGEST_OVERLAP}")])
    secret = checked_secret(told.secret) if isinstance(told.secret, str) else None
    row = await service.webhooks.rotate(webhook_id, told.overlap, secret)
    return json_answer(webhook_view(row, secret=row.secret))


@router.post("/{webhook_id}/test", status_code=202)
async def test_webhook(webhook_id: str, service: TheService) -> Response:
    """Send it a `webhook.test`. What becomes of it is among the deliveries."""
    return json_answer(delivery_view(await service.webhooks.test(webhook_id)), 202)


@router.get("/{webhook_id}/deliveries")
async def list_deliveries(
    webhook_id: str,
    service: TheService,
    state: Annotated[DeliveryState | None, Query()] = None,
    limit: Annotated[int, Query(ge=1, le=LARGEST_PAGE)] = 50,
    cursor: Annotated[str | None, Query(description="The `next` of the page before.")] = None,
) -> Response:
    """What was sent, and what is to be sent, the latest first; for a week."""
    service.webhooks.get(webhook_id)
    rows = await service.webhooks.store.page(webhook_id, state=state, behind=_place(cursor), limit=limit + 1)
    page = DeliveryPage(deliveries=[delivery_view(row) for row in rows[:limit]])
    if len(rows) > limit:
        last = rows[limit - 1]
        page.next = base64.urlsafe_b64encode(f"{last.created_at}.{last.delivery_id}".encode()).decode()
    return json_answer(page)


def _place(cursor: str | None) -> DeliveryPlace | None:
    if cursor is None:
        return None
    try:
        said = base64.urlsafe_b64decode(cursor.encode()).decode()
    except (ValueError, binascii.Error):
        said = ""
    created_at, _, delivery_id = said.partition(".")
    if not (created_at.isascii() and created_at.isdigit() and len(created_at) <= 15) or "\x00" in delivery_id:
        raise ValidationError([FieldError("cursor", cursor, "the `next` of the page before")])
    return DeliveryPlace(int(created_at), delivery_id)
