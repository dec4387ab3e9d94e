"""Messages and thoughts: opened by their first fragment, closed once, never both at a time. §7, §8, §25.3.1."""

from agent_mux.assembler.emitter import Emitter
from agent_mux.events.content import (
    GrowingText,
    MessageStartEvent,
    MessageStopEvent,
    TextDeltaEvent,
    ThinkingDeltaEvent,
    ThinkingStartEvent,
    ThinkingStopEvent,
)


class Prose:
    """The open message or thought of one scope (the main agent, or one sub-agent)."""

    __slots__ = ("_buffered", "_emitter", "_is_plain", "_message", "_subagent", "_thought")

    def __init__(self, emitter: Emitter, *, buffered: bool, subagent: str | None = None) -> None:
        self._emitter = emitter
        self._buffered = buffered
        self._subagent = subagent
        self._is_plain = not buffered and subagent is None
        self._message: GrowingText | None = None
        self._thought: GrowingText | None = None

    def go_on(self, text: str) -> bool:
        """A fragment of the message that is open: the hot path. False when there is none, or more is to be done."""
        message, emitter = self._message, self._emitter
        if message is None or not text or not self._is_plain or emitter.raw is not None:
            return False
        emitter.out.append(TextDeltaEvent(emitter.run_id, emitter.agent, emitter.now, text, message.append(text)))
        return True

    def think_on(self, text: str) -> bool:
        """A fragment of the thought that is open: as `go_on`."""
        thought, emitter = self._thought, self._emitter
        if thought is None or not text or not self._is_plain or emitter.raw is not None:
            return False
        emitter.out.append(ThinkingDeltaEvent(emitter.run_id, emitter.agent, emitter.now, text, thought.append(text)))
        return True

    def say(self, text: str) -> None:
        """A fragment of a message."""
        message = self._message if self._message is not None else self._open_message()
        view = message.append(text)
        if not self._buffered:
            self._emitter.emit(TextDeltaEvent, text, view, subagent=self._subagent)

    def think(self, text: str, effort: str | None = None) -> None:
        """A fragment of a thought."""
        thought = self._thought
        if thought is None:
            self.end_message()
            thought = self._thought = GrowingText()
            if not self._buffered:
                self._emitter.emit(ThinkingStartEvent, effort, subagent=self._subagent)
        view = thought.append(text)
        if not self._buffered:
            self._emitter.emit(ThinkingDeltaEvent, text, view, subagent=self._subagent)

    def end_message(self) -> None:
        """Close the message as it is."""
        message, self._message = self._message, None
        if message is None:
            return
        text = str(message)
        if self._buffered:
            self._emitter.emit(MessageStartEvent, subagent=self._subagent)
            self._emitter.emit(TextDeltaEvent, text, GrowingText().append(text), subagent=self._subagent)
        self._emitter.emit(MessageStopEvent, text, subagent=self._subagent)

    def end_thought(self) -> None:
        """Close the thought as it is."""
        thought, self._thought = self._thought, None
        if thought is None:
            return
        text = str(thought)
        if self._buffered:
            self._emitter.emit(ThinkingStartEvent, None, subagent=self._subagent)
            self._emitter.emit(ThinkingDeltaEvent, text, GrowingText().append(text), subagent=self._subagent)
        self._emitter.emit(ThinkingStopEvent, text, subagent=self._subagent)

    def close(self) -> None:
        """Close whatever is open."""
        self.end_thought()
        self.end_message()

    def _open_message(self) -> GrowingText:
        self.end_thought()
        message = self._message = GrowingText()
        if not self._buffered:
            self._emitter.emit(MessageStartEvent, subagent=self._subagent)
        return message
