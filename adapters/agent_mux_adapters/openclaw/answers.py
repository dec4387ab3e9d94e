"""What the model said, told once: the bridge streams some of it, and the gateway writes down each answer when it ends.

    bridge                              gateway
    agent_message_chunk  "I ru"
    agent_message_chunk  "n it."
                                        answer  "I run it. "      only the end of it is new
    tool_call ...                                                 of this answer
    agent_message_chunk  "Done"
                                        answer  "Done."

The bridge may tell a fragment late, or never, or cut from the wrong place; the gateway's side is complete.
"""

from collections.abc import Mapping
from typing import Any

from agent_mux.facts import Fact, Ignored, StepBegin, Text, TextDelta, TextEnd, Thinking
from agent_mux_adapters._dialects.tolerant import text, whole

SILENCE = frozenset({"", "HEARTBEAT_OK", "NO_REPLY"})
"""Answers that OpenClaw shows to nobody."""
_KIND = "_agent_mux/answer"
_LATE = Ignored("agent_message_chunk", "told when the answer ended")
BLANK = Ignored("agent_message_chunk", "a blank line between two messages")


class Answers:
    """The answers of one turn. Each is a model call, and so a step."""

    def __init__(self) -> None:
        self.spoke = False
        """There was an answer."""
        self._run: str | None = None
        self._has_delegated = False
        self._is_begun = False
        """The step of the answer was told."""
        self._is_over = False
        """The answer was written down: what the bridge still tells of it is late."""
        self._has_acted = False
        """It called a tool."""
        self._told: list[str] = []
        self._late = ""
        """The end of the answer, which the bridge has not told yet."""
        self._thought = ""
        self._over_at = 0

    def said(self, fragment: str) -> tuple[Fact, ...]:
        """A fragment of a message, from the bridge."""
        if self._is_over:
            fragment = self._without_late(fragment) if self._has_acted else ""
            if not fragment.strip("\n"):
                return (_LATE,)
            self._next()
        if not self._told:
            fragment = fragment.lstrip("\n")
        if not fragment:
            return (BLANK,)
        self._told.append(fragment)
        return (TextDelta(fragment),) if self._is_begun else (*self._step(), TextDelta(fragment))

    def acted(self, *, delegates: bool) -> tuple[Fact, ...]:
        """A tool is called by the answer that was written down last, or that is told now."""
        self._has_acted = True
        self._has_delegated = self._has_delegated or delegates
        return self._step()

    def written_down(self, entry: Mapping[str, Any]) -> tuple[Fact, ...]:
        """A whole thought, or a whole answer, from the gateway."""
        run = text(entry.get("runId"))
        self._run = self._run or run
        at = whole(entry.get("ts"))
        if at < self._over_at:
            return (Ignored(_KIND, "of an answer that is over"),)
        if self._has_delegated and run != self._run:
            return (Ignored(_KIND, "of a sub-agent"),)
        if self._is_over:
            self._next()
        self.spoke = True
        step = self._step()
        if entry.get("evtType") == "thinking_end":
            return (*step, *self._think(text(entry.get("content")))) or (Ignored(_KIND, "no thought"),)
        thought = self._think(text(entry.get("rawThinking")))
        rest = self._rest(text(entry.get("rawText")))
        self._is_over, self._over_at = True, at
        return (*step, *thought, *rest) or (Ignored(_KIND, "told already"),)

    def retried(self, at: int) -> None:
        """The model is asked again. Both sides may still tell the rest of the answer that failed. `at`: ms."""
        self._is_over, self._has_acted, self._over_at = True, False, at

    # -- inside

    def _think(self, thought: str) -> tuple[Fact, ...]:
        if not thought.strip() or thought == self._thought:
            return ()
        self._thought = thought
        return (Thinking(thought),)

    def _rest(self, answer: str) -> tuple[Fact, ...]:
        told, self._late = "".join(self._told), answer
        if told and answer.startswith(told):
            self._late = answer[len(told) :]
            return *([TextDelta(self._late)] if self._late else []), TextEnd()
        end = (TextEnd(),) if told else ()
        if answer.strip() in SILENCE or answer.strip() == told.strip():
            return end
        return *end, Text(answer)

    def _without_late(self, fragment: str) -> str:
        late, self._late = self._late, ""
        if late.startswith(fragment):
            self._late = late[len(fragment) :]
            return ""
        return fragment.removeprefix(late)

    def _step(self) -> tuple[Fact, ...]:
        begun, self._is_begun = self._is_begun, True
        return () if begun else (StepBegin(),)

    def _next(self) -> None:
        self._is_begun = self._is_over = self._has_acted = False
        self._told, self._late, self._thought = [], "", ""
