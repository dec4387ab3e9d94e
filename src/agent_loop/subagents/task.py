"""The protocol between the tool and whatever executes a sub-agent: a task goes in, a report comes back."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from agent_loop.behavior import ExecutionLimits
from agent_loop.events import LoopStatus, is_failed_delegation
from agent_loop.loop.run import LoopRun
from agent_loop.sessions.session import SpawnRef
from agent_loop.usage import Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class SubAgentTask:
    """One delegation."""

    subagent_id: str
    """The unique id of the delegation; a loop of our own uses it as the id of its session."""
    name: str
    """The kind of sub-agent."""
    prompt: str
    spawned_by: SpawnRef
    """The tool call that delegates, and the depth of the sub-agent."""
    limits: ExecutionLimits
    """Limits of the sub-agent: its own, at most what is left of the parent's tokens, time and cost."""
    parent: LoopRun
    """The run that delegates, whose model, tools and settings a runner may inherit."""
    progress: Callable[[str], Awaitable[None]]
    """Report progress to the user."""
    spend: Callable[[Usage], None]
    """Record usage as it occurs; it counts for the parent however the sub-agent ends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SubAgentReport:
    """The outcome of a delegation."""

    status: LoopStatus
    text: str = ""
    """The report for the parent's model."""
    error: str | None = None
    """Why there is no report, or why it may be incomplete."""
    child_loop_id: str | None = None
    child_session_id: str | None = None
    model: str = ""

    @property
    def is_error(self) -> bool:
        """Whether the parent's model gets an error: the sub-agent failed, or stopped without any text."""
        return is_failed_delegation(self.status, self.text)


SubAgentRunner = Callable[[SubAgentTask], Awaitable[SubAgentReport]]
"""A coroutine function that executes a task. Its cancellation ends the sub-agent; exceptions become error results."""
