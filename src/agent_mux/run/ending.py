"""Ending the processes of a run: politely, then firmly, then all of them. Every wait is bounded."""

import signal
import time
from collections.abc import Awaitable
from typing import Any

import anyio

from agent_mux.process.child import Child

SETTLE = 1.0  # seconds for the rest of the output after the agent is gone: a grandchild can hold the pipe for ever
LEFTOVER_GRACE = 0.5  # seconds between SIGTERM and SIGKILL for what the agent left running
PROTOCOL_GRACE = 1.0  # seconds at most for the agent to leave after it was told in its own protocol
LOOK_EVERY = 0.02  # seconds between two looks at /proc


async def within(seconds: float, wait: Awaitable[Any]) -> bool:
    """Wait, but not longer than this."""
    with anyio.move_on_after(seconds) as scope:
        await wait
    return not scope.cancelled_caught


async def end_agent(child: Child, *, grace: float, was_told: bool) -> None:
    """The agent was asked to leave, in its own protocol (`was_told`) or not. See that it does, within `grace` seconds.

    All of it together takes one grace period: SIGTERM comes half way at the latest.
    """
    told = min(PROTOCOL_GRACE, grace / 2) if was_told else 0.0
    if was_told and await within(told, child.wait()):
        return
    child.signal_group(signal.SIGTERM)
    if not await within(grace - told, child.wait()):
        child.signal_all(signal.SIGKILL)


async def settle(child: Child, output_complete: anyio.Event) -> None:
    """The agent is gone: wait a moment for the rest of its output, and end what it left running."""
    await within(SETTLE, output_complete.wait())
    if child.is_survived() or not output_complete.is_set():
        await _end_leftovers(child)
        await within(SETTLE, output_complete.wait())


async def _end_leftovers(child: Child) -> None:
    child.signal_all(signal.SIGTERM)
    deadline = time.monotonic() + LEFTOVER_GRACE
    while child.is_survived() and time.monotonic() < deadline:  # noqa: ASYNC110  # nobody tells when a stranger ends
        await anyio.sleep(LOOK_EVERY)
    child.signal_all(signal.SIGKILL)
