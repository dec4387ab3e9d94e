"""When a turn is over, and how it ended.

`agent_end` comes after every attempt. Retries and compactions may follow, and then the turn continues. The final end:

    pi until 0.73   not reported: the turn is over when something else begins, the agent is idle (rpc), or exits
    pi since 0.87   `agent_settled`
    omp             `agent_end.isTerminal`

Until then the closing fact is kept. How the turn ended is in the last message of the model: `stopReason`.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from agent_mux.sdk import facts
from agent_mux_adapters._dialects.pi.outcome import ABORTED, failure_of, refusal_of, retrying
from agent_mux_adapters._dialects.pi.usage import PiUsage
from agent_mux_adapters._dialects.pi.wire import AgentEnd
from agent_mux_adapters._dialects.stop_reasons import answered
from agent_mux_adapters._dialects.tolerant import optional_whole, text, whole

Facts = tuple[facts.Fact, ...]
Closing = facts.TurnDone | facts.TurnFailed | facts.TurnStopped


class PiTurns:
    """The current turn: whether it runs, its last message, and its closing fact."""

    def __init__(self, *, marks_final_end: bool) -> None:
        self.usage_totals = PiUsage()
        self.is_idle_unknown = False
        """Whether an attempt ended and only the agent's state can show whether it was the last."""
        self.is_running = False
        self.is_interrupting = False
        """Whether we asked the agent to stop the turn."""
        self._marks_final_end = marks_final_end
        self._last_message: Mapping[str, Any] = {}
        """The last message of the model in this turn."""
        self._pending_closing: Closing | None = None
        self._reports_final_end = marks_final_end
        """Whether this version of the agent reports the final end of a turn."""
        self._has_begun = False
        self._is_compacting = False
        self._gave_up_compaction = False
        """Whether the agent warned after a compaction of this attempt that the context is still too full."""

    # -- lines

    def begin(self) -> Facts:
        """Read `agent_start`: a prompt, or another attempt at it."""
        # An agent that does not report the final end of a turn shows it by starting something else.
        before = self._emit_closing() if not self._reports_final_end else ()
        self.is_running = self._has_begun = True
        self.is_idle_unknown, self._pending_closing, self._last_message = False, None, {}
        self._gave_up_compaction = False
        return *before, facts.TurnBegin()

    def record_message(self, message: Mapping[str, Any]) -> Facts:
        """Note the model's complete message and its usage."""
        self._last_message = message
        return self.usage_totals.record_call(message.get("usage"))

    def end_attempt(self, end: AgentEnd) -> Facts:
        """Read `agent_end`: an attempt is over, and perhaps the turn."""
        self._pending_closing = self._closing()
        if self._marks_final_end:
            if end.is_terminal is False:  # this closing counts only if the agent exits now, or is idle after giving up
                self.is_idle_unknown = self._gave_up_compaction
                return (facts.Ignored("agent_end", "a background job will wake the agent again"),)
            return self._emit_closing()
        self._reports_final_end = end.will_retry is not msgspec.UNSET
        self.is_idle_unknown = not self._reports_final_end
        return (facts.Ignored("agent_end", "the next line shows whether it was the last attempt"),)

    def settle(self) -> Facts:
        """End the turn: the agent will do nothing more on its own."""
        self.is_idle_unknown = False
        return self._emit_closing()

    def stop(self) -> Facts:
        """End the turn after the response to our `abort`, if no closing line came."""
        self._pending_closing = self._pending_closing or facts.TurnStopped()
        return self._emit_closing()

    def begin_retry(self, line: Mapping[str, Any]) -> Facts:
        """Read `auto_retry_start`: the turn continues with another attempt."""
        self._pending_closing, self.is_idle_unknown = None, False
        delay, reason = whole(line.get("delayMs")), text(line.get("errorMessage"))
        return retrying(whole(line.get("attempt")), whole(line.get("maxAttempts")), delay, reason or "unknown")

    def end_retry(self, line: Mapping[str, Any]) -> Facts:
        """Read `auto_retry_end`: the retry succeeded, or the agent gave up."""
        if line.get("success") is not True and self.is_running:
            last = text(line.get("finalError"))
            self._pending_closing = self._pending_closing or self._failed(
                last or "the agent gave up retrying the model call", None
            )
            self.is_idle_unknown = not self._reports_final_end
        return ()

    def begin_compaction(self) -> None:
        """Note that a compaction begins, so the agent is not idle."""
        self.is_idle_unknown = self._gave_up_compaction = False
        self._is_compacting = True

    def give_up_compaction(self) -> None:
        """Note a warning about compaction. After a compaction it states that the agent will not continue on its own.

        Then omp 18.2 may announce more work in its `agent_end` and do none.
        """
        self._gave_up_compaction = not self._is_compacting

    def end_compaction(self, *, will_retry: bool) -> None:
        """Note that a compaction ended; the agent repeats the prompt if the compaction made space for it."""
        self._is_compacting = False
        if will_retry:
            self._pending_closing = None
        self.is_idle_unknown = self._pending_closing is not None and not self._reports_final_end

    def refuse(self, message: str) -> Facts:
        """Fail the turn of a prompt that the agent rejected."""
        return (facts.TurnFailed(failure_of(message)),)

    def finish(self, stderr_lines: list[str], exit_code: int | None) -> Facts:
        """Return the closing fact after the exit of the process; standard error explains a failed start."""
        left_early = self._marks_final_end and exit_code != 0
        emitted = () if left_early else self._emit_closing()
        if emitted or self._has_begun or not exit_code:
            return emitted
        failure = refusal_of(stderr_lines)
        return (facts.TurnFailed(failure),) if failure is not None else ()

    # -- the closing fact

    def _emit_closing(self) -> Facts:
        closing, self._pending_closing = self._pending_closing, None
        if closing is None:
            return ()
        self.is_running = self.is_interrupting = self.is_idle_unknown = False
        return (msgspec.structs.replace(closing, cost=self.usage_totals.take_turn()),)

    def _closing(self) -> Closing:
        reason, message = self._last_message.get("stopReason"), text(self._last_message.get("errorMessage"))
        if reason == "aborted":
            return facts.TurnStopped()
        if reason == "error":
            return self._failed(
                message or "the agent reported a failure without a reason", self._last_message.get("errorStatus")
            )
        return answered(reason)

    def _failed(self, message: str, status: Any) -> Closing:
        if message in ABORTED or self.is_interrupting:
            return facts.TurnStopped()
        return facts.TurnFailed(failure_of(message, optional_whole(status)))
