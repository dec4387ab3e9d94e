"""Calls of the caller's functions, in the event loop or a thread: with a time limit, and one exception for failures.

Threads are daemons: a function that never returns delays neither the run nor the end of the program.
"""

import inspect
import math
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from typing import Any

import anyio
from anyio import CapacityLimiter, from_thread
from anyio.lowlevel import current_token

MAX_THREADS = 16
"""Calls of synchronous functions that run at the same time, in one run."""


class FunctionFailed(Exception):  # noqa: N818  # named as the sentence that it is
    """A function of the caller raised, or did not return in time."""

    def __init__(self, raised: BaseException | None = None) -> None:
        """Take the exception of the function; None: it did not return in time."""
        super().__init__(raised)
        self.raised = raised

    def __str__(self) -> str:
        return "no return in time" if self.raised is None else f"{type(self.raised).__name__}: {self.raised}"


async def call_function(call: Callable[[], Any], threads: CapacityLimiter, seconds: float) -> Any:
    """Await a coroutine function, or call a synchronous one in a thread, for a limited time.

    Raises:
        FunctionFailed: The function raised, or time is up. That includes `SystemExit`, which would end the program of
            the caller, and a cancellation by the function itself, which would end the task that waits for a decision.
    """
    with anyio.move_on_after(seconds):
        try:
            if _is_async(call):
                return await call()
            returned = await _call_in_thread(call, threads)
            return await returned if inspect.isawaitable(returned) else returned
        except (Exception, SystemExit) as error:
            raise FunctionFailed(error) from error
        except anyio.get_cancelled_exc_class() as error:
            if anyio.current_effective_deadline() == -math.inf:  # the run is cancelled, or the time is up
                raise
            raise FunctionFailed(error) from error
    raise FunctionFailed


async def _call_in_thread(call: Callable[[], Any], threads: CapacityLimiter) -> Any:
    """Return the result of a call in a new daemon thread, which a cancellation leaves behind.

    The threads of `anyio.to_thread` are no daemons on asyncio: Python waits for them at the end of the program.
    """
    token, context, done = current_token(), copy_context(), anyio.Event()
    result: Future[Any] = Future()

    def work() -> None:
        try:
            context.run(_leave_event_loop)
            result.set_result(context.run(call))
        except BaseException as error:  # noqa: BLE001  # raised in the event loop
            result.set_exception(error)
        with suppress(RuntimeError):  # the event loop has ended
            from_thread.run_sync(done.set, token=token)

    async with threads:
        threading.Thread(target=work, name="agent-mux function", daemon=True).start()
        await done.wait()
    return result.result()


def _leave_event_loop() -> None:
    """Allow `anyio.run` in this context, which was copied from a task of an event loop."""
    sniffio = sys.modules.get("sniffio")  # anyio uses it if it is installed
    if sniffio is not None:
        sniffio.current_async_library_cvar.set(None)


def _is_async(function: Callable[..., Any]) -> bool:
    target = function.func if isinstance(function, partial) else function
    return inspect.iscoroutinefunction(target) or inspect.iscoroutinefunction(getattr(target, "__call__", None))  # noqa: B004
