"""Calls of foreign functions that block, in threads that delay neither a cancelled run nor the end of the program."""

import sys
import threading
from asyncio import AbstractEventLoop
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from contextvars import copy_context
from typing import Any, TypeVar

import anyio
from anyio import CancelScope, from_thread, to_thread
from anyio.lowlevel import EventLoopToken, current_token

Returned = TypeVar("Returned")

_WORKER_STATE: Any = getattr(from_thread, "threadlocals", None)
"""What `anyio.from_thread` reads in a worker thread. It is not public: without it, threads of anyio are used."""


async def call_in_thread(function: Callable[..., Returned], *arguments: Any) -> Returned:
    """Return the result of a call in a worker thread, which a cancellation leaves behind.

    In it, `anyio.from_thread.run` and `check_cancelled` work as in the threads of `anyio.to_thread`. Those are no
    daemons on asyncio: Python waits for them at the end of the program.
    """
    token = current_token()
    has_daemons = not isinstance(token.native_token, AbstractEventLoop)  # trio
    if _WORKER_STATE is None or has_daemons:
        return await to_thread.run_sync(function, *arguments, abandon_on_cancel=True)
    async with to_thread.current_default_thread_limiter():
        return await _call_in_daemon(function, arguments, token)


async def _call_in_daemon(
    function: Callable[..., Returned], arguments: tuple[Any, ...], token: EventLoopToken
) -> Returned:
    context, done = copy_context(), anyio.Event()
    result: Future[Returned] = Future()

    def work() -> None:
        _WORKER_STATE.current_token, _WORKER_STATE.current_cancel_scope = token, scope
        try:
            context.run(_leave_event_loop)
            result.set_result(context.run(function, *arguments))
        except BaseException as error:  # noqa: BLE001  # raised in the event loop
            result.set_exception(error)
        with suppress(RuntimeError):  # the event loop has ended
            from_thread.run_sync(done.set, token=token)

    with CancelScope() as scope:
        threading.Thread(target=work, name="agent_loop function", daemon=True).start()
        await done.wait()
    return result.result()


def _leave_event_loop() -> None:
    """Allow `anyio.run` in this context, which was copied from a task of an event loop."""
    sniffio = sys.modules.get("sniffio")  # anyio uses it if it is installed
    if sniffio is not None:
        sniffio.current_async_library_cvar.set(None)
