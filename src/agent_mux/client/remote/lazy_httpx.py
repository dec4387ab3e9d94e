"""The names of httpx that the remote client uses; httpx itself, of the extra `remote`, is imported on first use.

So the client's classes exist without the extra, and programs that only name them do not wait for httpx.
"""

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from agent_mux.errors import MissingExtraError

if TYPE_CHECKING:
    from httpx import (
        URL,
        AsyncClient,
        Client,
        ConnectError,
        ConnectTimeout,
        HTTPError,
        InvalidURL,
        Limits,
        ReadError,
        RemoteProtocolError,
        RequestError,
        Response,
        StreamError,
        Timeout,
        TimeoutException,
    )

__all__ = [
    "URL", "AsyncClient", "Client", "ConnectError", "ConnectTimeout", "HTTPError", "InvalidURL", "Limits", "ReadError",
    "RemoteProtocolError", "RequestError", "Response", "StreamError", "Timeout", "TimeoutException", "require_httpx",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    """Return a name of httpx."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module("httpx"), name)


def require_httpx() -> None:
    """Raise MissingExtraError if httpx is not installed."""
    if find_spec("httpx") is None:
        raise MissingExtraError("the remote client", "remote", code="UNAVAILABLE")
