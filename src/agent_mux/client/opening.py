"""Opening a client without an `async with` block, for notebooks: their cells share an event loop, but no block."""

import asyncio
from contextlib import AbstractAsyncContextManager
from typing import Any, Self

from agent_mux.errors import AgentMuxError


class Openable(AbstractAsyncContextManager[Any]):
    """A client that a task of its own can hold open between `open` and `close`."""

    _holder: "asyncio.Task[None] | None" = None
    _closing: asyncio.Event

    async def open(self) -> Self:
        """Open the client until `close`, in place of an `async with` block. For notebooks, where one cell opens it.

        Raises INVALID_STATE_TRANSITION if it is open, VALIDATION_ERROR on another event loop than asyncio.
        """
        if self._holder is not None:
            raise AgentMuxError("INVALID_STATE_TRANSITION", "the client is open; use it, or close it with `close()`")
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError as error:
            raise AgentMuxError("VALIDATION_ERROR", "`open` needs asyncio; use `async with` on other loops") from error
        opened: asyncio.Future[None] = loop.create_future()
        self._closing = asyncio.Event()
        self._holder = loop.create_task(self._hold(opened, self._closing), name=f"open {type(self).__name__}")
        try:
            await opened
        except BaseException:
            self._closing.set()
            self._holder = None
            raise
        return self

    async def close(self) -> None:
        """End what `open` began, as the end of the block does: active runs are aborted. Does nothing if not open."""
        holder, self._holder = self._holder, None
        if holder is not None:
            self._closing.set()
            await holder

    async def _hold(self, opened: "asyncio.Future[None]", closing: asyncio.Event) -> None:
        try:
            async with self:
                if not opened.done():
                    opened.set_result(None)
                await closing.wait()
        except BaseException as error:
            if opened.done():
                raise
            opened.set_exception(error)
