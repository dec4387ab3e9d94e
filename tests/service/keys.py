"""Tokens for tests, made where a service finds them."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import anyio

from agent_mux.service.security.keyring import Keyring
from agent_mux.service.service import open_database
from agent_mux.service.settings import ServiceSettings
from agent_mux.service.store.tokens import TokenStore

_Result = TypeVar("_Result")


def with_keyring(directory: Path, do: Callable[[Keyring], Awaitable[_Result]]) -> _Result:
    """Do something with the tokens of the service in this directory, whether it is up or not."""

    async def work() -> _Result:
        async with open_database(ServiceSettings(config_dir=directory)) as database:
            return await do(Keyring(TokenStore(database)))

    return anyio.run(work)


def make_token(directory: Path, name: str, *scopes: str, expires_at: int | None = None) -> str:
    """A token, as it is shown."""
    return str(with_keyring(directory, lambda keyring: keyring.create(name, scopes, expires_at=expires_at)))


def bearing(token: str) -> dict[str, str]:
    """The header."""
    return {"authorization": f"Bearer {token}"}
