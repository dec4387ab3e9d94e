"""The last message, not ended until it is known whether its model call counts.

Codex completes a message before the response of the model is complete. If the connection drops in between, Codex
repeats the call, and prints the message of the repeated call as well.
"""

from collections.abc import Iterable

from agent_mux.sdk.codec import CodecOutput
from agent_mux.sdk.facts import (
    Fact,
    Ignored,
    LogLine,
    Note,
    QuotaReported,
    Retrying,
    TextDelta,
    TextEnd,
    Unknown,
    WholeText,
)

_BESIDE = (Ignored, LogLine, Note, QuotaReported, Unknown)
"""Facts that come at any time, and so do not show whether the call is over."""


class HeldMessage:
    """Holds back the end of a streamed message, or a whole message, until the next facts.

    A retry among them leaves the message open, so that it is closed as abandoned; others end it.
    """

    __slots__ = ("_held",)

    def __init__(self) -> None:
        self._held: TextEnd | WholeText | None = None

    @property
    def is_empty(self) -> bool:
        """Whether nothing is held back."""
        return self._held is None

    def pass_on(self, steps: Iterable[CodecOutput]) -> tuple[CodecOutput, ...]:
        """Return the steps for one line, after what they decide on, and without what is held back now."""
        new = tuple(steps)
        decided = (*self._decided_by(new), *new)
        if not decided or not isinstance(decided[-1], TextEnd | WholeText):
            return decided
        self._held = decided[-1]
        return decided[:-1] or (Ignored("agent_message", "its end follows"),)

    def _decided_by(self, steps: tuple[CodecOutput, ...]) -> tuple[Fact, ...]:
        facts = [step for step in steps if isinstance(step, Fact) and not isinstance(step, _BESIDE)]
        if not facts:
            return ()
        held = self.release()
        if not any(isinstance(fact, Retrying) for fact in facts):
            return held
        return tuple(TextDelta(fact.text) for fact in held if isinstance(fact, WholeText))

    def release(self) -> tuple[Fact, ...]:
        """Return what is held back: nothing follows."""
        held, self._held = self._held, None
        return (held,) if held is not None else ()
