"""From a thread to the event loop, whichever it is: never blocks the sender, keeps the order."""

import os
from collections import deque
from contextlib import suppress
from types import TracebackType
from typing import Generic, Self, TypeVar

import anyio

Item = TypeVar("Item")


class Mailbox(Generic[Item]):
    """A queue with a pipe that says that there is something in it."""

    def __init__(self) -> None:
        self._items: deque[Item] = deque()
        self._reader = self._writer = -1

    def __enter__(self) -> Self:
        self._reader, self._writer = os.pipe()
        os.set_blocking(self._reader, False)
        os.set_blocking(self._writer, False)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        writer, self._writer = self._writer, -1
        os.close(writer)
        os.close(self._reader)

    def put(self, item: Item) -> None:
        """From any thread, also before anybody listens. After the end nobody hears it."""
        self._items.append(item)
        self._wake()

    def _wake(self) -> None:
        with suppress(OSError):  # full: then it is known that there is something; not open: nobody listens
            os.write(self._writer, b"\0")

    async def receive(self) -> Item:
        """The next one."""
        while not self._items:
            await anyio.wait_readable(self._reader)
            os.read(self._reader, 4096)
        return self._items.popleft()
