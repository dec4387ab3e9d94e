"""What `start` asks for, as behaviour of an agent, and what of it cannot be honoured."""

from typing import Any

from agent_loop.behavior import DEFAULTS, Behavior, ExecutionLimits
from agent_loop.cli.commands import Start

SYSTEM_PROMPT = """\
You are a coding agent that works in the current directory. Look before you change anything: read the files that \
matter, and say what you found. Change as little as the task needs. After a change, run what shows that it works, \
where there is something to run. When you are done, say in a few sentences what you did and what is left."""


def behavior_of(start: Start) -> Behavior:
    """How the agent behaves. What is not said stays unset."""
    said: dict[str, Any] = {
        "limits": limits_of(start),
        "thinking": start.thinking_effort,
        "thinking_budget": start.thinking_budget_tokens,
        "temperature": start.temperature,
        "top_p": start.top_p,
        "top_k": start.top_k,
        "max_tokens": start.max_output_tokens,
        "output_schema": start.output_schema,
    }
    return Behavior(**{name: value for name, value in said.items() if value is not None}).over(DEFAULTS)


def limits_of(start: Start) -> ExecutionLimits:
    """The caps of each turn of the conversation."""
    return ExecutionLimits(
        max_turns=start.max_turns,
        max_total_tokens=start.max_tokens_total,
        max_duration=start.max_duration,
        max_cost_usd=start.max_cost_usd,
    )


def system_prompt_of(start: Start) -> str:
    """Ours, and theirs where they want it."""
    theirs = start.system_prompt
    if theirs is None:
        return SYSTEM_PROMPT
    match start.system_prompt_mode:
        case "replace":
            return theirs
        case "prepend":
            return f"{theirs}\n\n{SYSTEM_PROMPT}"
        case "append":
            return f"{SYSTEM_PROMPT}\n\n{theirs}"


def not_honoured(start: Start) -> list[str]:
    """What the run goes on without, one sentence each."""
    said: list[str] = []
    if start.protocol != 1:
        said.append(f"protocol {start.protocol} is asked for; this program speaks 1")
    if start.mcp_servers:
        said.append("MCP servers are not used by this program")
    if start.session_id is not None and start.fork_session_id is not None:
        said.append("both sessionId and forkSessionId are given: the session is forked")
    return said
