"""Waiting in one event loop for something that happens in any thread."""

import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import anyio

CallSoon = Callable[..., object]
"""Calls a function with arguments in an event loop, from any thread. Raises `RuntimeError` if the loop has ended."""


def call_soon_here() -> CallSoon:
    """Return the function that calls others in the current event loop, which may be one of asyncio or Trio."""
    trio: Any = sys.modules.get("trio")
    if trio is not None and trio.lowlevel.in_trio_run():
        return trio.lowlevel.current_trio_token().run_sync_soon  # type: ignore[no-any-return]
    import asyncio  # noqa: PLC0415  # a program that uses Trio has no need of it

    return asyncio.get_running_loop().call_soon_threadsafe


class Waiter:
    """A task that waits until it is woken, once."""

    def __init__(self) -> None:
        self._event = anyio.Event()
        self._call_soon = call_soon_here()

    async def wait(self) -> None:
        """Wait until `wake` is called."""
        await self._event.wait()

    def wake(self) -> None:
        """Wake the task, from any thread."""
        with suppress(RuntimeError):  # the event loop of the task has ended
            self._call_soon(self._event.set)
