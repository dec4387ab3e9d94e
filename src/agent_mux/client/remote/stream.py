"""Server-Sent Events, cut anywhere: what is not complete is not there. Source: HTML, section 9.2.

What happens in a run, from the service: a stream that is taken up where it broke off, without gap or double.
"""

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, NamedTuple

import anyio
import httpx
import msgspec

from agent_mux.client.remote.connection import Line
from agent_mux.client.remote.snapshot import Snapshot
from agent_mux.errors import AgentMuxError
from agent_mux.events import AgentEvent, Rebuilder, UnknownEvent

_END = b"\n\n"


class Message(NamedTuple):
    """One of them."""

    number: int | None
    """Its id."""
    name: str
    """`message`, where nothing else is said."""
    data: bytes


class MessageParser:
    """Takes bytes of one connection, and gives the messages that they complete."""

    def __init__(self) -> None:
        self._begun = bytearray()
        self._searched = 0

    def feed(self, data: bytes) -> list[Message]:
        """The messages that are complete now; comments are none."""
        self._begun += data.replace(b"\r", b"")  # JSON has no line breaks of any kind
        messages = []
        start = 0
        while (end := self._begun.find(_END, max(start, self._searched))) >= 0:
            message = _message(bytes(self._begun[start:end]))
            if message is not None:
                messages.append(message)
            start = end + len(_END)
        del self._begun[:start]
        self._searched = max(len(self._begun) - 1, 0)
        return messages


def _message(block: bytes) -> Message | None:
    number, name, data = None, "message", []
    for line in block.split(b"\n"):
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        match field:
            case b"data":
                data.append(value)
            case b"event":
                name = value.decode("utf-8", "replace")
            case b"id" if value.isdigit():
                number = int(value)
    return Message(number, name, b"\n".join(data)) if data else None


FIRST_DELAY, LONGEST_DELAY = 0.05, 5.0  # seconds before connecting again
MOST_BREAKS = 5
"""Attempts to read what cannot be read."""
RESULT = "run_result"
_TRANSIENT = frozenset({"UNAVAILABLE", "LIMIT_EXCEEDED", "RATE_LIMITED", "INTERNAL", "CONFIG_LOCK_ERROR", "TIMEOUT"})
News = Snapshot | Sequence[AgentEvent] | Mapping[str, Any]
"""How the run is, the next events, or the result at its end."""


class Broken(Exception):  # noqa: N818  # it is no error of ours: it is tried again
    """The stream says what it should not: it is read anew from the last event that was right."""


class Stream:
    """One reader of a run's events. `patience`: seconds without any sign of the service, then it gives up."""

    def __init__(self, line: Line, run_id: str, *, patience: float, snapshots: bool = False) -> None:
        self._line = line
        self._path = f"/v1/runs/{run_id}/events"
        self._params = {"accumulated": "false", **({"snapshots": "true"} if snapshots else {})}
        self._patience = patience
        self._rebuilder = Rebuilder()
        self._position = 0
        self._is_over = False
        self._heard_at = 0.0
        self._delay = FIRST_DELAY
        self._broken_at, self._breaks = -1, 0

    async def follow(self, take: Callable[[News], Awaitable[None]]) -> None:
        """Give everything to `take`, until the run is over. Raises what the service says finally, or UNAVAILABLE."""
        self._heard_at = time.monotonic()
        while not self._is_over:
            try:
                await self._connected(take)
                failure: Exception = Broken("the service ended the stream")
            except httpx.RequestError as error:
                failure = error
            except Broken as error:
                failure = self._counted(error)
            except AgentMuxError as error:
                if error.code not in _TRANSIENT:
                    raise
                failure = error
            if not self._is_over:
                await self._wait_after(failure)

    async def _connected(self, take: Callable[[News], Awaitable[None]]) -> None:
        parser = MessageParser()
        async with self._line.stream(self._path, self._params, self._position - 1) as chunks:
            async for chunk in chunks:
                self._heard_at, before = time.monotonic(), self._position
                for news in self._news(parser.feed(chunk)):
                    await take(news)
                if self._position > before:
                    self._delay = FIRST_DELAY

    def _counted(self, error: Broken) -> Broken:
        """Raises UNAVAILABLE when it is always the same."""
        self._breaks = self._breaks + 1 if self._position == self._broken_at else 1
        self._broken_at = self._position
        if self._breaks == MOST_BREAKS:
            raise AgentMuxError("UNAVAILABLE", f"the service at {self._line.address.url} cannot be read: {error}")
        return error

    async def _wait_after(self, failure: Exception) -> None:
        if time.monotonic() + self._delay > self._heard_at + self._patience:
            raise failure if isinstance(failure, AgentMuxError) else self._line.unreachable(failure) from failure
        await anyio.sleep(self._delay)
        self._delay = min(self._delay * 2, LONGEST_DELAY)

    def _news(self, messages: Sequence[Message]) -> list[News]:
        """Events in one piece, as far as nothing is between them."""
        news: list[News] = []
        for message in messages:
            made = self._read(message)
            if isinstance(made, list) and news and isinstance(news[-1], list):
                news[-1] += made
            elif made is not None:
                news.append(made)
        return news

    def _read(self, message: Message) -> "Snapshot | list[AgentEvent] | Mapping[str, Any] | None":
        try:
            if message.name == "run":
                return msgspec.json.decode(message.data, type=Snapshot)
            if message.name != "message" or message.number is None or message.number < self._position:
                return None  # of a newer service, or known
            if message.number > self._position:
                raise Broken(f"event {self._position} is missing")
            event = self._rebuilder.decode(message.data)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise Broken(f"what the service says cannot be read: {error}") from error
        self._position += 1
        if isinstance(event, UnknownEvent) and event.native_type == RESULT:
            self._is_over = True
            return event.fields
        return [event]  # type: ignore[list-item]  # of a newer service: as it is
