"""Detection of a model that repeats a tool call without progress.

A call is repeated if its arguments and its outcome are those of an earlier call, and nothing has changed in between: no
writing tool has produced a new outcome, and no user has sent a message.
"""

from collections import Counter
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from agent_loop.behavior import RepetitionLimits
from agent_loop.loop.limits import ReachedLimit
from agent_loop.messages.formatting import encode_json
from agent_loop.tools.effects import CommandRan
from agent_loop.tools.tool import ToolResult


class RepetitionTracker:
    """Counts equal calls with equal outcomes in one run."""

    def __init__(self, limits: RepetitionLimits | None) -> None:
        self._limits = limits
        self._counts: Counter[bytes] = Counter()
        self.reached: ReachedLimit | None = None
        """The limit that a repeated failing call reached."""

    def forget(self) -> None:
        """Count anew: a message of the user may be a reason to repeat a call."""
        self._counts.clear()

    def note(self, name: str, arguments: Mapping[str, Any], result: ToolResult, *, may_write: bool) -> str | None:
        """Record the outcome of a call; return a note for the model if the call repeats too often.

        Sets `reached` once a failing call is repeated `stop_after` times. A call that succeeds may wait for something
        and is only noted.
        """
        if self._limits is None:
            return None
        key = _key(name, arguments, result)
        if may_write and key not in self._counts and not _has_failed(result):
            self._counts.clear()
        self._counts[key] += 1
        count, has_failed = self._counts[key], _has_failed(result)
        if has_failed and count >= self._limits.stop_after:
            reason = f"{name} failed {count} times with the same arguments and the same result"
            self.reached = self.reached or ReachedLimit("repetition", reason)
        if count < self._limits.warn_after:
            return None
        if has_failed:
            return (
                f"[{name} has failed {count} times with these arguments and this result. Do not repeat the call: "
                "change its arguments, find the cause, or try another way.]"
            )
        return (
            f"[{name} has returned this result {count} times for these arguments. Repeating the call gives nothing "
            "new; continue with another step.]"
        )


def _has_failed(result: ToolResult) -> bool:
    return result.is_error or any(isinstance(each, CommandRan) and each.exit_code != 0 for each in result.effects)


def _key(name: str, arguments: Mapping[str, Any], result: ToolResult) -> bytes:
    # The text of a command's result contains its duration; its effects do not.
    commands = [each for each in result.effects if isinstance(each, CommandRan)]
    outcome = commands if commands and not result.is_error else result.content
    return sha256(encode_json([name, arguments, outcome])).digest()
