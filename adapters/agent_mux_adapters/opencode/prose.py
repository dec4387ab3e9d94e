"""What an agent says and thinks in one session: fragments, then the whole part, which adds what they missed."""

from agent_mux.facts import Fact, Ignored, Note, TextDelta, TextEnd, ThinkingDelta, ThinkingEnd

Kind = type[TextDelta] | type[ThinkingDelta]
_KINDS: dict[str, Kind] = {"text": TextDelta, "reasoning": ThinkingDelta}
_ENDS: dict[Kind, Fact] = {TextDelta: TextEnd(), ThinkingDelta: ThinkingEnd()}


class Prose:
    """The parts that are not complete yet."""

    __slots__ = ("_kinds", "_open", "_said")

    def __init__(self) -> None:
        self._kinds: dict[str, Kind] = {}
        self._said: dict[str, list[str]] = {}
        self._open: Kind | None = None
        """What is being said now."""

    def fragment(self, part_id: str, text: str) -> tuple[Fact, ...]:
        """A fragment: the hot path."""
        kind = self._kinds.get(part_id)
        if kind is None:
            return (Ignored("message.part.delta", "of a part that did not begin here; it is told whole"),)
        self._said[part_id].append(text)
        self._open = kind
        return (kind(text),)

    def part(self, part_id: str, native: str, text: str, *, complete: bool) -> tuple[Fact, ...]:
        """The part as it is now."""
        kind = self._kinds.setdefault(part_id, _KINDS[native])
        told = "".join(self._said.get(part_id, ()))
        rest = text[len(told) :] if text.startswith(told) else ""
        self._said[part_id] = [told + rest]
        facts: tuple[Fact, ...] = (kind(rest),) if rest else ()
        if complete and not text.startswith(told) and told.rstrip() != text.rstrip():
            facts = (Note("opencode streamed a text that differs from the complete one", "warn"),)
        self._open = kind if rest else self._open
        if complete:
            del self._kinds[part_id]
            facts = *facts, *self.pause()
        return facts or (Ignored(f"part:{native}", "its fragments tell it"),)

    def pause(self) -> tuple[Fact, ...]:
        """Something else begins: what is being said is over, though its part may be completed later."""
        kind, self._open = self._open, None
        return (_ENDS[kind],) if kind is not None else ()

    def abandon(self) -> None:
        """What is not complete never will be."""
        self._kinds.clear()
        self._said.clear()
        self._open = None
