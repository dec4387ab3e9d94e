"""What one agent says and thinks. Fragments are told as they come; the complete message adds what they missed.

A complete thought is printed after the message that followed it: streamed, it says nothing new. Where nothing is
streamed, the complete message carries its thought, which comes first.
"""

from agent_mux.facts import Fact, Ignored, Note, Text, TextDelta, TextEnd, Thinking, ThinkingDelta, ThinkingEnd

ALREADY_TOLD = "the thought is already told"


class Prose:
    """The message or thought of one agent that is not complete yet."""

    __slots__ = ("_end", "_open", "_said", "_thoughts")

    def __init__(self) -> None:
        self._open = ""
        """The message or thought whose fragments come now."""
        self._end: Fact = TextEnd()
        self._said: dict[str, list[str]] = {}
        self._thoughts: list[str] = []
        """Thoughts of this model call, streamed or whole."""

    def call_begins(self) -> None:
        """A model call begins: what it thinks is new."""
        self._said.clear()
        self._thoughts.clear()

    def say(self, message: str, fragment: str) -> tuple[Fact, ...]:
        """A fragment of a message."""
        said = self._said.get(message)
        if said is not None and message == self._open:
            said.append(fragment)
            return (TextDelta(fragment),)
        closing = self._turn_to(message, TextEnd())
        self._said.setdefault(message, []).append(fragment)
        return *closing, TextDelta(fragment)

    def think(self, thought: str, fragment: str) -> tuple[Fact, ...]:
        """A fragment of a thought."""
        closing = self._turn_to(thought, ThinkingEnd())
        self._said.setdefault(thought, []).append(fragment)
        if thought not in self._thoughts:
            self._thoughts.append(thought)
        return *closing, ThinkingDelta(fragment)

    def message_done(self, message: str, content: str, reasoning: str) -> tuple[Fact, ...]:
        """The whole message, and the thought before it."""
        thought: tuple[Fact, ...] = ()
        if reasoning and not self._thoughts:
            self._thoughts.append(reasoning)
            thought = *self.pause(), Thinking(reasoning)
        said = self._said.pop(message, None)
        if said is None:
            return (*self.pause(), *thought, Text(content)) if content else (*self.pause(), *thought)
        rest, trouble = _rest_of(content, "".join(said))
        more = (*self._turn_to(message, TextEnd()), TextDelta(rest)) if rest else ()
        return *thought, *more, *self.pause(), *trouble

    def thought_done(self, thought: str, content: str) -> tuple[Fact, ...]:
        """The whole thought."""
        if thought in self._said:
            rest, trouble = _rest_of(content, "".join(self._said.pop(thought)))
            more = (*self._turn_to(thought, ThinkingEnd()), ThinkingDelta(rest), *self.pause()) if rest else ()
            return (*more, *trouble) or (Ignored("assistant.reasoning", ALREADY_TOLD),)
        if content in self._thoughts or not content:
            return (Ignored("assistant.reasoning", ALREADY_TOLD),)
        self._thoughts.append(content)
        return *self.pause(), Thinking(content)

    def pause(self) -> tuple[Fact, ...]:
        """Something else begins: what is open is closed. If it goes on, it does so as another message."""
        return self._turn_to("", TextEnd())

    def abandon(self) -> None:
        """The model call is given up. Whoever says so closes what is open."""
        self._open = ""
        self.call_begins()

    def _turn_to(self, name: str, end: Fact) -> tuple[Fact, ...]:
        if name == self._open:
            return ()
        closing = (self._end,) if self._open else ()
        self._open, self._end = name, end
        return closing


def _rest_of(whole: str, told: str) -> tuple[str, tuple[Fact, ...]]:
    """What the fragments missed at the end. A hole elsewhere cannot be mended, only told."""
    if whole.startswith(told):
        return whole[len(told) :], ()
    return "", (Note("copilot streamed a text that differs from the complete one", "warn"),)
