"""Messages of JSON-RPC over two pipes, one a line. Whatever comes in, the connection lives until its end.

The library's own transport ends the connection when a line is JSON and no message, and answers nothing to what is no
JSON at all.
"""

import asyncio
import json
import os
from asyncio.streams import FlowControlMixin
from typing import Any

LONGEST_MESSAGE = 64 << 20  # bytes: images are in prompts
PARSE_ERROR, INVALID_REQUEST = -32700, -32600


class PipeTransport:
    """One connection. What its methods do is what `acp` expects of a transport."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._gone = asyncio.Event()

    @classmethod
    async def over(cls, read_from: int, write_to: int) -> "PipeTransport":
        """Over two open descriptors, which it takes. Raises `ValueError` for what is neither pipe nor socket."""
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader(limit=LONGEST_MESSAGE)
        await loop.connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(read_from, "rb", buffering=0)
        )
        pipe, protocol = await loop.connect_write_pipe(FlowControlMixin, os.fdopen(write_to, "wb", buffering=0))
        return cls(reader, asyncio.StreamWriter(pipe, protocol, None, loop))

    async def send(self, message: dict[str, Any]) -> None:
        """Write a message, when there is room for it. Raises `OSError` if nobody reads."""
        try:
            self._writer.write(json.dumps(message, separators=(",", ":"), default=str).encode() + b"\n")
            await self._writer.drain()
        except OSError:
            self._gone.set()
            raise

    async def receive(self) -> dict[str, Any] | None:
        """The next message; None when there are no more, or nobody reads ours."""
        while True:
            line = await self._line()
            if not line:
                return None
            message, problem = _parse_message(line)
            if message is not None:
                return message
            if problem is not None:
                await self._send_error(problem)

    async def close(self) -> None:
        """No more messages."""
        self._writer.close()

    async def _line(self) -> bytes:
        reading, gone = asyncio.ensure_future(self._next_line()), asyncio.ensure_future(self._gone.wait())
        try:
            await asyncio.wait((reading, gone), return_when=asyncio.FIRST_COMPLETED)
            return reading.result() if reading.done() else b""
        finally:
            reading.cancel()
            gone.cancel()

    async def _next_line(self) -> bytes:
        is_too_long = False
        while True:
            try:
                line = await self._reader.readuntil(b"\n")
            except asyncio.IncompleteReadError as error:
                return error.partial
            except asyncio.LimitOverrunError as error:
                await self._reader.readexactly(error.consumed)
                is_too_long = True
            else:
                return b"{too long" if is_too_long else line

    async def _send_error(self, problem: tuple[int, str]) -> None:
        code, words = problem
        await self.send({"jsonrpc": "2.0", "id": None, "error": {"code": code, "message": words}})


def _parse_message(line: bytes) -> tuple[dict[str, Any] | None, tuple[int, str] | None]:
    """The message, or what is wrong with it; neither for an empty line."""
    if not line.strip():
        return None, None
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        return None, (PARSE_ERROR, "Parse error: one message of JSON-RPC on each line is expected")
    if not isinstance(message, dict):
        return None, (INVALID_REQUEST, "Invalid request: a message is an object")
    if not isinstance(message.get("method", ""), str) or not isinstance(message.get("id"), str | int | None):
        return None, (INVALID_REQUEST, "Invalid request: its id or its method is of the wrong kind")
    return message, None
