"""One turn: its model calls, and what the model says in them.

Where a model call begins is told by the animation that the gateway shows until the model answers: `thinking.delta` with
a face, and an empty one at the first fragment, at the end, and after each failure. That is all that shows of a failed
call that is repeated; why it failed is told only when Hermes gives up.
"""

import re
from collections.abc import Mapping
from typing import Any

from agent_mux.facts import (
    Fact,
    Ignored,
    Note,
    Retrying,
    StepBegin,
    Text,
    TextDelta,
    TextEnd,
    Thinking,
    ThinkingDelta,
    ThinkingEnd,
    TurnDone,
    TurnFailed,
    TurnLimitHit,
    TurnStopped,
)
from agent_mux_adapters._dialects.tolerant import text
from agent_mux_adapters.hermes.failures import UNTOLD, failure_of

CUT_OFF = "\n\n⚠ Connection dropped mid tool-call; reconnecting…\n\n"
"""Hermes says this as if the model had said it."""
FATAL = "❌ "
"""Begins what Hermes says when it gives up."""
NO_ANSWER = "⚠️ No reply: "
"""Begins what Hermes says in place of an answer that never came."""
_NOTICES = ("⏳", "⚠", "↻")
"""What the animation says instead of a face when the provider is slow."""
BREAK = "\n\n"
"""Put by Hermes before the first words after a tool."""
_LIMIT = re.compile(r"Iteration budget exhausted \(\d+/(\d{1,9})\)")
_UNKNOWN_REASON = "the model call failed; hermes tells why only if it gives up"


class Turn:
    """The turn that runs, or the last one."""

    def __init__(self, *, is_open: bool = False) -> None:
        self.is_open = is_open
        self._in_call = False
        self._is_fresh = True
        self._has_spoken = False
        self._blanks = 0
        self._retries = 0
        self._message: list[str] = []
        self._said: list[str] = []
        self._has_thought = False
        self._open_end: TextEnd | ThinkingEnd | None = None
        """What ends the words that are being said."""
        self._fatal = ""
        self._limit: int | None = None

    # -- model calls

    def animation(self, shown: str) -> tuple[Fact, ...]:
        """`thinking.delta`."""
        if shown.startswith(_NOTICES):
            return (Note(shown),)
        if shown:
            return self._begin_call()
        self._blanks += 1
        if self._has_spoken or self._blanks == 1 or not self._in_call:
            return (Ignored("thinking.delta", "the animation ends"),)
        return (self._retry(_UNKNOWN_REASON),)

    def say(self, said: str) -> tuple[Fact, ...]:
        """`message.delta`."""
        if said == CUT_OFF:
            self._blanks = 0
            return (self._retry("the connection dropped in the middle of a tool call"),)
        begun = self._speaks()
        if self._is_fresh:
            self._is_fresh = False
            said = said.removeprefix(BREAK)
        self._message.append(said)
        self._said.append(said)
        self._open_end = TextEnd()
        return (*begun, TextDelta(said)) if begun else (TextDelta(said),)

    def think(self, thought: str) -> tuple[Fact, ...]:
        """`reasoning.delta`."""
        begun = self._speaks()
        self._has_thought = True
        self._open_end = ThinkingEnd()
        return (*begun, ThinkingDelta(thought)) if begun else (ThinkingDelta(thought),)

    def calls_tool(self) -> tuple[Fact, ...]:
        """`tool.generating`: the model begins to write a call. Which one is told when it runs."""
        told = *self._speaks(), *self.pause()
        return told or (Ignored("tool.generating", "the call has no id yet"),)

    def pause(self) -> tuple[Fact, ...]:
        """Something else than words comes: what was being said is complete."""
        end, self._open_end = self._open_end, None
        return (end,) if end is not None else ()

    def interim(self, said: str, *, is_told: bool) -> tuple[Fact, ...]:
        """`message.interim`: what the model said beside its tool calls, once more or for the first time."""
        if is_told or not said.strip() or "".join(self._message).strip():
            return (Ignored("message.interim", "said before"),)
        self._message.append(said)
        return *self._speaks(), Text(said)

    def status(self, said: str) -> None:
        """`status.update`: it may tell how the turn will end."""
        if said.startswith(FATAL):
            self._fatal = said.removeprefix(FATAL)
        limit = _LIMIT.search(said)
        if limit is not None:
            self._limit = int(limit[1])

    def _begin_call(self) -> tuple[Fact, ...]:
        self._in_call = self._is_fresh = True
        self._has_spoken = False
        self._blanks = self._retries = 0
        self._message.clear()
        return *self.pause(), StepBegin()

    def _speaks(self) -> tuple[Fact, ...]:
        """The model says something: in this call, or in its repetition."""
        if self._has_spoken and not self._blanks:
            return ()
        begun = () if self._in_call else self._begin_call()
        again = (self._retry(_UNKNOWN_REASON),) if self._has_spoken and self._blanks > 1 else ()
        self._has_spoken, self._blanks = True, 0
        return *begun, *again

    def _retry(self, reason: str) -> Retrying:
        self._retries += 1
        self._has_spoken = False
        self._is_fresh = True
        self._message.clear()
        self._open_end = None  # a retry closes what was half-said
        return Retrying(self._retries, 0, reason)

    # -- the end

    def complete(self, payload: Mapping[str, Any]) -> tuple[Fact, ...] | None:
        """`message.complete`, the closing message; None when its status is not known."""
        answer = text(payload.get("text"))
        match payload.get("status"):
            case "complete":
                closing = self._completed(answer, text(payload.get("reasoning")))
            case "interrupted":
                closing = (TurnStopped(),)
            case "error":
                closing = (TurnFailed(failure_of(self._reason(answer))),)
            case _:
                return None
        self.is_open = self._in_call = False
        return *self.pause(), *closing

    def _completed(self, answer: str, reasoning: str) -> tuple[Fact, ...]:
        told = "".join(self._message).strip()
        if not told and (self._fatal or answer.startswith(NO_ANSWER)):
            return (TurnFailed(failure_of(self._fatal or answer.removeprefix(NO_ANSWER))),)
        closing = TurnDone() if self._limit is None else TurnLimitHit(self._limit)
        return *self._rest(told, answer, reasoning), closing

    def _rest(self, told: str, answer: str, reasoning: str) -> tuple[Fact, ...]:
        """What of the answer was not streamed: all of it, or a remark of Hermes' own behind it."""
        if answer.strip() and answer.strip() in told:
            return ()  # the words of a call that was interrupted may come late, and in between
        _, found, behind = answer.rpartition(told) if told else ("", "", answer)
        if not found and behind.strip():
            thought = (Thinking(reasoning),) if reasoning and not self._has_thought else ()
            return *thought, Text(behind)
        remark = behind.strip() if told else ""
        return (Note(remark, "warn"),) if remark else ()

    def _reason(self, answer: str) -> str:
        """Where the stream broke off for good, the closing message holds what was said until then, and no reason."""
        is_reason = answer.strip() and answer.strip() not in "".join(self._said)
        return answer if is_reason else self._fatal or UNTOLD
