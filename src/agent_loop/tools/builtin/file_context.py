"""What the file tools take from the context of a call."""

from collections.abc import Callable
from typing import TypeVar

from anyio import from_thread, to_thread

from agent_loop.behavior import DEFAULTS, Behavior
from agent_loop.errors import ToolError
from agent_loop.tools.tool import ToolContext
from agent_loop.workspace import Workspace

Outcome = TypeVar("Outcome")


def workspace_of(context: ToolContext) -> Workspace:
    """Raises `ToolError` where there is none."""
    if context.workspace is None:
        raise ToolError("this agent has no workspace, so it can use no files")
    return context.workspace


def behavior_of(context: ToolContext) -> Behavior:
    """With a value in each field."""
    return (context.behavior or Behavior()).over(DEFAULTS)


async def in_thread(work: Callable[[], Outcome]) -> Outcome:
    """Do blocking work. Cancelling ends work that calls `check_cancelled`; other work is waited for."""
    return await to_thread.run_sync(work)


check_cancelled = from_thread.check_cancelled
"""Raises the cancellation, in a thread whose task was cancelled."""
