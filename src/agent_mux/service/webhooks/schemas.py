"""What is said of webhooks over HTTP: what may be asked for, and what is shown. A secret is shown when it is made."""

from collections.abc import Iterable
from typing import Any

import httpx
import msgspec
from msgspec import UNSET, UnsetType

from agent_mux.api import Shape
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
    """What can be chosen; what is left out stays as it is."""

    url: str | UnsetType = UNSET
    """Where messages are sent: http or https, without a user, a password or a fragment."""
    description: str | UnsetType = UNSET
    """For people."""
    events: list[str] | UnsetType = UNSET
    """What it is told of; default: everything."""
    agents: list[str] | UnsetType = UNSET
    """Only of runs of these agents; none: of all."""
    tags: list[str] | UnsetType = UNSET
    """Only of runs that have all of these tags."""
    enabled: bool | UnsetType = UNSET
    """Default: true."""


class NewWebhook(WebhookChange, kw_only=True):
    """A webhook that is asked for."""

    url: str
    """Where messages are sent: http or https, without a user, a password or a fragment."""
    secret: str | UnsetType = UNSET
    """Default: one that is made up."""


class NewSecret(msgspec.Struct, rename="camel", kw_only=True, forbid_unknown_fields=True):
    """A change of the secret."""

    secret: str | UnsetType = UNSET
    """Default: one that is made up."""
    overlap: int = 24 * 3600 * 1000
    """Milliseconds in which messages are signed with the old one, too."""


class WebhookView(Shape, kw_only=True):
    """A webhook. Times are milliseconds since the epoch."""

    webhook_id: str
    url: str
    description: str | UnsetType = UNSET
    events: list[str]
    agents: list[str] | UnsetType = UNSET
    """Only runs of these agents."""
    tags: list[str] | UnsetType = UNSET
    """Only runs that have all of these."""
    enabled: bool
    disabled_reason: str | UnsetType = UNSET
    created_at: int
    previous_secret_until: int | UnsetType = UNSET
    secret: str | UnsetType = UNSET
    """Only in the answer to the request that made it."""


class DeliveryView(Shape, kw_only=True):
    """A message for a webhook. Times are milliseconds since the epoch."""

    delivery_id: str
    """The `webhook-id` of the message."""
    type: str
    run_id: str | UnsetType = UNSET
    state: DeliveryState
    created_at: int
    attempts: int
    next_at: int | UnsetType = UNSET
    last_at: int | UnsetType = UNSET
    last_status: int | UnsetType = UNSET
    last_error: str | UnsetType = UNSET


class DeliveryPage(Shape, kw_only=True):
    """Deliveries, the latest first."""

    deliveries: list[DeliveryView]
    next: str | UnsetType = UNSET
    """Give it as `cursor` for the next page; absent on the last one."""


def webhook_columns(change: WebhookChange, adapters: AdapterRegistry, *, allow_private: bool) -> dict[str, Any]:
    """The columns that a request fills. Raises `ValidationError` with every bad field."""
    wrong: list[FieldError] = []
    if not isinstance(change.url, UnsetType) and (why := _url_refusal(change.url, allow_private=allow_private)):
        wrong.append(FieldError("url", change.url, why))
    if not isinstance(change.events, UnsetType) and not (change.events and set(change.events) <= set(EVENTS)):
        wrong.append(FieldError("events", change.events, "one or more of " + ", ".join(EVENTS)))
    if not isinstance(change.agents, UnsetType):
        unknown = [name for name in change.agents if name not in adapters]
        wrong += [FieldError("agents", name, "names of agents, as `amux adapters list` has them") for name in unknown]
    if not isinstance(change.tags, UnsetType) and not (
        len(change.tags) <= MAX_ITEMS and all(map(_is_valid_text, change.tags))
    ):
        allowed = f"at most {MAX_ITEMS} texts of 1 to {LONGEST_TEXT} characters"
        wrong.append(FieldError("tags", change.tags, allowed))
    if change.description and not _is_valid_text(change.description):
        wrong.append(FieldError("description", change.description, f"at most {LONGEST_TEXT} characters"))
    if wrong:
        raise ValidationError(wrong)
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
    """Raises `ValidationError` for what is no secret; it does not say what it was."""
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
    except ValueError:  # a name: it is looked up when there is something to deliver
        return None


def webhook_view(row: WebhookRow, *, secret: str | None = None) -> WebhookView:
    """A webhook, without its secret if that is not handed in."""
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
    """A delivery, without what is sent."""
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
