"""Messages of the model, each reported once: the bridge streams parts of them, the gateway records each when it ends.

    bridge                              gateway
    agent_message_chunk  "I ru"
    agent_message_chunk  "n it."
                                        answer  "I run it. "      only the end of it is new
    tool_call ...                                                 of this answer
    agent_message_chunk  "Done"
                                        answer  "Done."

The bridge may stream a fragment late, or never, or cut from the wrong place; the gateway's record is complete.
"""

from collections.abc import Mapping
from typing import Any

from agent_mux.sdk.facts import Fact, Ignored, StepBegin, TextDelta, TextEnd, WholeText, WholeThinking
from agent_mux.sdk.streamed_text import missing_text
from agent_mux_adapters._dialects.tolerant import text, whole

HIDDEN_ANSWERS = frozenset({"", "HEARTBEAT_OK", "NO_REPLY"})
"""Answers that OpenClaw does not show."""
_KIND = "_agent_mux/answer"
_LATE = Ignored("agent_message_chunk", "reported at the end of the answer")
BLANK = Ignored("agent_message_chunk", "a blank line between two messages")


class OpenClawMessages:
    """The answers of one turn. Each is a model call, and so a step."""

    def __init__(self) -> None:
        self.has_answer = False
        """Whether the gateway has recorded an answer in this turn."""
        self._run: str | None = None
        self._has_delegated = False
        self._has_step = False
        """Whether the step of the current answer has begun."""
        self._is_recorded = False
        """Whether the gateway has recorded the current answer: fragments that the bridge still streams are late."""
        self._has_called = False
        """Whether the current answer has called a tool."""
        self._streamed: list[str] = []
        self._unstreamed = ""
        """The end of the recorded answer, which the bridge has not streamed yet."""
        self._thinking = ""
        self._recorded_at = 0

    def fragment(self, fragment: str) -> tuple[Fact, ...]:
        """Read a fragment of a message from the bridge."""
        if self._is_recorded:
            fragment = self._without_late_part(fragment) if self._has_called else ""
            if not fragment.strip("\n"):
                return (_LATE,)
            self._begin_answer()
        if not self._streamed:
            fragment = fragment.lstrip("\n")
        if not fragment:
            return (BLANK,)
        self._streamed.append(fragment)
        return (TextDelta(fragment),) if self._has_step else (*self._begin_step(), TextDelta(fragment))

    def tool_called(self, *, delegates: bool) -> tuple[Fact, ...]:
        """Note a tool call of the answer that was recorded last, or that is being streamed."""
        self._has_called = True
        self._has_delegated = self._has_delegated or delegates
        return self._begin_step()

    def recorded(self, entry: Mapping[str, Any]) -> tuple[Fact, ...]:
        """Read a complete block of thinking, or a complete answer, from the gateway."""
        run = text(entry.get("runId"))
        self._run = self._run or run
        at = whole(entry.get("ts"))
        if at < self._recorded_at:
            return (Ignored(_KIND, "of an answer that is over"),)
        if self._has_delegated and run != self._run:
            return (Ignored(_KIND, "of a sub-agent"),)
        if self._is_recorded:
            self._begin_answer()
        self.has_answer = True
        step = self._begin_step()
        if entry.get("evtType") == "thinking_end":
            return (*step, *self._think(text(entry.get("content")))) or (Ignored(_KIND, "no thought"),)
        thinking = self._think(text(entry.get("rawThinking")))
        rest = self._complete(text(entry.get("rawText")))
        self._is_recorded, self._recorded_at = True, at
        return (*step, *thinking, *rest) or (Ignored(_KIND, "already reported"),)

    def is_of_turn(self, run: str) -> bool:
        """Return whether a run of the gateway is that of the turn, and not that of a sub-agent."""
        return not self._run or run == self._run

    def retried(self, at: int) -> None:
        """Note that the model call is repeated from `at`, in milliseconds since the epoch.

        Both sides may still deliver the rest of the answer that failed; it counts as late.
        """
        self._is_recorded, self._has_called, self._recorded_at = True, False, at

    # -- internals

    def _think(self, thinking: str) -> tuple[Fact, ...]:
        if not thinking.strip() or thinking == self._thinking:
            return ()
        self._thinking = thinking
        return (WholeThinking(thinking),)

    def _complete(self, answer: str) -> tuple[Fact, ...]:
        """Return the end of the message, with what of the answer the bridge has not streamed."""
        streamed, self._unstreamed = "".join(self._streamed), answer
        missing = missing_text(answer, streamed)
        if streamed and missing is not None:
            self._unstreamed = missing
            return *([TextDelta(self._unstreamed)] if self._unstreamed else []), TextEnd()
        end = (TextEnd(),) if streamed else ()
        if answer.strip() in HIDDEN_ANSWERS or answer.strip() == streamed.strip():
            return end
        return *end, WholeText(answer)

    def _without_late_part(self, fragment: str) -> str:
        """Remove from a fragment the end of the recorded answer, which it repeats."""
        late, self._unstreamed = self._unstreamed, ""
        if late.startswith(fragment):
            self._unstreamed = late[len(fragment) :]
            return ""
        return fragment.removeprefix(late)

    def _begin_step(self) -> tuple[Fact, ...]:
        had_step, self._has_step = self._has_step, True
        return () if had_step else (StepBegin(),)

    def _begin_answer(self) -> None:
        self._has_step = self._is_recorded = self._has_called = False
        self._streamed, self._unstreamed, self._thinking = [], "", ""
