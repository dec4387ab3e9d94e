"""The messages of the model, block by block: text, thinking and tool calls, each emitted once.

A provider may end its blocks late (all at the end of the message), or not stream at all. Then the complete message
supplies what its fragments did not.
"""

from collections.abc import Callable, Mapping
from typing import Any

from agent_mux.sdk import facts
from agent_mux_adapters._dialects.pi.tools import PiToolCalls
from agent_mux_adapters._dialects.pi.wire import UpdateEvent, begun_call
from agent_mux_adapters._dialects.tolerant import mapping, text

Facts = tuple[facts.Fact, ...]
NOTHING_NEW = "nothing new"


class PiMessages:
    """The message that the model is writing: which blocks were emitted, which one is open."""

    def __init__(self, calls: PiToolCalls) -> None:
        self._calls = calls
        self._emitted: set[int] = set()
        """Indices of the blocks that were emitted."""
        self._open: tuple[int, str] | None = None
        """The open block of text or thinking: its index, and `text` or `thinking`."""
        self._inputs: dict[int, str] = {}
        """Calls whose input is streaming: block index -> call id."""
        self._readers: Mapping[str, Callable[[UpdateEvent, bytes], Facts]] = {
            "text_start": lambda event, _: self._close_other(event.content_index),
            "thinking_start": lambda event, _: self._close_other(event.content_index),
            "text_delta": lambda event, _: self.fragment(event, "text"),
            "thinking_delta": lambda event, _: self.fragment(event, "thinking"),
            "text_end": lambda event, _: self._end_block(event, "text"),
            "thinking_end": lambda event, _: self._end_block(event, "thinking"),
            "toolcall_start": self._begin_call,
            "toolcall_delta": self._add_call_input,
            "toolcall_end": lambda event, _: self._complete_call(event),
            "start": lambda *_: (),
            "done": lambda *_: (),
            "error": lambda *_: (),
        }

    def begin(self) -> None:
        """Forget the blocks of the previous message."""
        self._emitted.clear()
        self._inputs.clear()
        self._open = None

    def update(self, event: UpdateEvent, line: bytes) -> Facts | None:
        """Read the event of one `message_update`; return None for an unknown type."""
        reader = self._readers.get(event.type)
        if reader is None:
            return None
        return reader(event, line) or (facts.Ignored(f"message_update/{event.type}", NOTHING_NEW),)

    def fragment(self, event: UpdateEvent, kind: str) -> Facts:
        """Emit a fragment of text or thinking; first end the block that was open."""
        if not event.delta:
            return ()
        fragment = facts.TextDelta(event.delta) if kind == "text" else facts.ThinkingDelta(event.delta)
        if self._open == (event.content_index, kind):
            return (fragment,)
        before = self._close_other(event.content_index)
        self._open = (event.content_index, kind)
        self._emitted.add(event.content_index)
        return *before, fragment

    def end(self, content: Any, *, is_broken: bool = False) -> Facts:
        """End the open block, and emit the blocks of the complete message that were not emitted yet.

        Text of a broken model call stays open: its repetition abandons it, and the end of the turn closes it.
        """
        is_text_open = self._open is not None and self._open[1] == "text"
        emitted = [] if is_broken and is_text_open else list(self._close())
        blocks = content if isinstance(content, list) else []
        for index, block in enumerate(map(mapping, blocks)):
            if index not in self._emitted:
                self._emitted.add(index)
                emitted += self._emit_block(block)
        self.begin()
        return tuple(emitted)

    # -- blocks

    def _close_other(self, index: int) -> Facts:
        return () if self._open is not None and self._open[0] == index else self._close()

    def _close(self) -> Facts:
        open_block, self._open = self._open, None
        if open_block is None:
            return ()
        return (facts.TextEnd(),) if open_block[1] == "text" else (facts.ThinkingEnd(),)

    def _end_block(self, event: UpdateEvent, kind: str) -> Facts:
        if event.content_index in self._emitted:
            return self._close() if self._open == (event.content_index, kind) else ()
        self._emitted.add(event.content_index)
        return (*self._close(), *_whole_text(kind, event.content))

    def _begin_call(self, event: UpdateEvent, line: bytes) -> Facts:
        before = self._close()
        call_id, name = (event.id, event.tool_name) if event.id else begun_call(line, event.content_index)
        if not call_id:
            return before
        self._inputs[event.content_index] = call_id
        return (*before, *self._calls.begin(call_id, name))

    def _add_call_input(self, event: UpdateEvent, _: bytes) -> Facts:
        call_id = self._inputs.get(event.content_index)
        return self._calls.add_input(call_id, event.delta) if call_id is not None else ()

    def _complete_call(self, event: UpdateEvent) -> Facts:
        self._emitted.add(event.content_index)
        return (*self._close(), *self._calls.complete_input_raw(bytes(event.tool_call)))

    def _emit_block(self, block: Mapping[str, Any]) -> Facts:
        match block.get("type"):
            case "toolCall":
                return self._calls.complete_input(block)
            case "text" | "thinking" as kind:
                return _whole_text(kind, text(block.get(kind)))
        return ()


def _whole_text(kind: str, content: str) -> Facts:
    if not content:
        return ()
    return (facts.WholeText(content),) if kind == "text" else (facts.WholeThinking(content),)
