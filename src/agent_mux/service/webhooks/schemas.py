"""JSON of webhooks: request bodies with their validation, and views.

A secret is part of a view only when it was created.
"""

from collections.abc import Iterable
from typing import Annotated, Any

import httpx
import msgspec
from msgspec import UNSET, Meta, UnsetType

from agent_mux.api import JsonView
from agent_mux.errors import AgentMuxError, FieldError, ValidationError
from agent_mux.sdk.registry import AdapterRegistry
from agent_mux.service.store.webhooks import DeliveryRow, DeliveryState, WebhookRow
from agent_mux.service.views import present
from agent_mux.service.webhooks.sender import PORTS, address_refusal
from agent_mux.webhooks import key_of

STARTED, ENDED = "run.started", "run.ended"
APPROVAL, INPUT = "run.approval_request", "run.input_required"
EVENTS = (STARTED, APPROVAL, INPUT, ENDED)
TEST = "webhook.test"
LONGEST_URL = 2048
LONGEST_TEXT = 500
MAX_ITEMS = 50


class WebhookChange(msgspec.Struct, rename="camel", kw_only=True, forbid_unknown_fields=True):
    """Changes of a webhook; absent fields stay unchanged."""

    url: Annotated[
        str | UnsetType,
        Meta(description="Where to send messages: an http or https URL without user, password or fragment."),
    ] = UNSET
    description: Annotated[str | UnsetType, Meta(description="Text for people.")] = UNSET
    events: Annotated[list[str] | UnsetType, Meta(description="Event types to send (default: all).")] = UNSET
    agents: Annotated[list[str] | UnsetType, Meta(description="Only runs of these agents; empty: all agents.")] = UNSET
    tags: Annotated[list[str] | UnsetType, Meta(description="Only runs with all of these tags.")] = UNSET
    enabled: Annotated[bool | UnsetType, Meta(description="Whether messages are sent (default: true).")] = UNSET


class NewWebhook(WebhookChange, kw_only=True):
    """Request body that creates a webhook."""

    url: Annotated[
        str, Meta(description="Where to send messages: an http or https URL without user, password or fragment.")
    ]
    secret: Annotated[str | UnsetType, Meta(description="Signing secret (default: generated).")] = UNSET


class NewSecret(msgspec.Struct, rename="camel", kw_only=True, forbid_unknown_fields=True):
    """A rotation of the signing secret."""

    secret: Annotated[str | UnsetType, Meta(description="Signing secret (default: generated).")] = UNSET
    overlap: Annotated[int, Meta(description="Milliseconds during which the old secret signs, too.")] = 24 * 3600 * 1000


class WebhookView(JsonView, kw_only=True):
    """A webhook. Times are milliseconds since the epoch."""

    webhook_id: str
    url: str
    description: str | UnsetType = UNSET
    events: list[str]
    agents: Annotated[list[str] | UnsetType, Meta(description="Only runs of these agents.")] = UNSET
    tags: Annotated[list[str] | UnsetType, Meta(description="Only runs with all of these tags.")] = UNSET
    enabled: bool
    disabled_reason: str | UnsetType = UNSET
    created_at: int
    previous_secret_until: int | UnsetType = UNSET
    secret: Annotated[str | UnsetType, Meta(description="Only in the response to the request that created it.")] = UNSET


class DeliveryView(JsonView, kw_only=True):
    """A message for a webhook. Times are milliseconds since the epoch."""

    delivery_id: Annotated[str, Meta(description="The `webhook-id` of the message.")]
    type: str
    run_id: str | UnsetType = UNSET
    state: DeliveryState
    created_at: int
    attempts: int
    next_at: int | UnsetType = UNSET
    last_at: int | UnsetType = UNSET
    last_status: int | UnsetType = UNSET
    last_error: str | UnsetType = UNSET


class DeliveryPage(JsonView, kw_only=True):
    """A page of deliveries, latest first."""

    deliveries: list[DeliveryView]
    next: Annotated[
        str | UnsetType, Meta(description="Pass it as `cursor` to get the next page; absent on the last page.")
    ] = UNSET


