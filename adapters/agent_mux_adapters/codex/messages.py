"""Streamed messages and thoughts of one thread.

Fragments become deltas as they arrive. The completed item adds only the text that the fragments missed. An item that
is cut off (by a dropped connection or by steering) never completes.
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

BETWEEN_PARTS = "\n\n"


class CodexMessages:
    """The messages and thoughts of one thread that are not complete yet."""

    __slots__ = ("_end", "_fragments", "_open", "_parts")

    def __init__(self) -> None:
        self._open = ""
        """The id of the item that is streaming; empty when there is none."""
        self._end: Fact = TextEnd()
        """The fact that closes the open item."""
        self._fragments: dict[str, list[str]] = {}
        """The fragments of each incomplete item."""
        self._parts: dict[str, tuple[str, int]] = {}
        """The kind and the index of the last part of each incomplete thought."""

    def message_delta(self, item: str, text: str) -> tuple[Fact, ...]:
        """Return the facts for a fragment of a message."""
        fragments = self._fragments.get(item)
        if fragments is not None and item == self._open:
            fragments.append(text)
            return (TextDelta(text),)
        closing = self._switch_to(item, TextEnd())
        self._fragments.setdefault(item, []).append(text)
        return *closing, TextDelta(text)

    def thought_delta(self, item: str, kind: str, part: int, text: str) -> tuple[Fact, ...]:
        """Return the facts for a fragment of a thought.

        Codex can stream both a summary and the raw thought. The kind that comes first is used, the other ignored.
        """
        before = self._parts.get(item)
        if before is not None and before[0] != kind:
            return (Ignored(f"item/reasoning/{kind}", "the same thought was streamed in its other form"),)
        if before is not None and before[1] != part:
            text = BETWEEN_PARTS + text
        self._parts[item] = (kind, part)
        closing = self._switch_to(item, ThinkingEnd())
        self._fragments.setdefault(item, []).append(text)
        return *closing, ThinkingDelta(text)

    def start(self, item: str) -> tuple[Fact, ...]:
        """Close the open item, which was cut off, when another message or thought begins."""
        return self._switch_to("", TextEnd()) if item != self._open else ()

    def complete_message(self, item: str, text: str) -> tuple[Fact, ...]:
        """Return the rest of a streamed message, or the whole message if none of it was streamed."""
        fragments = self._fragments.pop(item, None)
        if fragments is None:
            return *self._switch_to("", TextEnd()), WholeText(text)
        rest, warning = _missed_text(text, fragments)
        facts: tuple[Fact, ...] = (TextDelta(rest),) if rest else ()
        closing = self._switch_to(item, TextEnd())
        self._open = ""
        return *closing, *facts, TextEnd(), *warning

    def complete_thought(self, item: str, summary: list[str], content: list[str]) -> tuple[Fact, ...]:
        """Return the rest of a streamed thought, or the whole thought if none of it was streamed."""
        kind, _ = self._parts.pop(item, ("", 0))
        parts = content if kind == "textDelta" or not summary else summary
        text, fragments = BETWEEN_PARTS.join(parts), self._fragments.pop(item, None)
        if fragments is None:
            return *self._switch_to("", TextEnd()), WholeThinking(text)
        rest, warning = _missed_text(text, fragments)
        facts: tuple[Fact, ...] = (ThinkingDelta(rest),) if rest else ()
        closing = self._switch_to(item, ThinkingEnd())
        self._open = ""
        return *closing, *facts, ThinkingEnd(), *warning

    def abandon(self) -> tuple[Fact, ...]:
        """Forget all incomplete items and close the open one."""
        self._fragments.clear()
        self._parts.clear()
        return self._switch_to("", TextEnd())

    def _switch_to(self, item: str, end: Fact) -> tuple[Fact, ...]:
        if item == self._open:
            return ()
        closing = (self._end,) if self._open else ()
        self._open, self._end = item, end
        return closing


def _missed_text(text: str, fragments: list[str]) -> tuple[str, tuple[Fact, ...]]:
    """Return the end of the text that no fragment has. Text missing elsewhere cannot be inserted: that is a warning."""
    streamed = "".join(fragments)
    missed = missing_text(text, streamed)
    if missed is not None:
        return missed, ()
    return "", (Note("codex streamed a text that differs from the completed one", "warn"),)
