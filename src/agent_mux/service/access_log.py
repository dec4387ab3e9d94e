"""The access log: one entry per request, written at the end of its response.

An entry has the method, the path without the query, the status, the bytes of the body, the duration, the name of the
token, the address of the client and the request id. Queries, headers and bodies are never logged: they may contain
secrets or content of runs. A stream or a WebSocket is logged once, at its end.

Entries have the level `info` and belong to the logger `agent_mux.access`, so that they can be enabled alone. Each
response has its request id in `X-Request-Id`; a client may choose it, to find a request of its own in the log.
"""

import logging
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agent_mux._util.logs import LOGGER, write_entry
from agent_mux._util.ulids import new_ulid

ACCESS_LOGGER = f"{LOGGER}.access"
REQUEST_ID = "x-request-id"
NONE = "-"
"""The value of a field that is not known."""
_CHOSEN_ID = re.compile(r"[A-Za-z0-9._:+=/@-]{1,64}")
_LONGEST_PATH = 512  # characters
_LONGEST_METHOD = 16
_OFF = logging.CRITICAL + 1


@contextmanager
def access_log(*, enabled: bool | None) -> Iterator[None]:
    """Enable or disable the access log while the block runs. None: it depends on the level of the other logs."""
    logger = logging.getLogger(ACCESS_LOGGER)
    previous = logger.level
    if enabled is not None:
        logger.setLevel(logging.INFO if enabled else _OFF)
    try:
        yield
    finally:
        logger.setLevel(previous)


def write_access_entry(fields: Mapping[str, Any]) -> None:
    """Write one entry. Fields that are absent are those of a request that could not be parsed."""
    unknown = {"request_id": NONE, "method": NONE, "path": NONE, "status": 0, "bytes": 0, "ms": 0, "caller": NONE}
    write_entry(logging.INFO, "request", {**unknown, "client": NONE, **fields}, name=ACCESS_LOGGER)


def request_id_of(scope: Scope) -> str:
    """Return the id that `AccessLogMiddleware` gave to a request; empty without that middleware."""
    return str(scope.get("state", {}).get("request_id", ""))


def client_of(scope: Scope) -> str:
    """Return the address that a request came from: that of the proxy if there is one."""
    client = scope.get("client")
    return str(client[0]) if client else ""


class AccessLogMiddleware:
    """ASGI middleware that gives each request an id and logs it. The outermost one, so that refusals are logged."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, and log it at its end."""
        if scope["type"] not in {"http", "websocket"}:
            await self._app(scope, receive, send)
            return
        exchange = _Exchange(scope, receive, send)
        try:
            await self._app(scope, exchange.receive, exchange.send)
        finally:
            write_access_entry(exchange.fields())


class _Exchange:
    """One request and its response."""

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        chosen = Headers(scope=scope).get(REQUEST_ID, "")
        self._id = chosen if _CHOSEN_ID.fullmatch(chosen) else new_ulid()
        scope.setdefault("state", {})["request_id"] = self._id
        self._scope = scope
        self._receive = receive
        self._send = send
        self._began = time.monotonic()
        self._status = 500
        """500 until a response starts: without one, the server answers 500."""
        self._size = 0
        self._is_over = False
        self._is_cut = False
        """Whether the client left before the end of the response."""

    async def receive(self) -> Message:
        """Receive a message from the client."""
        message = await self._receive()
        if message["type"] == "http.disconnect" and not self._is_over:
            self._is_cut = True
        return message

    async def send(self, message: Message) -> None:
        """Send a message to the client, with the request id in the head of the response."""
        match message["type"]:
            case "http.response.start" | "websocket.http.response.start":
                self._status = message["status"]
                MutableHeaders(scope=message)[REQUEST_ID] = self._id
            case "websocket.accept":
                self._status = 101
                message.setdefault("headers", [])
                MutableHeaders(scope=message)[REQUEST_ID] = self._id
            case "websocket.close" if self._status == 500:  # instead of accepting: the server answers 403
                self._status = 403
            case "http.response.body" | "websocket.http.response.body":
                self._is_over = not message.get("more_body", False)
        self._size += _size_of(message)
        await self._send(message)

    def fields(self) -> dict[str, Any]:
        """Return the entry. A HEAD response has no body, although the application sends one."""
        scope = self._scope
        method = scope.get("method", "GET")  # a WebSocket begins with GET
        caller = scope["state"].get("caller")
        path = scope.get("raw_path") or scope["path"].encode("utf-8", "replace")
        fields = {
            "request_id": self._id,
            "method": _printable(method, _LONGEST_METHOD),
            "path": _printable(path.decode("latin-1").partition("?")[0], _LONGEST_PATH),
            "status": self._status,
            "bytes": 0 if method == "HEAD" else self._size,
            "ms": round((time.monotonic() - self._began) * 1000),
            "caller": (caller.name if caller else "") or NONE,
            "client": client_of(scope) or NONE,
        }
        return {**fields, "cut": True} if self._is_cut else fields


def _size_of(message: Message) -> int:
    text = message.get("text") or ""
    return len(message.get("body") or message.get("bytes") or (text if text.isascii() else text.encode()))


def _printable(text: str, limit: int) -> str:
    """Return text that stays one word of one line."""
    return re.sub(r"[^\x21-\x7e]", "?", text[:limit]) + ("..." if len(text) > limit else "")