def webhook_columns(change: WebhookChange, adapters: AdapterRegistry, *, allow_private: bool) -> dict[str, Any]:
    """Return the columns that a request sets. Raises `ValidationError` with every invalid field."""
    problems: list[FieldError] = []
    if not isinstance(change.url, UnsetType) and (reason := _url_refusal(change.url, allow_private=allow_private)):
        problems.append(FieldError("url", change.url, reason))
    if not isinstance(change.events, UnsetType) and not (change.events and set(change.events) <= set(EVENTS)):
        problems.append(FieldError("events", change.events[:MAX_ITEMS], "one or more of " + ", ".join(EVENTS)))
    if not isinstance(change.agents, UnsetType) and len(change.agents) > MAX_ITEMS:
        problems.append(FieldError("agents", f"{len(change.agents)} items", f"at most {MAX_ITEMS} agent names"))
    elif not isinstance(change.agents, UnsetType):
        unknown = [name for name in change.agents if name not in adapters]
        problems += [FieldError("agents", name, "agent names; see `amux adapters list`") for name in unknown]
    if not isinstance(change.tags, UnsetType) and not (
        len(change.tags) <= MAX_ITEMS and all(map(_is_valid_text, change.tags))
    ):
        allowed = f"at most {MAX_ITEMS} texts of 1 to {LONGEST_TEXT} characters"
        problems.append(FieldError("tags", change.tags[: MAX_ITEMS + 1], allowed))
    if change.description and not _is_valid_text(change.description):
        problems.append(FieldError("description", change.description, f"at most {LONGEST_TEXT} characters"))
    if problems:
        raise ValidationError(problems)
    values = {name: getattr(change, name) for name in WebhookChange.__struct_fields__}
    values["is_enabled"] = values.pop("enabled")
    if not isinstance(change.agents, UnsetType):
        values["agents"] = [adapters.get(name).agent for name in change.agents]
    return {
        name: _unique(value) if isinstance(value, list) else value
        for name, value in values.items()
        if value is not UNSET
    }


def validated_secret(url: str) -> str:
    """Return the secret if it is valid. Raises `ValidationError`, which does not contain it."""
    try:
        key_of(url)
    except AgentMuxError as error:
        raise ValidationError([FieldError("secret", "(not shown)", error.message)]) from error
    return url


def _is_valid_text(text: str) -> bool:
    return 0 < len(text) <= LONGEST_TEXT


def _unique(items: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(items))


def _url_refusal(text: str, *, allow_private: bool) -> str | None:
    allowed = f"an http or https URL of at most {LONGEST_URL} characters, without a user, a password or a fragment"
    try:
        url = httpx.URL(text)
    except (httpx.InvalidURL, ValueError):
        return allowed
    fits = url.scheme in PORTS and url.host and not url.userinfo and not url.fragment and len(text) <= LONGEST_URL
    if not fits or not 0 < (url.port or 1) < 1 << 16:
        return allowed
    try:
        return address_refusal(url.host, allow_private=allow_private)
    except ValueError:  # a name, which is resolved for each delivery
        return None


def webhook_view(row: WebhookRow, *, secret: str | None = None) -> WebhookView:
    """Return the view of a webhook, with its secret only if passed."""
    return WebhookView(
        webhook_id=row.webhook_id,
        url=row.url,
        description=present(row.description),
        events=list(row.events),
        agents=list(row.agents) or UNSET,
        tags=list(row.tags) or UNSET,
        enabled=row.is_enabled,
        disabled_reason=present(row.disabled_reason),
        created_at=row.created_at,
        previous_secret_until=present(row.previous_until),
        secret=present(secret),
    )


def delivery_view(row: DeliveryRow) -> DeliveryView:
    """Return the view of a delivery, without its body."""
    return DeliveryView(
        delivery_id=row.delivery_id,
        type=row.type,
        run_id=present(row.run_id),
        state=row.state,
        created_at=row.created_at,
        attempts=row.attempts,
        next_at=row.next_at if row.state == "pending" else UNSET,
        last_at=present(row.last_at),
        last_status=present(row.last_status),
        last_error=present(row.last_error),
    )
