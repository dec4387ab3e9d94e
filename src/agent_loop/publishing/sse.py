"""Server-Sent Events of a subscription: positions, frames, and the response that sends them.

The id of an event is `BUS-NUMBER`, so that a client that reconnects after a restart of the program does not continue at
an unrelated event.
"""

import re
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import anyio

from agent_loop.errors import ConfigurationError
from agent_loop.messages.formatting import encode_json
from agent_loop.publishing.bus import EventBus, Subscription
from agent_loop.publishing.published import Gap, PublishedEvent

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

RESTARTED = b'event: restart\ndata: {"type":"restart"}\n\n'
"""Sent first to a client whose last event is that of another bus: the events between are unknown."""
HEARTBEAT_COMMENT = b": ping\n"
HEADERS = (
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),
)
_POSITION = re.compile(r"(?:(?P<bus>[0-9a-f]{12})-)?(?P<number>-1|[0-9]{1,15})")


def read_position(text: str, bus: EventBus) -> tuple[int, bool]:
    """Return the number of the event that `text` names, and whether it is one of this bus.

    `text` is the id of an event, or a number. For another bus, the number is -1. Raises `ConfigurationError`.
    """
    match = _POSITION.fullmatch(text)
    if match is None:
        raise ConfigurationError(f"{text[:80]!r} is not the id of an event; send the last `id` unchanged, or -1")
    if match["bus"] not in {None, bus.bus_id}:
        return -1, False
    return int(match["number"]), True


def frame(bus: EventBus, item: PublishedEvent | Gap) -> bytes:
    """Encode an event, or a gap as an event of type `gap`; an event that JSON cannot hold is a gap of its own."""
    if isinstance(item, PublishedEvent):
        try:
            return b"id: %b\ndata: %b\n\n" % (_id(bus, item.number), encode_json(item))  # JSON has no line breaks
        except ValueError:
            item = Gap(first=item.number, last=item.number)
    return b"event: gap\nid: %b\ndata: %b\n\n" % (_id(bus, item.last), encode_json(item))


def position_frame(bus: EventBus, subscription: Subscription, *, comment: bytes = b"") -> bytes:
    """Encode the position alone: clients remember it and dispatch no event.

    A client that reconnects before its first event, or after many that it does not want, continues there.
    """
    return b"%bid: %b\n\n" % (comment, _id(bus, subscription.position - 1))


def _id(bus: EventBus, number: int) -> bytes:
    return f"{bus.bus_id}-{number}".encode()


@dataclass(frozen=True, slots=True)
class SseStream:
    """The response with the events of a subscription."""

    bus: EventBus
    subscription: Subscription
    first: bytes
    """The frames before the events."""
    heartbeat: float
    """Seconds without an event after which a comment is sent with the current position."""

    async def send(self, receive: Receive, send: Send) -> None:
        """Send the events until the subscription ends or the client disconnects."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_cancel_on_disconnect, receive, tasks.cancel_scope)
            with suppress(OSError):  # the client has disconnected
                await send({"type": "http.response.start", "status": 200, "headers": list(HEADERS)})
                chunk: bytes | None = self.first
                while chunk is not None:
                    await send({"type": "http.response.body", "body": chunk, "more_body": True})
                    chunk = await self._next_chunk()
                await send({"type": "http.response.body", "body": b""})
            tasks.cancel_scope.cancel()

    async def _next_chunk(self) -> bytes | None:
        """Return the next event, or a heartbeat if there is none in time; None at the end."""
        with anyio.move_on_after(self.heartbeat):
            try:
                return frame(self.bus, await anext(self.subscription))
            except StopAsyncIteration:
                return None
        return position_frame(self.bus, self.subscription, comment=HEARTBEAT_COMMENT)


async def _cancel_on_disconnect(receive: Receive, scope: anyio.CancelScope) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    scope.cancel()
