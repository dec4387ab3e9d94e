"""Messages that Codex completes before it is known whether their model call succeeds.

If the connection drops after a message and before the end of the response, Codex repeats the call, and prints the
message of the repeated call as well.
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
"""Facts that can come at any time. They do not show whether the model call succeeds."""


class HeldMessage:
    """Holds back the end of a streamed message, or a whole message, until the next fact.

    If that is a retry, the message stays open, and the retry closes it as abandoned. Any other fact ends it.
    """

    __slots__ = ("_held",)

    def __init__(self) -> None:
        self._held: TextEnd | WholeText | None = None

    @property
    def is_empty(self) -> bool:
        """Whether nothing is held back."""
        return self._held is None

    def pass_on(self, steps: Iterable[CodecOutput]) -> tuple[CodecOutput, ...]:
        """Return the steps to report for one line: first the held message, if it ends here, then the steps themselves.

        If they end with the end of a message, it is held back.
        """
        new = tuple(steps)
        reported = (*self._settle(new), *new)
        if not reported or not isinstance(reported[-1], TextEnd | WholeText):
            return reported
        self._held = reported[-1]
        return reported[:-1] or (Ignored("agent_message", "its end follows"),)

    def _settle(self, steps: tuple[CodecOutput, ...]) -> tuple[Fact, ...]:
        """Return what the steps of a line make of the held message; nothing if they do not concern it."""
        facts = [step for step in steps if isinstance(step, Fact) and not isinstance(step, _BESIDE)]
        if not facts:
            return ()
        held = self.release()
        if not any(isinstance(fact, Retrying) for fact in facts):
            return held
        return tuple(TextDelta(fact.text) for fact in held if isinstance(fact, WholeText))

    def release(self) -> tuple[Fact, ...]:
        """Return what is held back, as no further line comes."""
        held, self._held = self._held, None
        return (held,) if held is not None else ()
