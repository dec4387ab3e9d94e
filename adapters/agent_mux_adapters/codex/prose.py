"""What the agent says and thinks in one thread, streamed.

Fragments are told as they come; the completed item adds what they missed and nothing else. An item that is cut off (by
a dropped connection, by steering) never completes.
"""

from agent_mux.facts import Fact, Ignored, Note, Text, TextDelta, TextEnd, Thinking, ThinkingDelta, ThinkingEnd

BETWEEN_PARTS = "\n\n"


class Prose:
    """The messages and thoughts of one thread that are not complete yet."""

    __slots__ = ("_end", "_open", "_parts", "_said")

    def __init__(self) -> None:
        self._open = ""
        """The item whose fragments come now."""
        self._end: Fact = TextEnd()
        self._said: dict[str, list[str]] = {}
        self._parts: dict[str, tuple[str, int]] = {}

    def say(self, item: str, text: str) -> tuple[Fact, ...]:
        """A fragment of a message."""
        said = self._said.get(item)
        if said is not None and item == self._open:
            said.append(text)
            return (TextDelta(text),)
        closing = self._turn_to(item, TextEnd())
        self._said.setdefault(item, []).append(text)
        return *closing, TextDelta(text)

    def think(self, item: str, kind: str, part: int, text: str) -> tuple[Fact, ...]:
        """A fragment of a thought: of its summary or of the raw thought, whichever comes first."""
        before = self._parts.get(item)
        if before is not None and before[0] != kind:
            return (Ignored(f"item/reasoning/{kind}", "the same thought is already told"),)
        if before is not None and before[1] != part:
            text = BETWEEN_PARTS + text
        self._parts[item] = (kind, part)
        closing = self._turn_to(item, ThinkingEnd())
        self._said.setdefault(item, []).append(text)
        return *closing, ThinkingDelta(text)

    def started(self, item: str) -> tuple[Fact, ...]:
        """A message or thought begins: one that is still open was cut off."""
        return self._turn_to("", TextEnd()) if item != self._open else ()

    def message_done(self, item: str, text: str) -> tuple[Fact, ...]:
        """The whole message."""
        said = self._said.pop(item, None)
        if said is None:
            return *self._turn_to("", TextEnd()), Text(text)
        rest, trouble = _rest_of(text, said)
        facts: tuple[Fact, ...] = (TextDelta(rest),) if rest else ()
        closing = self._turn_to(item, TextEnd())
        self._open = ""
        return *closing, *facts, TextEnd(), *trouble

    def thought_done(self, item: str, summary: list[str], content: list[str]) -> tuple[Fact, ...]:
        """The whole thought."""
        kind, _ = self._parts.pop(item, ("", 0))
        parts = content if kind == "textDelta" or not summary else summary
        text, said = BETWEEN_PARTS.join(parts), self._said.pop(item, None)
        if said is None:
            return *self._turn_to("", TextEnd()), Thinking(text)
        rest, trouble = _rest_of(text, said)
        facts: tuple[Fact, ...] = (ThinkingDelta(rest),) if rest else ()
        closing = self._turn_to(item, ThinkingEnd())
        self._open = ""
        return *closing, *facts, ThinkingEnd(), *trouble

    def abandon(self) -> tuple[Fact, ...]:
        """Nothing that is open will be completed."""
        self._said.clear()
        self._parts.clear()
        return self._turn_to("", TextEnd())

    def _turn_to(self, item: str, end: Fact) -> tuple[Fact, ...]:
        if item == self._open:
            return ()
        closing = (self._end,) if self._open else ()
        self._open, self._end = item, end
        return closing


def _rest_of(text: str, said: list[str]) -> tuple[str, tuple[Fact, ...]]:
    """What the fragments missed at the end. A hole elsewhere cannot be mended, only told."""
    told = "".join(said)
    if text.startswith(told):
        return text[len(told) :], ()
    return "", (Note("codex streamed a text that differs from the completed one", "warn"),)
