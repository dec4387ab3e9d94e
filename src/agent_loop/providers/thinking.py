"""How much a model may think: budgets in tokens, levels, and less of it in later turns.

Source: phi-core, section 5; zidane, `thinkingDecay`.
"""

import math
from collections.abc import Callable

from agent_loop.behavior import ThinkingDecay
from agent_loop.providers.request import THINKING_TOKENS, ModelSettings, ThinkingLevel


def decayed_budget(base: int, decay: ThinkingDecay | Callable[[int, int], float] | None, turn: int) -> int:
    """The thinking budget of this turn (from 0) in tokens, always within 0 and `base`.

    A `ThinkingDecay` shrinks it geometrically from `after_turn` on, down to its floor. A function is asked with the
    turn and the base; what is no number counts as the base.
    """
    if decay is None:
        return base
    wanted = _tapered(base, decay, turn) if isinstance(decay, ThinkingDecay) else float(decay(turn, base))
    if math.isnan(wanted):
        return base
    return int(max(0, min(base, wanted)))


def _tapered(base: int, decay: ThinkingDecay, turn: int) -> float:
    if turn < decay.after_turn:
        return base
    return max(decay.floor, base * decay.factor ** (turn - decay.after_turn + 1))


def level_of(settings: ModelSettings) -> ThinkingLevel | None:
    """The level, for providers that know levels only: a budget counts as the lowest level that has as much."""
    budget = settings.thinking_budget
    if budget is None:
        return settings.thinking
    return next((level for level, tokens in THINKING_TOKENS.items() if budget <= tokens), "max")
