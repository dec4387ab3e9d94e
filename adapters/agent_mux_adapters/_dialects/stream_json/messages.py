"""The messages of the main agent and of sub-agents: streamed in fragments, whole, or both.

With partial messages each message arrives twice: as `stream_event` lines, and as one `assistant` line per content
block, before or after the block ends. Streamed blocks are not emitted again. Only whole lines arrive without partial
messages, from sub-agents, from local commands, and when the agent repeats a request without streaming.
"""

from collections.abc import Callable, Mapping
from typing import Any

from agent_mux.sdk import facts
from agent_mux_adapters._dialects.stream_json.tools import StreamJsonCalls
from agent_mux_adapters._dialects.stream_json.wire import StreamDelta
from agent_mux_adapters._dialects.tolerant import (
    WrongShapeError,
    as_json,
    mapping,
    need_mapping,
    need_text,
    rows,
    text,
    whole,
)

Facts = tuple[facts.Fact, ...]

TOOL_USES = frozenset({"tool_use", "server_tool_use", "mcp_tool_use"})
SILENT_DELTAS = frozenset({"signature_delta", "citations_delta"})
SYNTHETIC = "<synthetic>"

_EMPTY = (facts.Ignored("stream_event/content_block_delta", "an empty fragment"),)
_SIGNATURE = (facts.Ignored("stream_event/content_block_delta", "a signature or citation, not part of the text"),)
_EMITTED_WHEN_COMPLETE = (
    facts.Ignored("stream_event/content_block_delta", "the input of a call that is emitted when complete"),
)


class ContentBlock:
    """A content block of the streaming message."""

    __slots__ = ("call_id", "covered", "emitted", "index", "kind")

    def __init__(self, index: int, kind: str, call_id: str = "") -> None:
        self.index = index
        self.kind = kind
        self.call_id = call_id
        self.emitted = False
        """Whether a part of it was emitted."""
        self.covered = False
        """Whether its whole line was read."""


