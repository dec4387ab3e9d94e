"""When a turn is over, and how it ended.

`agent_end` comes after every attempt; retries and compactions may follow, and then it was not the end. What tells:

    pi until 0.73   nothing. It is over when something else begins, when the agent is idle (rpc), or at the exit
    pi since 0.87   `agent_settled`
    omp             `agent_end.isTerminal`

So the closing message is kept until then. How the turn ended stands in the last message of the model: `stopReason`.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from agent_mux import facts
from agent_mux_adapters._dialects.pi.outcome import ABORTED, failure_of, refusal_of, retrying
from agent_mux_adapters._dialects.pi.usage import Meter
from agent_mux_adapters._dialects.pi.wire import AgentEnd
from agent_mux_adapters._dialects.tolerant import optional_whole, text, whole

Facts = tuple[facts.Fact, ...]
Closing = facts.TurnDone | facts.TurnFailed | facts.TurnStopped
CUT = "the model reached its limit of output tokens: the answer is cut"


class Turns:
    """The turn that runs."""

    def __init__(self, *, names_terminal_end: bool) -> None:
        self.meter = Meter()
        self.idle_unknown = False
        """An attempt ended, and only the agent's state can tell whether that was all."""
        self.is_running = False
        self.interrupting = False
        """We asked it to stop."""
        self._names_terminal_end = names_terminal_end
        self._last: Mapping[str, Any] = {}
        """The model's last message."""
        self._kept: Closing | None = None
        self._settles = names_terminal_end
        """The agent tells the true end."""
        self._begun = False

    # -- what happens

    def began(self) -> Facts:
        """`agent_start`: a prompt, or another attempt at it."""
        # Where nothing tells the true end, the beginning of something else does.
        before = self._tell() if not self._settles else ()
        self.is_running = self._begun = True
        self.idle_unknown, self._kept, self._last = False, None, {}
        return *before, facts.TurnBegin()

    def answered(self, message: Mapping[str, Any]) -> Facts:
        """The model's message is complete."""
        self._last = message
        return self.meter.called(message.get("usage"))

    def ended(self, end: AgentEnd) -> Facts:
        """`agent_end`."""
        self._kept = self._closing()
        if self._names_terminal_end:
            if end.is_terminal is False:  # then it is the last word only if the agent leaves
                return (facts.Ignored("agent_end", "a background job will wake the agent again"),)
            return self._tell()
        self._settles = end.will_retry is not msgspec.UNSET
        self.idle_unknown = not self._settles
        return (facts.Ignored("agent_end", "whether it was the last attempt is told by what follows"),)

    def settled(self) -> Facts:
        """Nothing more comes of its own accord."""
        self.idle_unknown = False
        return self._tell()

    def stopped(self) -> Facts:
        """We asked it to stop, it says that it did, and no closing message came."""
        self._kept = self._kept or facts.TurnStopped()
        return self._tell()

    def retries(self, line: Mapping[str, Any]) -> Facts:
        """`auto_retry_start`."""
        self._kept, self.idle_unknown = None, False
        delay, reason = whole(line.get("delayMs")), text(line.get("errorMessage"))
        return retrying(whole(line.get("attempt")), whole(line.get("maxAttempts")), delay, reason or "unknown")

    def retries_ended(self, line: Mapping[str, Any]) -> Facts:
        """`auto_retry_end`: it worked, or the agent gave up."""
        if line.get("success") is not True and self.is_running:
            last = text(line.get("finalError"))
            self._kept = self._kept or self._failed(last or "the agent gave up repeating the model call", None)
            self.idle_unknown = not self._settles
        return ()

    def compacts(self) -> None:
        """A compaction begins: the agent is not idle."""
        self.idle_unknown = False

    def compacted(self, *, will_retry: bool) -> None:
        """A compaction ended; if it was to make room for the same prompt, that is tried again."""
        if will_retry:
            self._kept = None
        self.idle_unknown = self._kept is not None and not self._settles

    def refused(self, message: str) -> Facts:
        """A prompt was not even taken up."""
        return (facts.TurnFailed(failure_of(message)),)

    def finish(self, complaints: list[str], exit_code: int | None) -> Facts:
        """The process is gone. `complaints`: its standard error."""
        left_early = self._names_terminal_end and exit_code != 0
        told = () if left_early else self._tell()
        if told or self._begun or not exit_code:
            return told
        failure = refusal_of(complaints)
        return (facts.TurnFailed(failure),) if failure is not None else ()

    # -- inside

    def _tell(self) -> Facts:
        kept, self._kept = self._kept, None
        if kept is None:
            return ()
        self.is_running = self.interrupting = self.idle_unknown = False
        cut = isinstance(kept, facts.TurnDone) and self._last.get("stopReason") == "length"
        note = (facts.Note(CUT, "warn"),) if cut else ()
        return *note, msgspec.structs.replace(kept, cost=self.meter.take_turn())

    def _closing(self) -> Closing:
        reason, message = self._last.get("stopReason"), text(self._last.get("errorMessage"))
        if reason == "aborted":
            return facts.TurnStopped()
        if reason == "error":
            return self._failed(message or "the agent does not say why it failed", self._last.get("errorStatus"))
        return facts.TurnDone()

    def _failed(self, message: str, status: Any) -> Closing:
        if message in ABORTED or self.interrupting:
            return facts.TurnStopped()
        return facts.TurnFailed(failure_of(message, optional_whole(status)))
