"""Model calls and messages of one turn.

The beginning of a model call shows in the animation of the gateway until the model answers: `thinking.delta` with a
face, and an empty one at the first fragment, at the end, and after each failure. A failed call that is repeated leaves
no other trace; Hermes prints the reason only when it gives up.
"""

import re
from collections.abc import Mapping
from typing import Any

from agent_mux.sdk.facts import (
    Fact,
    Ignored,
    Note,
    Retrying,
    StepBegin,
    TextDelta,
    TextEnd,
    ThinkingDelta,
    ThinkingEnd,
    TurnDone,
    TurnFailed,
    TurnLimitHit,
    TurnStopped,
    WholeText,
    WholeThinking,
)
from agent_mux.sdk.streamed_text import missing_text
from agent_mux_adapters._dialects.tolerant import text
from agent_mux_adapters.hermes.outcome import NO_REASON, failure_of

_CONNECTION_DROPPED = "\n\n⚠ Connection dropped mid tool-call; reconnecting…\n\n"
"""Hermes streams this as text of the model."""
_FATAL_PREFIX = "❌ "
"""Begins the status in which Hermes gives up."""
_NO_ANSWER_PREFIX = "⚠️ No reply: "
"""Begins the closing text that replaces a missing answer."""
_SLOW_PROVIDER = ("⏳", "⚠", "↻")
"""Begins a text that the animation shows instead of a face when the provider is slow."""
LINE_BREAK = "\n\n"
"""Hermes puts this before the first text after a tool call."""
_INTERRUPTION = re.compile(r"\W*(Stream interrupted by network error)\b")
"""On standard error after each broken stream; stdout has neither the cut nor the reason when Hermes gives up."""
_LIMIT = re.compile(r"Iteration budget exhausted \(\d+/(\d{1,9})\)")
_UNKNOWN_REASON = "the model call failed; hermes reports the reason only when it gives up"


