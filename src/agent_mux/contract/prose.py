"""Messages and thoughts: started, then one delta or more, then stopped with the whole text. Sections 7, 8, 25.3.1."""

from agent_mux.contract.breach import Report
from agent_mux.contract.opened import Opened
from agent_mux.events.accumulated import Accumulated, GrowingText
from agent_mux.events.base import BaseEvent
from agent_mux.events.text import MessageStartEvent, MessageStopEvent, TextDeltaEvent
from agent_mux.events.thinking import ThinkingDeltaEvent, ThinkingStartEvent, ThinkingStopEvent


class TextSoFar:
    """What the deltas add up to."""

    def __init__(self, start: str = "") -> None:
        self._own = GrowingText()
        self._shown = self._own.append(start)

    def __str__(self) -> str:
        return str(self._own)

    def add(self, delta: str, shown: Accumulated | None) -> bool:
        """Add a delta; False when the text that the event shows is another. None: it shows none (compact form)."""
        own = self._own.append(delta)
        is_right = shown is None or shown.extends(self._shown, delta)
        # A view on the same growing text as the one before is compared in O(delta).
        self._shown = shown if shown is not None and is_right else own
        return is_right


class Phase:
    """A message, or a thought: one can be open in each scope."""

    def __init__(self, name: str, *, pairing: str, accumulation: str) -> None:
        self.name = name
        self._pairing = pairing
        self._accumulation = accumulation
        self._text: TextSoFar | None = None
        self._deltas = 0

    @property
    def is_open(self) -> bool:
        """Started and not stopped."""
        return self._text is not None

    def start(self, report: Report) -> None:
        """The start event."""
        if self.is_open:
            report(self._pairing, f"a {self.name} starts while one is open")
        self._text, self._deltas = TextSoFar(), 0

    def add(self, delta: str, shown: Accumulated | None, report: Report) -> None:
        """A delta event."""
        if self._text is None:
            report(self._pairing, f"a delta outside a {self.name}")
            return
        self._deltas += 1
        if not self._text.add(delta, shown):
            report(self._accumulation, "accumulated is not the text so far")

    def stop(self, whole: str, report: Report) -> None:
        """The stop event."""
        text, self._text = self._text, None
        if text is None:
            report(self._pairing, f"a {self.name} stops that was not started")
        elif not self._deltas:
            report(self._pairing, f"a {self.name} without a delta")
        elif str(text) != whole:
            report(self._pairing, f"the {self.name} stops with another text than its deltas")


class Prose:
    """The message and the thought of one scope."""

    def __init__(self) -> None:
        self._message = Phase("message", pairing="7.4", accumulation="7.2")
        self._thought = Phase("thought", pairing="8.4", accumulation="8.2")

    def see(self, event: BaseEvent, *, compact: bool, report: Report) -> None:
        """Check one event of these families."""
        match event:
            case MessageStartEvent():
                self._apart(self._thought, "a message starts inside a thought", report)
                self._message.start(report)
            case TextDeltaEvent():
                self._message.add(event.delta, None if compact else event.accumulated_view, report)
            case MessageStopEvent():
                self._message.stop(event.text, report)
            case ThinkingStartEvent():
                self._apart(self._message, "a thought starts inside a message", report)
                self._thought.start(report)
            case ThinkingDeltaEvent():
                self._thought.add(event.delta, None if compact else event.accumulated_view, report)
            case ThinkingStopEvent():
                self._thought.stop(event.thinking, report)

    def _apart(self, other: Phase, message: str, report: Report) -> None:
        if other.is_open:
            report("25.3.1", message)

    def opened(self) -> Opened:
        """What is open."""
        if self._message.is_open:
            yield "7.4", "a message"
        if self._thought.is_open:
            yield "8.4", "a thought"
