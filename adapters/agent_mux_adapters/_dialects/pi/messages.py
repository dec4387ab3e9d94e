"""The messages of the model, block by block: texts, thoughts and calls, each told once.

A provider may end its blocks late (all at the end of the message), or not stream at all: then the whole message tells
what its fragments did not.
"""

from collections.abc import Callable, Mapping
from typing import Any

from agent_mux import facts
from agent_mux_adapters._dialects.pi.tools import ToolCalls
from agent_mux_adapters._dialects.pi.wire import UpdateEvent, begun_call
from agent_mux_adapters._dialects.tolerant import mapping, text

Facts = tuple[facts.Fact, ...]
NOTHING_NEW = "it says nothing new"


class Messages:
    """The message that is being made."""

    def __init__(self, calls: ToolCalls) -> None:
        self._calls = calls
        self._told: set[int] = set()
        """Blocks that were told, by their index."""
        self._open: tuple[int, str] | None = None
        """The text or thought that goes on: its index, and `text` or `thinking`."""
        self._inputs: dict[int, str] = {}
        """Calls whose input streams: block index -> call id."""
        self._readers: Mapping[str, Callable[[UpdateEvent, bytes], Facts]] = {
            "text_start": lambda event, _: self._switch(event.content_index),
            "thinking_start": lambda event, _: self._switch(event.content_index),
            "text_delta": lambda event, _: self.fragment(event, "text"),
            "thinking_delta": lambda event, _: self.fragment(event, "thinking"),
            "text_end": lambda event, _: self._ended(event, "text"),
            "thinking_end": lambda event, _: self._ended(event, "thinking"),
            "toolcall_start": self._call_begins,
            "toolcall_delta": self._call_goes_on,
            "toolcall_end": lambda event, _: self._call_ready(event),
            "start": lambda *_: (),
            "done": lambda *_: (),
            "error": lambda *_: (),
        }

    def begin(self) -> None:
        """Another message begins."""
        self._told.clear()
        self._inputs.clear()
        self._open = None

    def update(self, event: UpdateEvent, line: bytes) -> Facts | None:
        """One `message_update`; None when it is of an unknown kind."""
        reader = self._readers.get(event.type)
        if reader is None:
            return None
        return reader(event, line) or (facts.Ignored(f"message_update/{event.type}", NOTHING_NEW),)

    def fragment(self, event: UpdateEvent, kind: str) -> Facts:
        """A fragment of a text or a thought."""
        if not event.delta:
            return ()
        fragment = facts.TextDelta(event.delta) if kind == "text" else facts.ThinkingDelta(event.delta)
        if self._open == (event.content_index, kind):
            return (fragment,)
        before = self._switch(event.content_index)
        self._open = (event.content_index, kind)
        self._told.add(event.content_index)
        return *before, fragment

    def end(self, content: Any) -> Facts:
        """The message is complete: what is open ends, and what was not told is told."""
        told = list(self._close())
        blocks = content if isinstance(content, list) else []
        for index, block in enumerate(map(mapping, blocks)):
            if index not in self._told:
                self._told.add(index)
                told += self._whole(block)
        self.begin()
        return tuple(told)

    # -- inside

    def _switch(self, index: int) -> Facts:
        return () if self._open is not None and self._open[0] == index else self._close()

    def _close(self) -> Facts:
        was, self._open = self._open, None
        if was is None:
            return ()
        return (facts.TextEnd(),) if was[1] == "text" else (facts.ThinkingEnd(),)

    def _ended(self, event: UpdateEvent, kind: str) -> Facts:
        if event.content_index in self._told:
            return self._close() if self._open == (event.content_index, kind) else ()
        self._told.add(event.content_index)
        return (*self._close(), *_prose(kind, event.content))

    def _call_begins(self, event: UpdateEvent, line: bytes) -> Facts:
        before = self._close()
        call_id, name = (event.id, event.tool_name) if event.id else begun_call(line, event.content_index)
        if not call_id:
            return before
        self._inputs[event.content_index] = call_id
        return (*before, *self._calls.begin(call_id, name))

    def _call_goes_on(self, event: UpdateEvent, _: bytes) -> Facts:
        call_id = self._inputs.get(event.content_index)
        return self._calls.add_input(call_id, event.delta) if call_id is not None else ()

    def _call_ready(self, event: UpdateEvent) -> Facts:
        self._told.add(event.content_index)
        return (*self._close(), *self._calls.ready_raw(bytes(event.tool_call)))

    def _whole(self, block: Mapping[str, Any]) -> Facts:
        match block.get("type"):
            case "toolCall":
                return self._calls.ready(block)
            case "text" | "thinking" as kind:
                return _prose(kind, text(block.get(kind)))
        return ()


def _prose(kind: str, said: str) -> Facts:
    if not said:
        return ()
    return (facts.Text(said),) if kind == "text" else (facts.Thinking(said),)
