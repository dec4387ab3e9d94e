"""The loops of one run: without handoffs one, otherwise one for each agent that has the conversation."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from os import PathLike

from agent_loop.behavior import DEFAULTS, Behavior
from agent_loop.hooks.registry import Hooks
from agent_loop.loop.engine import Engine
from agent_loop.loop.limits import tightest
from agent_loop.loop.run import Ending, LoopRun
from agent_loop.messages import Message
from agent_loop.providers import Provider


@dataclass(frozen=True, slots=True, kw_only=True)
class ActingAgent:
    """The agent that has the conversation: the settings of a loop in which the agents of one run differ."""

    name: str
    provider: Provider
    fallbacks: tuple[Provider, ...]
    system_prompt: str
    behavior: Behavior
    hooks: Hooks
    """Handlers and tools of this agent only, besides those of the agent that the run was started with."""
    skills: Sequence[str | PathLike[str]] | None = None
    """Directories of skills instead of those of the first agent; None: those."""
    inherited: tuple[Message, ...] | None = None
    """What it sees of the history before it got the conversation; None: all of it."""


def behavior_after_handoff(own: Behavior | None, of_run: Behavior) -> Behavior:
    """Return the options of an agent that gets the conversation of a run with the options `of_run`.

    Its own options apply, but it answers in the form that the run asks for, within the limits of the run.
    """
    merged = (own or Behavior()).over(replace(of_run, tool_choice=DEFAULTS.tool_choice))
    return replace(
        merged,
        limits=tightest(merged.limits, of_run.limits),
        max_iterations=min(merged.max_iterations, of_run.max_iterations),
        max_handoffs=of_run.max_handoffs,
        tool_budgets={**merged.tool_budgets, **of_run.tool_budgets},
        output_schema=of_run.output_schema,
    )


class LoopChain:
    """Executes the loops of a run, one after the other. `run` is the current or the last one."""

    def __init__(self, run: LoopRun, engine: Engine) -> None:
        self.run = run
        self._engine = engine

    def abort(self, reason: str) -> None:
        """End the run in an orderly way. Call it from the event loop's thread only."""
        self._engine.abort(reason)

    async def execute(self, next_loop: Callable[[LoopRun], tuple[LoopRun, Engine]]) -> Ending:
        """Execute the loops and return the outcome of the last one.

        `next_loop` returns the loop that follows a handoff, and its engine. Raises what `Engine.execute` raises.
        """
        ending = await self._engine.execute()
        while ending.handed_off_to is not None:
            reason = self.run.abort_reason
            self.run, self._engine = next_loop(self.run)
            if reason is not None:  # the run was aborted after the end of the loop before
                self._engine.abort(reason)
            ending = await self._engine.execute()
        return ending
