"""What came of a run. Source: loop spec, section 3.2; zidane, `AgentStats`."""

from dataclasses import dataclass
from typing import Any

from agent_loop.events import LoopStatus
from agent_loop.messages import Message
from agent_loop.usage import Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResult:
    """The end of a run."""

    text: str
    """The final answer; empty where there is none."""
    output: Any
    """The structured answer, where a schema was asked for."""
    status: LoopStatus
    loop_id: str
    session_id: str
    usage: Usage
    turns: int
    messages: tuple[Message, ...]
    """All that was added to the history."""
    error: Exception | None = None
    """Why it failed or was aborted."""
    rejection: str | None = None
    """Why an input filter refused it."""
