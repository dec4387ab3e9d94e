"""Reading Server-Sent Events byte by byte, as no library would: to cut a stream anywhere."""

import asyncio
import socket
from typing import Self

Messages = list[tuple[int, bytes]]


class Stream:
    """One connection to the events of a run."""

    def __init__(self, url: str, run_id: str, *, last: int | None = None, accumulated: str = "true") -> None:
        self._host, _, port = url.removeprefix("http://").partition(":")
        self._port = int(port)
        header = "" if last is None else f"Last-Event-ID: {last}\r\n"
        path = f"/v1/runs/{run_id}/events?accumulated={accumulated}"
        self._request = f"GET {path} HTTP/1.1\r\nHost: localhost\r\n{header}\r\n".encode()
        self._socket: socket.socket | None = None

    @classmethod
    def of(cls, connected: socket.socket) -> Self:
        """One that asked already."""
        stream = cls("http://x:0", "")
        stream._socket = connected
        return stream

    async def read(self, until: int | None = None) -> Messages:
        """The whole messages in so many bytes, or until the server has no more; then the connection is cut."""
        if self._socket is not None:
            reader, writer = await asyncio.open_connection(sock=self._socket)
        else:
            reader, writer = await asyncio.open_connection(self._host, self._port)
            writer.write(self._request)
        data = bytearray()
        try:
            while until is None or len(data) < until:
                chunk = await reader.read(1 << 16 if until is None else min(until - len(data), 1 << 16))
                data += chunk
                if not chunk or data.endswith(b"0\r\n\r\n"):
                    break
        finally:
            writer.transport.abort()
        return _messages(bytes(data))


async def read_all(url: str, run_id: str, *, accumulated: str = "true") -> Messages:
    """Everything, over one connection."""
    return await Stream(url, run_id, accumulated=accumulated).read()


def _messages(data: bytes) -> Messages:
    head, _, body = data.partition(b"\r\n\r\n")
    if b"chunked" in head.lower():
        body = _unchunked(body)
    if head.startswith(b"HTTP/1.1 204"):
        return []
    found = []
    for block in body.split(b"\n\n")[:-1]:
        if block.startswith(b"id: "):
            number, _, line = block.removeprefix(b"id: ").partition(b"\ndata: ")
            found.append((int(number), line))
    return found


def _unchunked(body: bytes) -> bytes:
    parts = []
    at = 0
    while (end := body.find(b"\r\n", at)) >= 0:
        length = int(body[at:end], 16)
        if not length:
            break
        parts.append(body[end + 2 : end + 2 + length])
        at = end + 2 + length + 2
    return b"".join(parts)