class MessageReader:
    """Reads the messages of one agent."""

    def __init__(self, calls: StreamJsonCalls, spent: Callable[[Mapping[str, Any]], Facts], *, is_main: bool) -> None:
        """Build a reader. `spent` returns the facts for the usage of one model call."""
        self.handed_back = False
        """Whether the last message requested no tool, so that the agent waits for its next prompt."""
        self.broken_off = 0
        """The number of consecutive streams that broke off."""
        self.is_streaming = False
        """Whether a message is streaming; whole lines then repeat its blocks."""
        self._calls = calls
        self._usage_facts = spent
        self._is_main = is_main
        self._message_id = ""
        self._blocks: dict[int, ContentBlock] = {}
        self._block = ContentBlock(-1, "")
        self._usage: dict[str, Any] = {}
        self._stop_reason = ""
        self._text_is_open = False
        """Whether a block of text was streamed to its end, and no whole line has confirmed it."""
        self._is_broken = False
        """Whether the stream broke off in an open block of text."""

    # -- fragments

    def fragment(self, index: int, delta: StreamDelta) -> Facts | None:
        """Return the fact of one fragment (hot path); None when its kind is unknown."""
        block = self._block
        if block.index != index:
            block = self._block_at(index, delta.type)
        if delta.type == "text_delta":
            if delta.text:
                block.emitted = True
                return (facts.TextDelta(delta.text),)
        elif delta.type == "input_json_delta":
            if delta.partial_json:
                return (
                    (facts.ToolInput(block.call_id, delta.partial_json),) if block.call_id else _EMITTED_WHEN_COMPLETE
                )
        elif delta.type == "thinking_delta":
            if delta.thinking:
                block.emitted = True
                return (facts.ThinkingDelta(delta.thinking),)
        else:
            return _SIGNATURE if delta.type in SILENT_DELTAS else None
        return _EMPTY

    def _block_at(self, index: int, delta_kind: str) -> ContentBlock:
        block = self._blocks.get(index)
        if block is None:  # the start of the stream is missing
            kind = "thinking" if delta_kind == "thinking_delta" else "text" if delta_kind == "text_delta" else ""
            block = self._blocks[index] = ContentBlock(index, kind)
        self._block = block
        return block

    # -- other events of the stream

    def event(self, event: Mapping[str, Any], line: Mapping[str, Any]) -> Facts:
        """Return the facts of an event of the model's stream, which may be none. Raises `WrongShapeError`."""
        match event.get("type"):
            case "message_start":
                return self._message_start(mapping(event.get("message")))
            case "content_block_start":
                return self._block_start(whole(event.get("index")), mapping(event.get("content_block")))
            case "content_block_delta":
                return self._slow_fragment(event)
            case "content_block_stop":
                return self._block_stop(whole(event.get("index")))
            case "message_stop":
                return self._message_stop(mapping(line.get("abandoned_blocks")))
            case "message_delta":
                self._message_delta(event)
            case "ping":
                pass
            case _:
                raise WrongShapeError("event.type")
        return ()

    def _message_delta(self, event: Mapping[str, Any]) -> None:
        self.count(mapping(event.get("usage")))
        self._stop_reason = text(mapping(event.get("delta")).get("stop_reason")) or self._stop_reason

    def count(self, usage: Mapping[str, Any]) -> None:
        """Update the usage of the running model call. A count that is missing or 0 keeps its value."""
        self._usage.update({name: count for name, count in usage.items() if count})

    def spent(self) -> Facts:
        """Return the facts for the usage of the model call that ended."""
        raw, self._usage = self._usage, {}
        return self._usage_facts(raw) if raw else ()

    def _slow_fragment(self, event: Mapping[str, Any]) -> Facts:
        raw = mapping(event.get("delta"))
        delta = StreamDelta(text(raw.get("type")), text(raw.get("text")), text(raw.get("thinking")),
                      text(raw.get("partial_json")))  # fmt: skip
        fragment_facts = self.fragment(whole(event.get("index")), delta)
        if fragment_facts is None:
            raise WrongShapeError("event.delta.type")
        return fragment_facts

    def _message_start(self, message: Mapping[str, Any]) -> Facts:
        unfinished = (*self._end_text(), *self._calls.abandon(block.call_id for block in self._blocks.values()))
        spent = self.spent()
        self.is_streaming = True
        self._message_id = text(message.get("id"))
        self._blocks, self._block = {}, ContentBlock(-1, "")
        self._usage = dict(mapping(message.get("usage")))
        self._stop_reason, self.handed_back, self._is_broken = "", False, False
        return (*unfinished, *spent, *self._step())

    def _block_start(self, index: int, content: Mapping[str, Any]) -> Facts:
        kind, before = text(content.get("type")), self._end_text()
        block = self._block = self._blocks[index] = ContentBlock(index, kind)
        if kind in TOOL_USES:
            call_id = need_text(content, "id")
            begun = self._calls.begin(call_id, need_text(content, "name"))
            block.call_id = call_id if begun else ""
            return (*before, *begun)
        first = text(content.get(kind)) if kind in ("text", "thinking") else ""
        if first:
            return (*before, *(self.fragment(index, StreamDelta(f"{kind}_delta", text=first, thinking=first)) or ()))
        return before

    def _block_stop(self, index: int) -> Facts:
        block = self._blocks.get(index)
        if block is None or not block.emitted:
            return ()
        if block.kind == "thinking":
            return (facts.ThinkingEnd(),)
        # The CLI also ends a block whose stream broke off; the repeated model call then abandons the open message.
        self._text_is_open = not block.covered
        return () if self._text_is_open else (facts.TextEnd(),)

    def _end_text(self) -> Facts:
        was_open, self._text_is_open = self._text_is_open, False
        return (facts.TextEnd(),) if was_open else ()

    def _message_stop(self, abandoned: Mapping[str, Any]) -> Facts:
        unfinished: Facts = () if abandoned else self._end_text()
        self._is_broken, self._text_is_open = self._text_is_open, False
        if abandoned:
            first = whole(abandoned.get("from_block_index"))
            unfinished = self._calls.abandon(b.call_id for b in self._blocks.values() if b.index >= first)
            self._blocks = {index: block for index, block in self._blocks.items() if index < first}
            self.broken_off += 1
        else:
            self.broken_off = 0
        self.handed_back = self._stop_reason not in {"", "tool_use", "pause_turn"}
        self.is_streaming = False
        return (*unfinished, *self.spent())

    def _step(self) -> Facts:
        return (facts.StepBegin(),) if self._is_main else ()

    # -- whole messages

    def whole_message(self, message: Mapping[str, Any]) -> Facts:
        """Return the facts of an `assistant` line; none when all of it was streamed."""
        message_id = text(message.get("id"))
        synthetic = message.get("model") == SYNTHETIC
        step: Facts = ()
        if not synthetic and self.is_another(message_id):
            self._message_id, self._blocks, step = message_id, {}, (*self._repetition(), *self._step())
        content = message.get("content")
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else rows(content)
        block_facts = [
            *self._end_text(),
            *(fact for block in blocks for fact in self._whole_block(block, synthetic=synthetic)),
        ]
        return (*step, *block_facts) if block_facts else ()

    def _repetition(self) -> Facts:
        """Return the retry of a broken stream that the CLI repeats without streaming, which it does not report."""
        was_broken, self._is_broken = self._is_broken, False
        return (facts.Retrying(self.broken_off, 0, "the stream broke off"),) if was_broken and self._is_main else ()

    def is_another(self, message_id: str) -> bool:
        """Return whether a whole line with this id belongs to another model call than the last line or stream."""
        return message_id != self._message_id

    def _whole_block(self, block: Mapping[str, Any], *, synthetic: bool) -> Facts:
        kind = text(block.get("type"))
        if kind in TOOL_USES:
            self.handed_back = False
            return self._calls.ready(block)
        if kind.endswith("_tool_result"):
            return self._calls.server_result(block)
        if kind == "redacted_thinking":
            return ()
        if kind not in ("text", "thinking"):
            return (facts.Unknown(f"assistant/{kind}", as_json(block)),)
        if not synthetic and self._was_streamed(kind):
            return ()
        self.handed_back = kind == "text"
        content = text(block.get(kind))
        return () if not content else (facts.WholeText(content) if kind == "text" else facts.WholeThinking(content),)

    def _was_streamed(self, kind: str) -> bool:
        for block in self._blocks.values():
            if block.kind == kind and block.emitted and not block.covered:
                block.covered = True
                return True
        return False


