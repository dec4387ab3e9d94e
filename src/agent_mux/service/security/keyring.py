"""Creating, rotating and revoking tokens, as `amux tokens` does. A running service notices changes within a second."""

import re
from collections.abc import Iterable
from typing import Any

import sqlalchemy as sa
from anyio import to_thread

from agent_mux.errors import AgentMuxError, FieldError, ValidationError
from agent_mux.service.audit.entries import Action, Actor, new_entry
from agent_mux.service.clock import now_ms
from agent_mux.service.security.tokens import SCOPES, RateLimits, Token, new_token
from agent_mux.service.store.audit import insert_audit
from agent_mux.service.store.tokens import TokenRow, TokenStore

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}")


class Keyring:
    """The tokens of a database."""

    def __init__(self, store: TokenStore, actor: Actor | None = None) -> None:
        """`actor`: who the audit trail names; None: the user of this process."""
        self._store = store
        self._actor = actor or Actor.of_process()

    async def create(
        self,
        name: str,
        scopes: Iterable[str],
        *,
        expires_at: int | None = None,
        limits: RateLimits = RateLimits(),  # noqa: B008  # frozen
    ) -> Token:
        """Create a token and return it. Only a hash of its secret is stored, so it cannot be shown again.

        Args:
            name: Who uses it; the owner of the runs that it starts.
            scopes: What it may do.
            expires_at: Milliseconds since the epoch; None: never.
            limits: Its rate limits.

        Raises:
            ValidationError: The name is taken or invalid, or a scope is unknown.
        """
        unique_scopes = tuple(dict.fromkeys(scopes))
        _check(name, unique_scopes)
        token = new_token()
        row = TokenRow(
            id=token.id,
            name=name,
            hash=token.hash,
            scopes=" ".join(unique_scopes),
            created_at=now_ms(),
            expires_at=expires_at,
            requests_per_minute=limits.requests,
            runs_per_minute=limits.runs,
        )
        recorded = self._recorded("token.create", row, scopes=row.scopes.split(), expires_at=expires_at)
        if not await self._store.add(row, recorded):
            raise ValidationError(
                [FieldError("name", name, "a name that no other token has or had; see `amux tokens list`")]
            )
        return token

    async def list(self) -> list[TokenRow]:
        """Return all tokens, including revoked and expired ones."""
        return await self._store.all()

    async def rotate(self, name: str, *, grace_ms: int) -> Token:
        """Replace the secret; the old one stays valid for `grace_ms`. Raises NOT_FOUND, INVALID_STATE_TRANSITION."""
        row = await self._row(name)
        now = now_ms()
        if not row.is_valid(now):
            raise AgentMuxError("INVALID_STATE_TRANSITION", f"the token {name} is revoked or expired; create another")
        token = new_token(row.id)
        previous = {"previous_hash": row.hash, "previous_valid_until": now + grace_ms} if grace_ms else {
            "previous_hash": None, "previous_valid_until": None
        }  # fmt: skip
        await self._store.change(
            row.id, {"hash": token.hash, **previous}, self._recorded("token.rotate", row, grace_ms=grace_ms)
        )
        return token

    async def revoke(self, name: str) -> None:
        """Make a token invalid. Its name stays taken, since runs refer to it. Raises NOT_FOUND."""
        row = await self._row(name)
        if row.revoked_at is None:
            await self._store.change(row.id, {"revoked_at": now_ms()}, self._recorded("token.revoke", row))

    async def forget(self, name: str) -> None:
        """Delete a token, so that its name is free. The service needs a token nevertheless. Raises NOT_FOUND."""
        row = await self._row(name)
        await self._store.remove(row.id, self._recorded("token.forget", row))

    async def allow_none(self) -> None:
        """Let the service admit every local caller from its next start. Raises INVALID_STATE_TRANSITION with tokens."""
        rows = await self._store.all()
        if rows:
            names = ", ".join(row.name for row in rows)
            exist = f"tokens exist: {names}; remove each with `amux tokens revoke NAME --forget` first"
            raise AgentMuxError("INVALID_STATE_TRANSITION", exist)
        mark = self._store.mark
        if mark is not None and mark.is_set:
            entry = new_entry(self._actor, "token.allow_none", "token", "", {}, instance="", outcome="ok")
            await self._store.record(insert_audit(entry))
            await to_thread.run_sync(mark.clear)

    def _recorded(self, action: Action, row: TokenRow, **detail: Any) -> sa.Executable:
        """Return the statement that adds an action to the audit trail. It belongs to the database, not to a server."""
        detail = {"name": row.name, **detail}
        return insert_audit(new_entry(self._actor, action, "token", row.id, detail, instance="", outcome="ok"))

    async def _row(self, name: str) -> TokenRow:
        rows = await self._store.all()
        found = next((row for row in rows if name in {row.name, row.id}), None)
        if found is None:
            names = ", ".join(row.name for row in rows) or "none"
            raise AgentMuxError("NOT_FOUND", f"no token has the name or id {name!r}; existing tokens: {names}")
        return found


def _check(name: str, scopes: tuple[str, ...]) -> None:
    problems = (
        [] if _NAME.fullmatch(name) else [FieldError("name", name, "1 to 64 letters, digits, and . _ @ - inside")]
    )
    problems += [FieldError("scopes", one, ", ".join(SCOPES)) for one in scopes if one not in SCOPES]
    if not scopes:
        problems.append(FieldError("scopes", [], "at least one of " + ", ".join(SCOPES)))
    if problems:
        raise ValidationError(problems)
