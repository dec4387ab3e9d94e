"""Authenticates requests by their tokens, and keeps checking those of open connections.

Tokens are read from the database at most every `CACHE_TIME`, however many requests and streams there are. While the
database is unavailable, the last ones read remain valid for a while: readers can reconnect, and no token could be
revoked in that time.
"""

import logging
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager

import anyio
import anyio.abc
from anyio import to_thread

from agent_mux._util.logs import LOGGER
from agent_mux.errors import AgentMuxError
from agent_mux.service.clock import now_ms
from agent_mux.service.security.tokens import (
    LOCAL_CALLER,
    Caller,
    RateLimits,
    Scope,
    bearer_token,
    is_any_hash,
    parse_scopes,
)
from agent_mux.service.settings import ServiceSettings
from agent_mux.service.sockets import is_loopback
from agent_mux.service.store.tokens import TokenRow, TokenStore

CACHE_TIME = 0.25  # seconds until tokens are read again
STALE_TIME = 600.0  # seconds that tokens stay valid while the database is unavailable
USE_RECORD_INTERVAL = 60_000  # milliseconds


class Authenticator:
    """The tokens of the database, as last read."""

    def __init__(self, store: TokenStore, settings: ServiceSettings) -> None:
        """Read nothing yet. `settings`: which clients can connect."""
        self._store = store
        self._settings = settings
        self._tasks: anyio.abc.TaskGroup | None = None
        self.is_open_to_others = not is_loopback(settings.host) or bool(settings.allowed_hosts)
        """Whether other machines can connect, directly or through a proxy."""
        self._needs_token = self.is_open_to_others and not settings.allow_unauthenticated
        """Never becomes false again: rows that are gone do not open the service."""
        self._rows: Mapping[str, TokenRow] = {}
        self._read_at = float("-inf")
        self._recorded: dict[str, int] = {}
        self._lock = anyio.Lock()
        self._watchers: dict[object, Callable[[], None]] = {}

    async def open(self) -> None:
        """Read the tokens.

        Raises CONFIG_ERROR when there are none although the directory says that requests need one, and when other
        machines can connect and none is valid.
        """
        rows = await self._current_rows()
        if not rows:
            self.require_marked_tokens()
        self._require_token_for_others(rows)
        mark = self._store.mark
        if mark is not None and rows:
            await to_thread.run_sync(mark.set)

    def require_marked_tokens(self) -> None:
        """Raise CONFIG_ERROR for a database without tokens if the directory says that requests need one."""
        mark = self._store.mark
        if mark is not None and mark.is_set:
            raise AgentMuxError(
                "CONFIG_ERROR",
                f"{mark.path} says that this service needs a token, and the database {self._store.database} has none: "
                "it was removed, emptied or exchanged; name the earlier database ($AGENT_MUX_DATABASE_URL, --database) "
                "or restore it, create a token with `amux tokens create NAME --scope run`, or let the service run "
                "without tokens with `amux tokens allow-none`",
            )

    def _require_token_for_others(self, rows: Mapping[str, TokenRow]) -> None:
        """Raise CONFIG_ERROR when other machines can connect and no token is valid."""
        settings = self._settings
        is_unprotected = self.is_open_to_others and not any(row.is_valid(now_ms()) for row in rows.values())
        if not is_unprotected or (settings.allow_unauthenticated and not rows):
            return
        if is_loopback(settings.host):
            who = f"--allow-host {settings.allowed_hosts[0]} lets a proxy forward requests of other machines"
            step = "leave out --allow-host"
        else:
            who, step = f"{settings.host} is reachable from other machines", "listen on 127.0.0.1"
        raise AgentMuxError(
            "CONFIG_ERROR",
            f"{who}, and no token is valid; create one first with `amux tokens create NAME --scope run` (and the same "
            f"--database), or {step}; without any token, only --allow-unauthenticated lets everybody in",
        )

    def start(self, tasks: anyio.abc.TaskGroup) -> None:
        """Start to check open connections, and to record when tokens are used. `tasks`: as long as the service."""
        self._tasks = tasks
        tasks.start_soon(self._watch)

    @property
    def requires_token(self) -> bool:
        """Whether requests needed a token when the tokens were last read."""
        return self._needs_token

    async def authenticate(self, authorization: str | None) -> Caller | None:
        """Return the caller for an `Authorization` header; None if it is not admitted. Raises UNAVAILABLE."""
        await self._current_rows()
        if not self._needs_token:
            return LOCAL_CALLER
        token = bearer_token(authorization or "")
        if token is None:
            return None
        caller = self._caller_of(token.id, token.hash)
        if caller is not None:
            self._record_use(self._rows[token.id], now_ms())
        return caller

    async def recheck(self, caller: Caller) -> Caller | None:
        """Return the caller with its present scopes and limits; None once it is not admitted. Raises UNAVAILABLE."""
        await self._current_rows()
        return self.admitted(caller)

    def admitted(self, caller: Caller) -> Caller | None:
        """Return the same, by the tokens as last read: at most a second ago while a connection is open."""
        if not caller.token_id:
            return None if self._needs_token else caller
        return self._caller_of(caller.token_id, caller.secret_hash)

    def admits(self, caller: Caller, needed: Scope) -> bool:
        """Return whether a caller still has a scope, by the tokens as last read."""
        current = self.admitted(caller)
        return current is not None and current.may(needed)

    @asynccontextmanager
    async def watching(self, caller: Caller, needed: Scope, on_lost: Callable[[], None]) -> AsyncGenerator[None, None]:
        """Call `on_lost` within a second when the caller is no longer admitted, until the block is left."""

        def check() -> None:
            if not self.admits(caller, needed):
                self._watchers.pop(key, None)
                on_lost()

        key = object()
        self._watchers[key] = check
        try:
            check()
            yield
        finally:
            self._watchers.pop(key, None)

    async def _watch(self) -> None:
        """Check the open connections: one query for all."""
        while True:
            await anyio.sleep(CACHE_TIME)
            if not self._watchers:
                continue
            try:
                await self._current_rows()
            except AgentMuxError as error:  # stale for too long: requests are refused, too
                logging.getLogger(LOGGER).warning(
                    "connections with tokens end, since they cannot be checked: %s", error
                )
                self._rows = {}
            except Exception:  # the driver may raise anything; expiry is checked by the tokens last read
                logging.getLogger(LOGGER).exception("cannot read the tokens to check open connections")
            for check in list(self._watchers.values()):
                check()

    def _caller_of(self, token_id: str, secret_hash: str) -> Caller | None:
        """Return the caller of a secret, compared in constant time with the hashes that are valid now."""
        now, row = now_ms(), self._rows.get(token_id)
        hashes = (None, None) if row is None else (row.hash, row.previous_hash_at(now))
        if not is_any_hash(secret_hash, *hashes) or row is None or not row.is_valid(now):
            return None
        limits = RateLimits(row.requests_per_minute, row.runs_per_minute)
        return Caller(row.name, parse_scopes(row.scopes.split()), row.id, limits, secret_hash)

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
            return
        if not self._needs_token:
            mark = self._store.mark
            self._needs_token = bool(self._rows) or (mark is not None and mark.is_set)
            if self._needs_token and mark is not None:
                await self._set_mark()

    async def _set_mark(self) -> None:
        mark = self._store.mark
        try:
            if mark is not None:
                await to_thread.run_sync(mark.set)
        except AgentMuxError as error:  # the next start tries again, and fails with this error
            logging.getLogger(LOGGER).error("cannot record that the service needs a token: %s", error)  # noqa: TRY400

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
