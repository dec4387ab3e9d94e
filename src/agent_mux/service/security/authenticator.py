"""Authenticates requests by their tokens.

Tokens are read from the database at most once a second. While the database is unavailable, the last ones read remain
valid for a while: readers can reconnect, and no token could be revoked in that time.
"""

import logging
from collections.abc import Mapping

import anyio
import anyio.abc

from agent_mux._util.logs import LOGGER
from agent_mux.errors import AgentMuxError
from agent_mux.service.clock import now_ms
from agent_mux.service.security.tokens import LOCAL_CALLER, Caller, RateLimits, bearer_token, matches_any, parse_scopes
from agent_mux.service.sockets import is_loopback
from agent_mux.service.store.tokens import TokenRow, TokenStore

CACHE_TIME = 1.0  # seconds until tokens are read again
STALE_TIME = 600.0  # seconds that tokens stay valid while the database is unavailable
USE_RECORD_INTERVAL = 60_000  # milliseconds


class Authenticator:
    """The tokens of the database, as last read."""

    def __init__(self, store: TokenStore, host: str) -> None:
        """`host`: the address that the server listens on."""
        self._store = store
        self._tasks: anyio.abc.TaskGroup | None = None
        self._is_loopback = is_loopback(host)
        self._host = host
        self._rows: Mapping[str, TokenRow] = {}
        self._read_at = float("-inf")
        self._recorded: dict[str, int] = {}
        self._lock = anyio.Lock()

    async def open(self) -> None:
        """Read the tokens. Raises CONFIG_ERROR when other machines can connect and no token is valid."""
        rows = await self._current_rows()
        if not self._is_loopback and not any(row.is_valid(now_ms()) for row in rows.values()):
            raise AgentMuxError(
                "CONFIG_ERROR",
                f"{self._host} is reachable from other machines, and no token is valid; create one first with "
                "`amux tokens create NAME --scope run` (and the same --database), or listen on 127.0.0.1",
            )

    def record_uses(self, tasks: anyio.abc.TaskGroup) -> None:
        """Start to record when tokens are used. `tasks`: lives as long as the service."""
        self._tasks = tasks

    @property
    def requires_token(self) -> bool:
        """Whether requests needed a token when the tokens were last read."""
        return not self._is_loopback or bool(self._rows)

    async def authenticate(self, authorization: str | None) -> Caller | None:
        """Return the caller for an `Authorization` header; None if it is not admitted. Raises UNAVAILABLE."""
        rows = await self._current_rows()
        if not rows:
            return LOCAL_CALLER if self._is_loopback else None
        token = bearer_token(authorization or "")
        if token is None:
            return None
        now, row = now_ms(), rows.get(token.id)
        hashes = (None, None) if row is None else (row.hash, row.previous_hash_at(now))
        if not matches_any(token.secret, *hashes) or row is None or not row.is_valid(now):
            return None
        self._record_use(row, now)
        limits = RateLimits(row.requests_per_minute, row.runs_per_minute)
        return Caller(row.name, parse_scopes(row.scopes.split()), row.id, limits)

    async def _current_rows(self) -> Mapping[str, TokenRow]:
        async with self._lock:  # concurrent requests share one query
            age = anyio.current_time() - self._read_at
            if age >= CACHE_TIME:
                await self._read(age)
            return self._rows

    async def _read(self, age: float) -> None:
        try:
            self._rows = {row.id: row for row in await self._store.all()}
            self._read_at = anyio.current_time()
        except AgentMuxError:
            if age >= STALE_TIME:
                raise

    def _record_use(self, row: TokenRow, now: int) -> None:
        last = max(self._recorded.get(row.id, 0), row.last_used_at or 0)
        if self._tasks is not None and now - last >= USE_RECORD_INTERVAL:
            self._recorded[row.id] = now
            self._tasks.start_soon(self._write_use, row.id, now)

    async def _write_use(self, token_id: str, now: int) -> None:
        try:
            await self._store.change(token_id, {"last_used_at": now})
        except AgentMuxError as error:
            logging.getLogger(LOGGER).warning("cannot record that token %s was used: %s", token_id, error)
