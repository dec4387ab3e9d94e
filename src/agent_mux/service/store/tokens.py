"""Rows of tokens. They belong to the database: servers that share one share its tokens."""

from collections.abc import Mapping
from typing import Any

import msgspec
import sqlalchemy as sa
from anyio import to_thread
from sqlalchemy.exc import IntegrityError

from agent_mux.service.store.database import Database
from agent_mux.service.store.tables import TOKENS
from agent_mux.service.token_mark import TokenMark


class TokenRow(msgspec.Struct, kw_only=True, frozen=True):
    """One stored token; see `tables.py`. Times are milliseconds since the epoch."""

    id: str
    name: str
    hash: str
    scopes: str
    created_at: int
    expires_at: int | None = None
    revoked_at: int | None = None
    last_used_at: int | None = None
    previous_hash: str | None = None
    previous_valid_until: int | None = None
    requests_per_minute: int | None = None
    runs_per_minute: int | None = None

    def is_valid(self, now: int) -> bool:
        """Return whether the token is neither revoked nor expired."""
        return self.revoked_at is None and (self.expires_at is None or now < self.expires_at)

    def previous_hash_at(self, now: int) -> str | None:
        """Return the hash from before the last rotation while it is still valid."""
        until = self.previous_valid_until
        return self.previous_hash if until is not None and now < until else None


_COLUMNS = [TOKENS.c[name] for name in TokenRow.__struct_fields__]


class TokenStore:
    """The tokens of a database. Calls raise UNAVAILABLE while it is unreachable."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.mark = None if database.directory is None else TokenMark(database.directory)
        """What the directory of the service says about tokens."""

    @property
    def database(self) -> str:
        """The URL of the database without its password."""
        return self._database.shown

    async def add(self, row: TokenRow, *statements: sa.Executable) -> bool:
        """Insert a token. Return False when its name is taken. `statements`: for the same transaction, as below.

        The directory is marked first: it needs a token even if the row is lost. Raises CONFIG_ERROR.
        """
        if self.mark is not None:
            await to_thread.run_sync(self.mark.set)
        try:
            await self._write(TOKENS.insert().values(**msgspec.structs.asdict(row)), *statements)
        except IntegrityError:
            return False
        return True

    async def all(self) -> list[TokenRow]:
        """Return all tokens by name, including revoked and expired ones."""
        async with self._database.reading() as connection:
            rows = await connection.execute(sa.select(*_COLUMNS).order_by(TOKENS.c.name))
            return [TokenRow(**one) for one in rows.mappings()]

    async def change(self, token_id: str, values: Mapping[str, Any], *statements: sa.Executable) -> None:
        """Update columns of a token, if it still exists."""
        await self._write(TOKENS.update().where(TOKENS.c.id == token_id).values(**values), *statements)

    async def remove(self, token_id: str, *statements: sa.Executable) -> None:
        """Delete a token; its name becomes available."""
        await self._write(TOKENS.delete().where(TOKENS.c.id == token_id), *statements)

    async def record(self, *statements: sa.Executable) -> None:
        """Execute statements about the tokens as a whole."""
        await self._write(*statements)

    async def _write(self, *statements: sa.Executable) -> None:
        async with self._database.writing() as connection:
            for statement in statements:
                await connection.execute(statement)
