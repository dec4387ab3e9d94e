"""A small HTTP/1.1 server on the loopback interface, for one kind of request: POST with a JSON body and a bearer token.

The base install has no HTTP server, and a run needs none of what one offers beyond this. The port is bound when the
server is created, because the agent's configuration contains it before the agent starts.
"""

import hmac
import json
import secrets
import socket
import weakref
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

import anyio
import anyio.abc

HOST = "127.0.0.1"
MAX_HEAD, MAX_BODY = 64 * 1024, 16 * 1024 * 1024  # bytes
MAX_CONNECTIONS = 200
READ_TIMEOUT = 30.0
"""Seconds for a request to arrive, once its first byte did."""
IDLE_TIMEOUT = 600.0
"""Seconds until a connection without requests is closed."""
DRAIN_TIMEOUT = 1.0
"""Seconds in which the rest of a refused request is read."""
CHUNK = 64 * 1024

Handler = Callable[[Any], Awaitable[Any]]
"""Receives the JSON body of a request and returns the JSON body of the response, or None for an empty one."""


class BadRequestError(Exception):
    """A request that cannot be answered; the connection is closed after the response."""

    def __init__(self, status: str, message: str) -> None:
        super().__init__(message)
        self.status, self.message = status, message


@dataclass(frozen=True, slots=True)
class _Head:
    method: str
    path: str
    headers: dict[str, str]


class LoopbackServer:
    """Serves handlers to clients that know the token."""

    def __init__(self, handlers: Mapping[str, Handler]) -> None:
        """Bind a free port. Connections are accepted once `serve` runs; the port is released after it, or with self.

        Args:
            handlers: What answers requests to each path.
        """
        self.token = secrets.token_urlsafe(32)
        self._handlers = handlers
        self._socket = socket.create_server((HOST, 0), backlog=64)
        self._socket.setblocking(False)
        self.port: int = self._socket.getsockname()[1]
        self._close = weakref.finalize(self, self._socket.close)
        self._open = 0

    def url(self, path: str) -> str:
        """Return the address of a path."""
        return f"http://{HOST}:{self.port}{path}"

    def close(self) -> None:
        """Close the listening socket, which releases the port."""
        self._close()

    async def serve(self) -> None:
        """Serve until cancelled, then close every connection and the port."""
        try:
            async with anyio.create_task_group() as tasks:
                while True:
                    await anyio.wait_readable(self._socket)
                    try:
                        connection, _ = self._socket.accept()
                    except OSError:  # the client is gone again, or there are no descriptors left
                        await anyio.sleep(0.01)
                        continue
                    if self._open >= MAX_CONNECTIONS:
                        connection.close()
                        continue
                    tasks.start_soon(self._serve_connection, connection)
        finally:
            self.close()

    async def _serve_connection(self, client: socket.socket) -> None:
        client.setblocking(False)
        self._open += 1
        connection = _Connection(client)
        try:
            while await self._answer_request(connection):
                pass
        except (OSError, TimeoutError, EOFError):
            pass  # the client is gone; it can connect again
        finally:
            self._open -= 1
            client.close()

    async def _answer_request(self, connection: "_Connection") -> bool:
        """Answer one request. Return False if the connection is to be closed."""
        try:
            head = await connection.read_head()
            if head is None:
                return False
            self._check(head)
            body = _parse(await connection.read_body(head))
        except BadRequestError as error:
            await connection.send(error.status, {"error": error.message}, close=True)
            await connection.drain()
            return False
        response = await self._handlers[head.path](body)
        is_last = head.headers.get("connection", "").lower() == "close"
        await connection.send("202 Accepted" if response is None else "200 OK", response, close=is_last)
        return not is_last

    def _check(self, head: _Head) -> None:
        given = head.headers.get("authorization", "").encode()
        if not hmac.compare_digest(given, f"Bearer {self.token}".encode()):
            raise BadRequestError("401 Unauthorized", "the bearer token is missing or wrong")
        if "origin" in head.headers:
            raise BadRequestError("403 Forbidden", "browsers are not served")
        if head.path not in self._handlers:
            raise BadRequestError("404 Not Found", f"no such path: {head.path}")
        if head.method != "POST":
            raise BadRequestError("405 Method Not Allowed", "only POST is allowed")


