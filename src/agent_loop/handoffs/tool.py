"""The tool that passes the conversation to another agent."""

from collections.abc import Mapping
from typing import Any

from agent_loop.errors import ToolError
from agent_loop.events import HandedOff
from agent_loop.handoffs.roster import Roster
from agent_loop.loop.run import TRANSFER_TOOL, LoopRun
from agent_loop.tools.tool import ToolContext

MAX_MESSAGE = 20_000
"""Characters of the message to the target."""
MAX_DESCRIPTION = 1024
"""Characters of the description of an agent in the tool's parameters."""
DESCRIPTION = (
    "Hand the conversation off to another agent, which continues it in your place and answers the user; you get no "
    "report back. It sees the conversation. Call it alone, as the last call of an answer: later calls are skipped."
)


class TransferTool:
    """The tool of one loop. A call ends the loop; the agent that it names continues the run in the next one."""

    name = TRANSFER_TOOL
    kind = "other"
    risk = "low"  # the calls of the target pass the gates of the run

    def __init__(self, roster: Roster, run: LoopRun) -> None:
        self._roster = roster
        self._run = run
        self._targets = roster.targets_of(run.acting)
        self.description = DESCRIPTION
        self.parameters: Mapping[str, Any] = _parameters(self._targets)

    async def execute(self, arguments: dict[str, Any], context: ToolContext) -> str:
        """Request the handoff, which follows the result of the call.

        Raises `ToolError` for an unknown agent and above the limit of handoffs, and `ConfigurationError` if the model
        of the agent cannot be used.
        """
        run, name, limit = self._run, str(arguments["agent"]), self._run.behavior.max_handoffs
        if context.parent is not run:
            raise ToolError("only the agent that has the conversation can hand it off")
        if name not in self._targets:
            raise ToolError(f"no agent is named {name!r}; use one of {', '.join(self._targets)}")
        if run.handoffs >= limit:
            raise ToolError(
                f"the limit of {limit} handoffs in one run (max_handoffs) is reached; finish the task yourself"
            )
        self._roster.prepare(name)
        run.requested_handoff = HandedOff(
            loop_id=run.loop_id,
            call_id=context.call_id,
            source=run.acting,
            target=name,
            message=str(arguments["message"]),
        )
        return f"The conversation was handed off to {name}. From here on {name} continues it."


def _parameters(targets: Mapping[str, str]) -> Mapping[str, Any]:
    lines = (f"- {name}: {' '.join(text.split())[:MAX_DESCRIPTION] or name}" for name, text in targets.items())
    return {
        "type": "object",
        "properties": {
            "agent": {
                "type": "string",
                "enum": [*targets],
                "description": "\n".join(("The agent that continues the conversation.", *lines)),
            },
            "message": {
                "type": "string",
                "minLength": 1,
                "maxLength": MAX_MESSAGE,
                "description": "What the agent has to do, and why it is the right one.",
            },
        },
        "required": ["agent", "message"],
        "additionalProperties": False,
    }
