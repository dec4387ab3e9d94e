"""Bounded runs of an agent in tests, with all events collected."""

from collections.abc import Callable
from typing import Any

import anyio

from agent_loop.agent import Agent
from agent_loop.behavior import Behavior, RetrySettings
from agent_loop.events import LoopEvent
from agent_loop.loop.run import Surroundings
from agent_loop.results import RunResult

WAIT = 20.0
"""Seconds that no test needs."""


class Counted:
    """A deterministic clock, id generator and sleep."""

    def __init__(self) -> None:
        self.ticks = 0
        self.ids = 0
        self.slept: list[float] = []

    def now_ms(self) -> int:
        self.ticks += 1
        return 1_700_000_000_000 + self.ticks

    def new_id(self) -> str:
        self.ids += 1
        return f"id{self.ids}"

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        await anyio.lowlevel.checkpoint()

    def surroundings(self) -> Surroundings:
        return Surroundings(
            now_ms=self.now_ms, monotonic=lambda: 0.0, new_id=self.new_id, sleep=self.sleep, chance=lambda: 0.5
        )


def agent(provider: Any, *tools: Any, counted: Counted | None = None, **known: Any) -> Agent:
    """Return an agent with deterministic surroundings."""
    behavior = Behavior(retry=RetrySettings(max_retries=2)) if "behavior" not in known else known.pop("behavior")
    return Agent(provider, tools=tools, behavior=behavior, surroundings=(counted or Counted()).surroundings(), **known)


async def streamed(
    one: Agent,
    prompt: Any = "go",
    on: Callable[[LoopEvent], None] | None = None,
    within: float = WAIT,
    **known: Any,
) -> tuple[list[LoopEvent], RunResult]:
    """Return all events of a run, and its result. `within` is the limit in seconds."""
    with anyio.fail_after(within):
        async with one.run_stream(prompt, **known) as events:
            received = []
            async for event in events:
                received.append(event)
                if on is not None:
                    on(event)
    assert events.result is not None
    return received, events.result


def kinds(received: list[LoopEvent]) -> list[str]:
    """Return the types of the events, in order."""
    return [str(type(event).__struct_config__.tag) for event in received]
