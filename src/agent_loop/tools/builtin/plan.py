"""The tool `present_plan`: the model presents a plan, and the user accepts it or states what to change."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from agent_loop.messages import Text
from agent_loop.tools.tool import ToolContext, ToolResult

PRESENT_PLAN = "present_plan"
ACCEPT, REJECT = "accept", "reject"
"""The options of the question to the user. Any other answer rejects the plan and is the reason."""
MAX_PLAN = 100_000
"""Characters of a plan."""
ACCEPTED = (
    "The user accepted the plan. Plan mode has ended: you may change files and run commands now. Carry out the plan, "
    "and keep its steps as todos if there are several."
)
REJECTED = "The user rejected the plan"
REVISE = "You are still in plan mode: revise the plan and present it again."


@dataclass(frozen=True, slots=True)
class PlanDecision:
    """The decision of the user about a plan."""

    accepted: bool
    reason: str = ""
    """Why the plan was rejected, or what to change; for the model."""


PlanReview = Callable[[str, ToolContext], Awaitable[PlanDecision]]
"""Presents a plan to the user and returns the decision. Raises `ToolError` if no one can decide."""


async def ask_about_plan(plan: str, context: ToolContext) -> PlanDecision:
    """Ask the user with `ToolContext.ask` whether to carry out the plan. Raises `ToolError` without an answer."""
    answer = (await context.ask(f"{plan}\n\nCarry out this plan?", (ACCEPT, REJECT))).strip()
    if answer.casefold() == ACCEPT:
        return PlanDecision(accepted=True)
    return PlanDecision(accepted=False, reason="" if answer.casefold() == REJECT else answer)


class PresentPlanTool:
    """A tool by which the model presents a plan and waits for the decision of the user.

    The details of the result are `{"accepted": bool}`. The tool itself restricts nothing: `PlanMode` does, or another
    gate.
    """

    name = PRESENT_PLAN
    label = "Plan"
    description = (
        "Present your plan to the user, who accepts it or states what to change. Call it once you know what to do: "
        "state what to change, in which files, in which order, and how to check the result. The plan must be complete, "
        "because the user sees nothing else."
    )
    kind = "ask"
    risk = "low"
    sequential = True
    max_depth = 1  # only the main agent presents plans: sub-agents do not inherit the tool
    parameters: Mapping[str, Any] = {
        "type": "object",
        "properties": {
            "plan": {"type": "string", "minLength": 1, "maxLength": MAX_PLAN, "description": "The plan in Markdown."}
        },
        "required": ["plan"],
        "additionalProperties": False,
    }

    def __init__(self, review: PlanReview = ask_about_plan) -> None:
        self._review = review

    async def execute(self, arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        """Wait for the decision and return it. Raises `ToolError` if no one can decide."""
        decision = await self._review(str(arguments["plan"]), context)
        if decision.accepted:
            return ToolResult((Text(ACCEPTED),), details={"accepted": True})
        reason = f"{REJECTED}: {decision.reason}" if decision.reason else f"{REJECTED}."
        return ToolResult((Text(f"{reason}\n\n{REVISE}"),), is_error=True, details={"accepted": False})
