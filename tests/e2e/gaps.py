"""What an agent cannot do, scenario by scenario, and why. Such a scenario must fail: when it passes, the gap is closed.

`never`: it is no part of this agent. `not_yet`: the agent lacks it, or has it broken, upstream. `not_impl`: we lack it.
"""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Gap:
    """Why a scenario does not work with an agent."""

    kind: Literal["never", "not_yet", "not_impl"]
    reason: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.reason}"


GAPS: dict[tuple[str, str], Gap] = {}
"""By agent and scenario (the name of the test, without `test_`)."""
