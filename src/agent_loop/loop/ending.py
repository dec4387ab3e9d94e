"""How a run ends."""

from dataclasses import dataclass
from typing import Any

from agent_loop.events import LoopStatus

STOPPED_BY_HOOK = "a hook stopped the run"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """How the run ended."""

    status: LoopStatus
    text: str | None = None
    """None: there is no final answer."""
    output: Any = None
    error: Exception | None = None
    rejection: str | None = None
