"""The audit trail of a service."""

from collections.abc import Collection
from typing import Any, Literal

import msgspec

from agent_mux.client.remote.connection import ServiceConnection, fetch_pages, to_milliseconds
from agent_mux.sessions.summary import When


class AuditEntry(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One recorded action. Times are milliseconds since the epoch."""

    audit_id: str
    created_at: int
    action: str
    """What was done: `run.start`, `run.approve`, `token.create`, ..."""
    origin: str
    """`http`, `websocket`, `cli`, or `retention` for the service itself."""
    target_type: Literal["run", "webhook", "token", "profile"]
    target: str
    """Id of the run, the webhook or the token, or name of the profile."""
    detail: dict[str, Any] = {}
    actor: str | None = None
    """Name of the token; None without one."""
    token_id: str | None = None
    client: str | None = None
    """Address of the peer, a proxy included; for `cli` the user of the service's machine."""
    request_id: str | None = None
    outcome: str | None = None
    """`ok` or an error code; None while the action is carried out, or if the service was killed then."""


class _Page(msgspec.Struct):
    entries: list[AuditEntry]
    next: str | None = None


class RemoteAudit:
    """The audit trail of a service, for tokens with the scope `admin`. Every call is a blocking request.

    Every method raises the error that the service returns, and UNAVAILABLE when it cannot be reached.
    """

    def __init__(self, connection: ServiceConnection) -> None:
        """Create the namespace without sending a request."""
        self._connection = connection

    def list(  # noqa: PLR0913  # one for each filter
        self,
        *,
        action: str | Collection[str] = (),
        actor: str | None = None,
        target_type: str | None = None,
        target: str | None = None,
        outcome: str | None = None,
        since: When | None = None,
        until: When | None = None,
        limit: int | None = 50,
    ) -> "list[AuditEntry]":
        """Return the entries that match all filters, latest first. More than 200 entries take several requests.

        Args:
            action: One action, or several of which the entry has one.
            actor: The name of the token.
            target_type: `run`, `webhook`, `token` or `profile`.
            target: The id or name of the target, such as a run id.
            outcome: `ok` or an error code.
            since: Earliest time: a `datetime`, or milliseconds since the epoch.
            until: Time before which the action was requested.
            limit: Maximum number of entries; None: all.
        """
        filters: dict[str, Any] = {
            "action": (action,) if isinstance(action, str) else tuple(action),
            "actor": actor,
            "targetType": target_type,
            "target": target,
            "outcome": outcome,
            "since": to_milliseconds(since),
            "until": to_milliseconds(until),
        }
        return fetch_pages(self._connection, _Page, "audit", limit, **filters)
