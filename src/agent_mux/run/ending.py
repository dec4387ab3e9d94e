"""Ending the processes of a run: politely, then firmly, then all of them. Every wait is bounded."""

import signal
import time
from collections.abc import Awaitable
from typing import Any

import anyio

from agent_mux.process.child import Child
from agent_mux.process.marker import kill_processes_of, processes_of

SETTLE = 1.0  # seconds for the rest of the output after the agent is gone: a grandchild can hold the pipe for ever
LEFTOVER_GRACE = 0.5  # seconds between SIGTERM and SIGKILL for what the agent left running
PROTOCOL_GRACE = 1.0  # seconds for the agent to leave after it was told in its own protocol
LOOK_EVERY = 0.02  # seconds between two looks at /proc


async def within(seconds: float, wait: Awaitable[Any]) -> bool:
    """Wait, but not longer than this."""
    with anyio.move_on_after(seconds) as scope:
        await wait
    return not scope.cancelled_caught


async def end_agent(child: Child, run_id: str, *, grace: float, was_told: bool) -> None:
    """The agent was asked to leave, in its own protocol (`was_told`) or not. See that it does. Seconds."""
    if was_told and await within(min(PROTOCOL_GRACE, grace), child.wait()):
        return
    child.signal_group(signal.SIGTERM)
    if not await within(grace, child.wait()):
        child.signal_group(signal.SIGKILL)
        kill_processes_of(run_id)


async def settle(child: Child, run_id: str, output_complete: anyio.Event) -> None:
    """The agent is gone: wait a moment for the rest of its output, and end what it left running."""
    await within(SETTLE, output_complete.wait())
    if processes_of(run_id) or not output_complete.is_set():
        await _end_leftovers(child, run_id)
        await within(SETTLE, output_complete.wait())


async def _end_leftovers(child: Child, run_id: str) -> None:
    child.signal_group(signal.SIGTERM)
    kill_processes_of(run_id, signal.SIGTERM)
    deadline = time.monotonic() + LEFTOVER_GRACE
    while processes_of(run_id) and time.monotonic() < deadline:  # noqa: ASYNC110  # nobody tells when a stranger ends
        await anyio.sleep(LOOK_EVERY)
    kill_everything(child, run_id)


def kill_everything(child: Child, run_id: str) -> None:
    """Nothing of the run is left after this, wherever it went."""
    child.signal_group(signal.SIGKILL)
    kill_processes_of(run_id)


def signal_everything(child: Child, run_id: str, number: int) -> None:
    """A signal to the group, and to everything that left it."""
    child.signal_group(number)
    kill_processes_of(run_id, number)
