"""The turns of a conversation: what counts as one, and when it can be stopped."""

from collections.abc import Awaitable, Callable
from typing import Any

import anyio
from tests.unit.embedded.cli.test_projection import EventLog

from agent_loop.behavior import ExecutionLimits
from agent_loop.cli.turns import ConversationBudget, TurnRunner
from agent_loop.events import LoopEnd, LoopEvent, LoopStart
from agent_loop.loop.inputs import MessageQueue
from agent_loop.messages import user


class HandingOff:
    """An agent whose run has two loops. `between` is called after the first."""

    def __init__(self, between: Callable[[], None]) -> None:
        self.steering = MessageQueue()
        self.follow_ups = MessageQueue()
        self.aborted: list[str] = []
        self._between = between

    async def run(self, _prompt: Any, *, behavior: Any, on_event: Callable[[LoopEvent], Awaitable[None]]) -> None:
        assert behavior.limits.max_turns == 9
        await on_event(LoopStart(loop_id="s.a.1", agent_id="x", session_id="s"))
        await on_event(LoopEnd(loop_id="s.a.1", status="completed", turns=1, handed_off_to="b"))
        self._between()
        await on_event(LoopStart(loop_id="s.b.1", agent_id="x", session_id="s"))
        await on_event(LoopEnd(loop_id="s.b.1", status="aborted", turns=2, error_kind="aborted"))

    def steer(self, message: Any) -> None:
        self.steering.put(message)

    def follow_up(self, message: Any) -> None:
        self.follow_ups.put(message)

    def abort(self, reason: str = "") -> None:
        self.aborted.append(reason)


def test_turn_lasts_until_the_loop_that_hands_off_to_nobody() -> None:
    seen: list[object] = []

    def between() -> None:
        seen.extend([turns.is_running, turns.steer(user("be brief")), turns.interrupt()])
        turns.close()

    agent, log = HandingOff(between), EventLog(interactive=True)
    budget = ConversationBudget(ExecutionLimits(max_turns=9))
    turns = TurnRunner(agent, log.stream, budget=budget)
    turns.prompt(user("go"))

    async def run() -> None:
        with anyio.fail_after(20):
            await turns.run()

    anyio.run(run)
    assert seen == [True, "merged", True]
    assert agent.aborted
    assert budget.turns == 3
    log.end()
    assert log.types().count("turn_start") == 1