class HermesMessages:
    """Text and thinking of the running turn, or of the last one."""

    def __init__(self, *, is_open: bool = False) -> None:
        self.is_open = is_open
        """Whether the turn runs."""
        self._in_call = False
        self._is_first_text = True
        self._has_output = False
        """Whether the model has produced anything in this attempt of the call."""
        self._blanks = 0
        """Empty animations since the last output."""
        self._retries = 0
        self._call_text: list[str] = []
        self._turn_text: list[str] = []
        self._has_thinking = False
        self._pending_end: TextEnd | ThinkingEnd | None = None
        """Ends the open block of text or thinking."""
        self._fatal = ""
        self._interruption = ""
        """The last broken stream of the turn, which is why it failed if nothing else is reported."""
        self._limit: int | None = None

    # -- model calls

    def animation(self, shown: str) -> tuple[Fact, ...]:
        """Read `thinking.delta`: the beginning of a model call, or a failed attempt."""
        if shown.startswith(_SLOW_PROVIDER):
            return (Note(shown),)
        if shown:
            return self._begin_call()
        self._blanks += 1
        if self._has_output or self._blanks == 1 or not self._in_call:
            return (Ignored("thinking.delta", "the animation ends"),)
        return (self._retry(_UNKNOWN_REASON),)

    def text_delta(self, delta: str) -> tuple[Fact, ...]:
        """Read `message.delta`: a fragment of text."""
        if delta == _CONNECTION_DROPPED:
            self._blanks = 0
            return (self._retry("the connection dropped in the middle of a tool call"),)
        begin = self._output_begins()
        if self._is_first_text:
            self._is_first_text = False
            delta = delta.removeprefix(LINE_BREAK)
        self._call_text.append(delta)
        self._turn_text.append(delta)
        self._pending_end = TextEnd()
        return (*begin, TextDelta(delta)) if begin else (TextDelta(delta),)

    def thinking_delta(self, delta: str) -> tuple[Fact, ...]:
        """Read `reasoning.delta`: a fragment of thinking."""
        begin = self._output_begins()
        self._has_thinking = True
        self._pending_end = ThinkingEnd()
        return (*begin, ThinkingDelta(delta)) if begin else (ThinkingDelta(delta),)

    def tool_generating(self) -> tuple[Fact, ...]:
        """Read `tool.generating`: the model begins a tool call, which is named only by its `tool.start`."""
        facts = *self._output_begins(), *self.end_block()
        return facts or (Ignored("tool.generating", "the call has no id yet"),)

    def end_block(self) -> tuple[Fact, ...]:
        """End the open block of text or thinking before output of another kind."""
        end, self._pending_end = self._pending_end, None
        return (end,) if end is not None else ()

    def interim(self, message: str, *, is_streamed: bool) -> tuple[Fact, ...]:
        """Read `message.interim`: the text beside tool calls, repeated or for the first time."""
        if is_streamed or not message.strip() or "".join(self._call_text).strip():
            return (Ignored("message.interim", "already reported"),)
        self._call_text.append(message)
        return *self._output_begins(), WholeText(message)

    def status(self, status: str) -> None:
        """Read `status.update`: it may state why the turn will fail, or that it reached its limit."""
        if status.startswith(_FATAL_PREFIX):
            self._fatal = status.removeprefix(_FATAL_PREFIX)
        limit = _LIMIT.search(status)
        if limit is not None:
            self._limit = int(limit[1])

    def error_line(self, line: str) -> None:
        """Read a line of standard error: it alone reports that a stream broke off."""
        interrupted = _INTERRUPTION.match(line)
        if interrupted is not None:
            self._interruption = interrupted[1]

    def _begin_call(self) -> tuple[Fact, ...]:
        self._in_call = self._is_first_text = True
        self._has_output = False
        self._blanks = self._retries = 0
        self._call_text.clear()
        return *self.end_block(), StepBegin()

    def _output_begins(self) -> tuple[Fact, ...]:
        """Return the facts before output: the beginning of a call, or of another attempt; mostly none."""
        if self._has_output and not self._blanks:
            return ()
        begin = () if self._in_call else self._begin_call()
        retry = (self._retry(_UNKNOWN_REASON),) if self._has_output and self._blanks > 1 else ()
        self._has_output, self._blanks = True, 0
        return *begin, *retry

    def _retry(self, reason: str) -> Retrying:
        self._retries += 1
        self._has_output = False
        self._is_first_text = True
        self._call_text.clear()
        self._pending_end = None  # a retry closes the open block
        return Retrying(self._retries, 0, reason)

    # -- the end of the turn

    def complete(self, payload: Mapping[str, Any]) -> tuple[Fact, ...] | None:
        """Read `message.complete`, the closing message; None when its status is unknown."""
        answer = text(payload.get("text"))
        match payload.get("status"):
            case "complete":
                closing = self._completed(answer, text(payload.get("reasoning")))
            case "interrupted":
                closing = (TurnStopped(),)
            case "error":
                closing = (TurnFailed(failure_of(self._failure_reason(answer))),)
            case _:
                return None
        self.is_open = self._in_call = False
        return *self.end_block(), *closing

    def _completed(self, answer: str, thinking: str) -> tuple[Fact, ...]:
        streamed = "".join(self._call_text).strip()
        if not streamed and (self._fatal or answer.startswith(_NO_ANSWER_PREFIX)):
            return (TurnFailed(failure_of(self._fatal or answer.removeprefix(_NO_ANSWER_PREFIX))),)
        closing = TurnDone() if self._limit is None else TurnLimitHit(self._limit)
        return *self._unstreamed(streamed, answer, thinking), closing

    def _unstreamed(self, streamed: str, answer: str, thinking: str) -> tuple[Fact, ...]:
        """Return the part of the answer that was not streamed: all of it, or a remark of Hermes behind it."""
        if answer.strip() and answer.strip() in streamed:
            return ()  # text of an interrupted call may arrive late, and in between
        behind = self._behind(streamed, answer) if streamed else None
        if behind is None and answer.strip():
            thinking_facts = (WholeThinking(thinking),) if thinking and not self._has_thinking else ()
            return *thinking_facts, WholeText(answer)
        remark = (behind or "").strip()
        return (Note(remark, "warn"),) if remark else ()

    @staticmethod
    def _behind(streamed: str, answer: str) -> str | None:
        """Return what follows the streamed text in an answer; None if the answer does not contain it."""
        missing = missing_text(answer.strip(), streamed)
        if missing is not None:
            return missing
        _, found, behind = answer.rpartition(streamed)
        return behind if found else None

    def _failure_reason(self, answer: str) -> str:
        """Return why the turn failed. After a broken stream the closing message repeats the text, without a reason."""
        is_reason = answer.strip() and answer.strip() not in "".join(self._turn_text)
        return answer if is_reason else self._fatal or self._interruption or NO_REASON
