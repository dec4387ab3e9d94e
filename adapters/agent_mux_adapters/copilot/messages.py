"""Streamed messages and thoughts of one agent.

Fragments become deltas as they arrive; the complete message adds only the text that they missed. A complete thought is
printed after the message that followed it, so a streamed one adds nothing. Without streaming, the complete message
contains its thought, which comes first.
"""

from agent_mux.sdk.facts import (
    Fact,
    Ignored,
    Note,
    TextDelta,
    TextEnd,
    ThinkingDelta,
    ThinkingEnd,
    WholeText,
    WholeThinking,
)
from agent_mux.sdk.streamed_text import missing_text

REPEATED_THOUGHT = "the thought was emitted before"


class CopilotMessages:
    """The messages and thoughts of one agent that are not complete yet."""

    __slots__ = ("_end", "_fragments", "_open", "_thoughts")

    def __init__(self) -> None:
        self._open = ""
        """The id of the message or thought that is streaming; empty when there is none."""
        self._end: Fact = TextEnd()
        """The fact that closes the open message or thought."""
        self._fragments: dict[str, list[str]] = {}
        """The fragments of each incomplete message or thought."""
        self._thoughts: list[str] = []
        """Thoughts of this model call: ids of streamed ones, texts of the others."""

    def begin_model_call(self) -> None:
        """Forget the messages and thoughts of the previous model call."""
        self._fragments.clear()
        self._thoughts.clear()

    def message_delta(self, message: str, fragment: str) -> tuple[Fact, ...]:
        """Return the facts for a fragment of a message."""
        fragments = self._fragments.get(message)
        if fragments is not None and message == self._open:
            fragments.append(fragment)
            return (TextDelta(fragment),)
        closing = self._switch_to(message, TextEnd())
        self._fragments.setdefault(message, []).append(fragment)
        return *closing, TextDelta(fragment)

    def thought_delta(self, thought: str, fragment: str) -> tuple[Fact, ...]:
        """Return the facts for a fragment of a thought."""
        closing = self._switch_to(thought, ThinkingEnd())
        self._fragments.setdefault(thought, []).append(fragment)
        if thought not in self._thoughts:
            self._thoughts.append(thought)
        return *closing, ThinkingDelta(fragment)

    def complete_message(self, message: str, content: str, reasoning: str) -> tuple[Fact, ...]:
        """Return what was not streamed of a complete message, and of the thought before it."""
        thought: tuple[Fact, ...] = ()
        if reasoning and not self._thoughts:
            self._thoughts.append(reasoning)
            thought = *self.close(), WholeThinking(reasoning)
        fragments = self._fragments.pop(message, None)
        if fragments is None:
            return (*self.close(), *thought, WholeText(content)) if content else (*self.close(), *thought)
        rest, warning = _missed_text(content, "".join(fragments))
        more = (*self._switch_to(message, TextEnd()), TextDelta(rest)) if rest else ()
        return *thought, *more, *self.close(), *warning

    def complete_thought(self, thought: str, content: str) -> tuple[Fact, ...]:
        """Return what was not streamed of a complete thought; `Ignored` when it adds nothing."""
        if thought in self._fragments:
            rest, warning = _missed_text(content, "".join(self._fragments.pop(thought)))
            more = (*self._switch_to(thought, ThinkingEnd()), ThinkingDelta(rest), *self.close()) if rest else ()
            return (*more, *warning) or (Ignored("assistant.reasoning", REPEATED_THOUGHT),)
        if content in self._thoughts or not content:
            return (Ignored("assistant.reasoning", REPEATED_THOUGHT),)
        self._thoughts.append(content)
        return *self.close(), WholeThinking(content)

    def close(self) -> tuple[Fact, ...]:
        """Close the open message or thought. Further fragments of it open another message."""
        return self._switch_to("", TextEnd())

    def abandon(self) -> None:
        """Forget everything of a failed model call. The retry fact of the caller closes the open message."""
        self._open = ""
        self.begin_model_call()

    def _switch_to(self, name: str, end: Fact) -> tuple[Fact, ...]:
        if name == self._open:
            return ()
        closing = (self._end,) if self._open else ()
        self._open, self._end = name, end
        return closing


def _missed_text(complete: str, streamed: str) -> tuple[str, tuple[Fact, ...]]:
    """Return the end of the text that no fragment has. Text missing elsewhere cannot be inserted: that is a warning."""
    missed = missing_text(complete, streamed)
    if missed is not None:
        return missed, ()
    return "", (Note("copilot streamed a text that differs from the complete one", "warn"),)
