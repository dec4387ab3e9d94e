"""What is left of the limits of a whole conversation: each of its turns is a run with limits of its own."""

from msgspec import Struct

from agent_loop.behavior import Behavior, ExecutionLimits
from agent_loop.events import LoopEnd
from agent_loop.usage import Usage


class Budget(Struct):
    """Limits of the conversation, and what was used of them."""

    limits: ExecutionLimits
    turns: int = 0
    usage: Usage = Usage()

    def spend(self, end: LoopEnd) -> None:
        """A run is over."""
        self.turns += end.turns
        self.usage += end.usage

    def rest(self) -> Behavior:
        """The limits of the next run. A duration is of each run."""
        limits = self.limits
        return Behavior(
            limits=ExecutionLimits(
                max_turns=_rest(limits.max_turns, self.turns),
                max_total_tokens=_rest(limits.max_total_tokens, self.usage.total_tokens),
                max_duration=limits.max_duration,
                max_cost_usd=None
                if limits.max_cost_usd is None
                else max(limits.max_cost_usd - (self.usage.cost_usd or 0.0), 0.0),
            )
        )


def _rest(limit: int | None, used: int) -> int | None:
    return None if limit is None else max(limit - used, 0)
