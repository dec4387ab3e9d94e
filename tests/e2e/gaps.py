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


GAPS: dict[tuple[str, str], Gap] = {
    ("claude", "tools_at_the_same_time"): Gap(
        "never", "Claude Code runs commands one after the other, unless it knows that they only read"
    ),
    ("codex", "file_read"): Gap("never", "Codex has no tool that reads files: it runs `cat`, which is a command"),
    ("codex", "file_edits/one_shot"): Gap("not_yet", "`codex exec` tells neither what a patch changed nor how much"),
    ("codex", "deny_reason_reaches_the_model"): Gap("not_yet", "a declined approval has no field for a reason"),
    ("codex", "unknown_tool"): Gap("not_yet", "a call of an unknown tool shows on standard error only, in prose"),
}
"""By agent and scenario: the name of the test without `test_`, and the way if it goes several (`scenario/way`)."""