class _Connection:
    """Reads requests from a socket and writes responses."""

    def __init__(self, client: socket.socket) -> None:
        self._socket = client
        self._buffer = b""

    async def read_head(self) -> _Head | None:
        """Return the next head; None when the client has closed the connection."""
        if not self._buffer:
            with anyio.fail_after(IDLE_TIMEOUT):
                if not await self._receive():
                    return None
        with anyio.fail_after(READ_TIMEOUT):
            text = await self._read_until(b"\r\n\r\n", "headers")
        request, *lines = text.decode("latin-1").split("\r\n")
        words = request.split(" ")
        if len(words) != 3:
            raise BadRequestError("400 Bad Request", "the request line is malformed")
        pairs = (line.partition(":") for line in lines)
        headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
        return _Head(words[0], words[1].partition("?")[0], headers)

    async def read_body(self, head: _Head) -> bytes:
        """Return the body of a request."""
        if head.headers.get("expect", "").lower() == "100-continue":
            await self._write(b"HTTP/1.1 100 Continue\r\n\r\n")
        with anyio.fail_after(READ_TIMEOUT):
            if "chunked" in head.headers.get("transfer-encoding", "").lower():
                return await self._read_chunks()
            return await self._read_exactly(_size(head.headers.get("content-length", "0"), 10))

    async def _read_chunks(self) -> bytes:
        body = b""
        while size := _size((await self._read_until(b"\r\n", "a chunk")).partition(b";")[0].decode("latin-1"), 16):
            body += await self._read_exactly(size)
            await self._read_until(b"\r\n", "a chunk")
            _size(str(len(body)), 10)
        while await self._read_until(b"\r\n", "trailers"):
            pass
        return body

    async def _read_until(self, mark: bytes, what: str) -> bytes:
        while (end := self._buffer.find(mark)) < 0 and len(self._buffer) <= MAX_HEAD:
            if not await self._receive():
                raise EOFError
        if not 0 <= end <= MAX_HEAD:
            raise BadRequestError("431 Request Header Fields Too Large", f"{what} exceed {MAX_HEAD} bytes")
        found, _, self._buffer = self._buffer.partition(mark)
        return found

    async def _read_exactly(self, size: int) -> bytes:
        parts, missing = [self._buffer], size - len(self._buffer)
        self._buffer = b""
        while missing > 0:
            await anyio.wait_readable(self._socket)
            data = self._socket.recv(CHUNK)
            if not data:
                raise EOFError
            parts.append(data)
            missing -= len(data)
        body = b"".join(parts)
        self._buffer = body[size:]
        return body[:size]

    async def _receive(self) -> bool:
        await anyio.wait_readable(self._socket)
        data = self._socket.recv(CHUNK)
        self._buffer += data
        return bool(data)

    async def send(self, status: str, content: Any, *, close: bool) -> None:
        """Write a response with JSON content; None: without a body."""
        body = b"" if content is None else json.dumps(content).encode()
        lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}"]
        lines += ["Content-Type: application/json"] if body else []
        lines += ["Allow: POST"] if status.startswith("405") else []
        lines += ["Connection: close"] if close else []
        await self._write("\r\n".join([*lines, "", ""]).encode() + body)

    async def drain(self) -> None:
        """Discard what the client still sends, for a moment; closing before that could discard our response."""
        self._socket.shutdown(socket.SHUT_WR)
        with anyio.move_on_after(DRAIN_TIMEOUT):
            while await self._receive():
                self._buffer = b""

    async def _write(self, data: bytes) -> None:
        view = memoryview(data)
        with anyio.fail_after(READ_TIMEOUT):
            while view:
                await anyio.wait_writable(self._socket)
                view = view[self._socket.send(view) :]


def _size(text: str, base: int) -> int:
    try:
        size = int(text.strip(), base)
    except ValueError:
        raise BadRequestError("400 Bad Request", "the length is not a number") from None
    if not 0 <= size <= MAX_BODY:
        raise BadRequestError("413 Content Too Large", f"the body exceeds {MAX_BODY} bytes")
    return size


def _parse(body: bytes) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        raise BadRequestError("400 Bad Request", "the body is not JSON") from None
