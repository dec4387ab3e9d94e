"""Bytes of tool output, and the word about too many of them. Source: zidane, `toolOutputBudget`, "outputBytes"."""

from collections.abc import Iterable, Sequence

from agent_loop.messages import ToolMessage, UserMessage, user
from agent_loop.tools.results import output_bytes


def turn_output_bytes(results: Iterable[ToolMessage]) -> int:
    """What all the tools of one turn returned, together."""
    return sum(output_bytes(result.content) for result in results)


def over_output_budget(results: Sequence[ToolMessage], budget: int | None) -> UserMessage | None:
    """What to tell the model when the results of a turn are more than the budget (bytes); None: nothing."""
    size = turn_output_bytes(results)
    return output_budget_message(size, budget) if budget is not None and size > budget else None


def output_budget_message(size: int, budget: int) -> UserMessage:
    """The synthetic user message, in the words of the seed."""
    return user(
        f"[Tool output budget exceeded: {size} bytes returned in this turn (cap: {budget}). "
        "Summarize the salient findings before calling more tools.]",
        origin="budget",
    )
