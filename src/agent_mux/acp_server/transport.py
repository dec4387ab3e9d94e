"""JSON-RPC messages over two pipes, one per line. Invalid input does not end the connection.

The library's own transport ends the connection on a line that is JSON but not a message, and does not answer a line
that is not JSON.
"""

import asyncio
import json
import os
from asyncio.streams import FlowControlMixin
from collections.abc import Callable
from typing import Any

LONGEST_MESSAGE = 64 << 20  # bytes; prompts can contain images
PARSE_ERROR, INVALID_REQUEST = -32700, -32600


class PipeTransport:
    """One connection, with the transport interface of `acp`."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._gone = asyncio.Event()

    @classmethod
    async def over(cls, read_from: int, write_to: int) -> "PipeTransport":
        """Create a transport that owns two descriptors. Raise `ValueError` if one is neither pipe nor socket."""
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader(limit=LONGEST_MESSAGE)
        await loop.connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(read_from, "rb", buffering=0)
        )
        pipe, protocol = await loop.connect_write_pipe(FlowControlMixin, os.fdopen(write_to, "wb", buffering=0))
        return cls(reader, asyncio.StreamWriter(pipe, protocol, None, loop))

    async def send(self, message: dict[str, Any]) -> None:
        """Write a message, waiting for a slow reader. Raise `OSError` if the reader is gone."""
        try:
            self._writer.write(json.dumps(message, separators=(",", ":"), default=str).encode() + b"\n")
            await self._writer.drain()
        except OSError:
            self._gone.set()
            raise

    async def receive(self) -> dict[str, Any] | None:
        """Return the next message; None at the end of input, or if the reader of our messages is gone."""
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
        """Close the outgoing pipe of the connection."""
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


class AnsweringTransport:
    """A transport that reports the results that were sent to the editor."""

    def __init__(self, transport: Any, on_result: Callable[[dict[str, Any]], None]) -> None:
        self._transport = transport
        self._on_result = on_result

    async def send(self, message: dict[str, Any]) -> None:
        """Send a message, and report it afterwards if it has a result."""
        await self._transport.send(message)
        result = message.get("result")
        if isinstance(result, dict):
            self._on_result(result)

    async def receive(self) -> dict[str, Any] | None:
        """Return the next message, as the transport does."""
        message: dict[str, Any] | None = await self._transport.receive()
        return message

    async def close(self) -> None:
        """Close the transport."""
        await self._transport.close()


def _parse_message(line: bytes) -> tuple[dict[str, Any] | None, tuple[int, str] | None]:
    """Return the message or a JSON-RPC error code and message; neither for an empty line."""
    if not line.strip():
        return None, None
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        return None, (PARSE_ERROR, "Parse error: expected one JSON-RPC message per line")
    if not isinstance(message, dict):
        return None, (INVALID_REQUEST, "Invalid request: a message must be an object")
    if not isinstance(message.get("method", ""), str) or not isinstance(message.get("id"), str | int | None):
        return None, (INVALID_REQUEST, "Invalid request: id or method has the wrong type")
    return message, None
