"""Text and thinking events: opened by their first fragment, closed once, never both open at the same time.

See docs/spec/events.md, sections 7, 8 and 25.3.1.
"""

from agent_mux.assembler.emitter import Emitter
from agent_mux.assembler.masks import MaskedText, Masks
from agent_mux.assembler.text_limit import LimitedText
from agent_mux.events.content import (
    GrowingText,
    MessageStartEvent,
    MessageStopEvent,
    TextDeltaEvent,
    ThinkingDeltaEvent,
    ThinkingStartEvent,
    ThinkingStopEvent,
)


class MessageAssembler:
    """Emits the messages and thinking blocks of the main agent, or of one sub-agent."""

    __slots__ = ("_buffered", "_emitter", "_is_plain", "_masked", "_masks", "_message", "_subagent", "_thinking")

    def __init__(self, emitter: Emitter, masks: Masks, *, buffered: bool, subagent: str | None = None) -> None:
        self._emitter = emitter
        self._masks = masks
        self._masked = MaskedText(masks)
        """The fragments of the message or thinking block that is open."""
        self._buffered = buffered
        self._subagent = subagent
        self._is_plain = not buffered and subagent is None
        self._message: LimitedText | None = None
        self._thinking: LimitedText | None = None

    @property
    def is_open(self) -> bool:
        """Whether a message is open."""
        return self._message is not None

    def append_text(self, text: str) -> bool:
        """Append to the open message, on the hot path.

        Returns False, and emits nothing, when no message is open or the event needs more than run id, agent and time.
        """
        message, emitter = self._message, self._emitter
        if message is None or not text or not self._is_plain or emitter.raw is not None:
            return False
        text = message.fit(self._masked.add(text))
        if text:
            view = message.append(text)
            emitter.out.append(TextDeltaEvent(emitter.run_id, emitter.agent, emitter.now, text, view))
        return True

    def append_thinking(self, text: str) -> bool:
        """Append to the open thinking block, on the hot path. Returns False under the conditions of `append_text`."""
        thinking, emitter = self._thinking, self._emitter
        if thinking is None or not text or not self._is_plain or emitter.raw is not None:
            return False
        text = thinking.fit(self._masked.add(text))
        if text:
            view = thinking.append(text)
            emitter.out.append(ThinkingDeltaEvent(emitter.run_id, emitter.agent, emitter.now, text, view))
        return True

    def add_text(self, text: str) -> None:
        """Add a fragment to the message; open one if none is open."""
        message = self._message if self._message is not None else self._open_message()
        self._append(message, TextDeltaEvent, self._masked.add(text))

    def add_thinking(self, text: str, effort: str | None = None) -> None:
        """Add a fragment to the thinking block; open one if none is open."""
        thinking = self._thinking
        if thinking is None:
            self.end_message()
            thinking = self._thinking = self._emitter.new_text()
            self._masked = MaskedText(self._masks)
            if not self._buffered:
                self._emitter.emit(ThinkingStartEvent, effort, subagent=self._subagent)
        self._append(thinking, ThinkingDeltaEvent, self._masked.add(text))

    def flush(self) -> None:
        """Emit the text that is held back, because a person has to see it now."""
        if self._message is not None:
            self._append(self._message, TextDeltaEvent, self._masked.flush())
        elif self._thinking is not None:
            self._append(self._thinking, ThinkingDeltaEvent, self._masked.flush())

    def _append(self, whole: LimitedText, kind: type[TextDeltaEvent | ThinkingDeltaEvent], text: str) -> None:
        text = whole.fit(text)
        if text:
            view = whole.append(text)
            if not self._buffered:
                self._emitter.emit(kind, text, view, subagent=self._subagent)

    def end_message(self, *, abandoned: bool = False) -> None:
        """Close the message, if one is open, with the text that it has."""
        if self._message is None:
            return
        self.flush()
        message, self._message = self._message, None
        text = str(message)
        if self._buffered:
            self._emitter.emit(MessageStartEvent, subagent=self._subagent)
            self._emitter.emit(TextDeltaEvent, text, GrowingText().append(text), subagent=self._subagent)
        left_out = message.left_out or None
        self._emitter.emit(MessageStopEvent, text, abandoned or None, left_out, subagent=self._subagent)

    def end_thinking(self) -> None:
        """Close the thinking block, if one is open, with the text that it has."""
        if self._thinking is None:
            return
        self.flush()
        thinking, self._thinking = self._thinking, None
        text = str(thinking)
        if self._buffered:
            self._emitter.emit(ThinkingStartEvent, None, subagent=self._subagent)
            self._emitter.emit(ThinkingDeltaEvent, text, GrowingText().append(text), subagent=self._subagent)
        self._emitter.emit(ThinkingStopEvent, text, thinking.left_out or None, subagent=self._subagent)

    def close(self, *, abandoned: bool = False) -> None:
        """Close the message or thinking block that is open, if any."""
        self.end_thinking()
        self.end_message(abandoned=abandoned)

    def _open_message(self) -> LimitedText:
        self.end_thinking()
        message = self._message = self._emitter.new_text()
        self._masked = MaskedText(self._masks)
        if not self._buffered:
            self._emitter.emit(MessageStartEvent, subagent=self._subagent)
        return message