# -- the main agent and its sub-agents, distinguished by `parent_tool_use_id`


class MessageReaders:
    """The message readers of the main agent and of each sub-agent. `new_reader` creates one for a sub-agent."""

    def __init__(self, main: MessageReader, new_reader: Callable[[], MessageReader]) -> None:
        self.main = main
        self._new_reader = new_reader
        self._inside: dict[str, MessageReader] = {}

    def stream_event(self, line: Mapping[str, Any]) -> Facts:
        """Read a `stream_event` line. Raises `WrongShapeError`."""
        event, parent = need_mapping(line, "event"), parent_of(line)
        event_facts = self._reader(parent).event(event, line)
        nothing = facts.Ignored(f"stream_event/{text(event.get('type'))}", "adds nothing")
        return in_subagent(parent, event_facts) or (nothing,)

    def assistant(self, line: Mapping[str, Any]) -> Facts:
        """Read an `assistant` line. Raises `WrongShapeError`."""
        message, parent = need_mapping(line, "message"), parent_of(line)
        message_facts = self._reader(parent).whole_message(message)
        return in_subagent(parent, message_facts) or (facts.Ignored("assistant", "already streamed"),)

    def _reader(self, parent: str) -> MessageReader:
        if not parent:
            return self.main
        return self._inside.setdefault(parent, self._new_reader())


def parent_of(line: Mapping[str, Any]) -> str:
    """Return the call of the sub-agent that printed the line; empty for the main agent."""
    return text(line.get("parent_tool_use_id"))


def in_subagent(parent: str, line_facts: Facts) -> Facts:
    """Attribute facts to a sub-agent; `Unknown` facts stay unattributed."""
    if not parent:
        return line_facts
    return tuple(fact if isinstance(fact, facts.Unknown) else facts.InSubagent(parent, fact) for fact in line_facts)


def without_ignored(line_facts: Facts) -> Facts:
    """Drop the `Ignored` facts of a line that has other facts."""
    kept = tuple(fact for fact in line_facts if not isinstance(fact, facts.Ignored))
    return kept or line_facts


def plain_text(content: Any) -> str:
    """Return the text of a message's content, which is a string or a list of blocks."""
    if isinstance(content, str):
        return content
    blocks = content if isinstance(content, list) else []
    return "\n".join(text(mapping(block).get("text")) for block in blocks)
