"""Plan mode: the agent only reads until the user accepts its plan."""

from collections.abc import Iterable

from agent_loop.hooks.contexts import BeforeAgent, BeforeLoop, LoopEnded, ToolAfter, ToolGate, TransformSystem
from agent_loop.hooks.registry import Hooks
from agent_loop.messages import Message, ToolMessage
from agent_loop.tools.builtin.plan import PRESENT_PLAN, PlanReview, PresentPlanTool, ask_about_plan
from agent_loop.tools.tool import Tool, needs_no_approval

ONLY_PLANS = (
    f"plan mode allows only tools that read; present your plan with {PRESENT_PLAN}, and continue when the user has "
    "accepted it"
)
PLAN_INSTRUCTIONS = """\
You are in plan mode until the user accepts your plan: read and search, but change nothing and run no commands. Once \
you know what to do, call present_plan with a complete plan: what to change, in which files, in which order, and how \
to check the result. If the user rejects it, revise it as the reason states and present it again. Once present_plan \
reports that the plan is accepted, plan mode is over: carry it out. If no user can decide, answer with the plan."""
READ_INSTRUCTIONS = "You only read and search: change nothing, run no commands, and report what should be changed."
ONLY_READS = "this agent only reads; continue without this call and report what should be changed"


class PlanMode:
    """Blocks calls that do more than read until the user accepts a plan that the model presents.

    An accepted plan holds for the rest of the conversation, also after a resume: the history has the decision, so that
    a branch or a rerun from before it is in plan mode again. Calls of sub-agents are blocked as well.
    """

    name = "plan"

    def __init__(self, review: PlanReview | None = ask_about_plan) -> None:
        """`review` asks the user about a plan; None: no plan is presented, and the agent only reads."""
        self._tool: Tool | None = None if review is None else PresentPlanTool(review)
        self._accepted: dict[str, bool] = {}
        """Loop id of each active run -> whether the user has accepted a plan."""

    def install(self, hooks: Hooks) -> None:
        """Register the tool, its instructions and the gate."""
        hooks.on("agent:before", self._add_tool)
        hooks.on("loop:before", self._begin)
        hooks.on("system:transform", self._instruct)
        hooks.on("tool:gate", self._gate)
        hooks.on("tool:after", self._after_tool)
        hooks.on("agent:done", self._end)

    def _add_tool(self, context: BeforeAgent) -> None:
        if self._tool is not None and all(tool.name != PRESENT_PLAN for tool in context.tools):
            context.tools = [*context.tools, self._tool]

    def _begin(self, context: BeforeLoop) -> None:
        presents = self._tool is not None  # one that only reads may have the history of an agent that presented a plan
        self._accepted[context.loop_id] = presents and has_accepted_plan(context.messages)

    def _instruct(self, context: TransformSystem) -> None:
        """Add the instructions. They hold before and after the acceptance, so that the cached prefix stays valid."""
        instructions = READ_INSTRUCTIONS if self._tool is None else PLAN_INSTRUCTIONS
        context.system = f"{context.system}\n\n{instructions}".strip()

    def _gate(self, context: ToolGate) -> None:
        if context.block or context.result is not None or self._is_over(context):
            return
        if context.tool is not None and not needs_no_approval(context.tool):
            context.block, context.reason = True, ONLY_READS if self._tool is None else ONLY_PLANS

    def _is_over(self, context: ToolGate) -> bool:
        """Whether a plan is accepted. A call of a sub-agent does not name the run that delegates: all runs count."""
        if context.loop_id in self._accepted:
            return self._accepted[context.loop_id]
        return bool(self._accepted) and all(self._accepted.values())

    def _after_tool(self, context: ToolAfter) -> None:
        if context.name == PRESENT_PLAN and context.result.details == {"accepted": True}:
            self._accepted[context.loop_id] = True

    def _end(self, context: LoopEnded) -> None:
        self._accepted.pop(context.loop_id, None)


def has_accepted_plan(messages: Iterable[Message]) -> bool:
    """Whether the user accepted a plan in this history."""
    return any(
        isinstance(message, ToolMessage) and message.name == PRESENT_PLAN and message.details == {"accepted": True}
        for message in messages
    )
