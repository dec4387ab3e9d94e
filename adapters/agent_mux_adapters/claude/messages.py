"""The messages of one agent, the main one or a sub-agent: streamed in fragments, or whole, or both.

With `--include-partial-messages` every message arrives twice: as `stream_event` lines, and as one `assistant` line per
content block, which comes before the block's end and has the same message id. What was streamed is not told again.
Whole lines alone come without partial messages, from sub-agents, from local commands, and from the request that the
CLI repeats without streaming after a stream broke off.
"""

from collections.abc import Mapping
from typing import Any

from agent_mux import facts
from agent_mux_adapters.claude.accounting import Accounts, usage_of
from agent_mux_adapters.claude.calls import ToolCalls
from agent_mux_adapters.claude.wire import Delta, WrongShapeError, as_json, mapping, need_text, rows, text, whole

TOOL_USES = frozenset({"tool_use", "server_tool_use", "mcp_tool_use"})
SILENT_DELTAS = frozenset({"signature_delta", "citations_delta"})
SYNTHETIC = "<synthetic>"

_EMPTY = (facts.Ignored("stream_event/content_block_delta", "an empty fragment"),)
_SIGNATURE = (facts.Ignored("stream_event/content_block_delta", "a signature or citation, not part of the text"),)
_TOLD_WHOLE = (facts.Ignored("stream_event/content_block_delta", "the input of a call that is told when complete"),)


class _Block:
    """A content block of the message that streams."""

    __slots__ = ("call_id", "covered", "index", "kind", "told")

    def __init__(self, index: int, kind: str, call_id: str = "") -> None:
        self.index = index
        self.kind = kind
        self.call_id = call_id
        self.told = False
        """Something of it was told."""
        self.covered = False
        """Its whole line came."""


class MessageReader:
    """Reads the messages of one agent."""

    def __init__(self, calls: ToolCalls, accounts: Accounts | None) -> None:
        self.handed_back = False
        """The last message asked for no tool: the agent waits for its next prompt."""
        self.broken_off = 0
        """How many streams in a row broke off."""
        self._calls = calls
        self._accounts = accounts
        """The main agent's; None inside a sub-agent, whose calls are in nobody's sum but the turn's."""
        self._message_id = ""
        self._blocks: dict[int, _Block] = {}
        self._block = _Block(-1, "")
        self._usage: dict[str, Any] = {}
        self._stop_reason = ""

    # -- fragments

    def fragment(self, index: int, delta: Delta) -> tuple[facts.Fact, ...] | None:
        """One fragment, the hot path. None when its kind is not known."""
        block = self._block
        if block.index != index:
            block = self._block_at(index, delta.type)
        if delta.type == "text_delta":
            if delta.text:
                block.told = True
                return (facts.TextDelta(delta.text),)
        elif delta.type == "input_json_delta":
            if delta.partial_json:
                return (facts.ToolInput(block.call_id, delta.partial_json),) if block.call_id else _TOLD_WHOLE
        elif delta.type == "thinking_delta":
            if delta.thinking:
                block.told = True
                return (facts.ThinkingDelta(delta.thinking),)
        else:
            return _SIGNATURE if delta.type in SILENT_DELTAS else None
        return _EMPTY

    def _block_at(self, index: int, delta_kind: str) -> _Block:
        block = self._blocks.get(index)
        if block is None:  # a stream that is seen from the middle on
            kind = "thinking" if delta_kind == "thinking_delta" else "text" if delta_kind == "text_delta" else ""
            block = self._blocks[index] = _Block(index, kind)
        self._block = block
        return block

    # -- the other events of the stream

    def event(self, event: Mapping[str, Any], line: Mapping[str, Any]) -> tuple[facts.Fact, ...]:
        """Any event of the model's stream. Empty when it says nothing. Raises `WrongShapeError`."""
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
        # A count that the model's API leaves out, or gives as 0, stays what `message_start` said.
        self._usage.update({name: count for name, count in mapping(event.get("usage")).items() if count})
        self._stop_reason = text(mapping(event.get("delta")).get("stop_reason")) or self._stop_reason

    def _slow_fragment(self, event: Mapping[str, Any]) -> tuple[facts.Fact, ...]:
        raw = mapping(event.get("delta"))
        delta = Delta(text(raw.get("type")), text(raw.get("text")), text(raw.get("thinking")),
                      text(raw.get("partial_json")))  # fmt: skip
        said = self.fragment(whole(event.get("index")), delta)
        if said is None:
            raise WrongShapeError("event.delta.type")
        return said

    def _message_start(self, message: Mapping[str, Any]) -> tuple[facts.Fact, ...]:
        unfinished = self._calls.abandon(block.call_id for block in self._blocks.values())
        spent = self._spent()
        self._message_id = text(message.get("id"))
        self._blocks, self._block = {}, _Block(-1, "")
        self._usage = dict(mapping(message.get("usage")))
        self._stop_reason, self.handed_back = "", False
        return (*unfinished, *spent, *self._step())

    def _block_start(self, index: int, content: Mapping[str, Any]) -> tuple[facts.Fact, ...]:
        kind = text(content.get("type"))
        block = self._block = self._blocks[index] = _Block(index, kind)
        if kind in TOOL_USES:
            call_id = need_text(content, "id")
            begun = self._calls.begin(call_id, need_text(content, "name"))
            block.call_id = call_id if begun else ""
            return begun
        first = text(content.get(kind)) if kind in ("text", "thinking") else ""
        return self.fragment(index, Delta(f"{kind}_delta", text=first, thinking=first)) or () if first else ()

    def _block_stop(self, index: int) -> tuple[facts.Fact, ...]:
        block = self._blocks.get(index)
        if block is None or not block.told:
            return ()
        return (facts.ThinkingEnd() if block.kind == "thinking" else facts.TextEnd(),)

    def _message_stop(self, abandoned: Mapping[str, Any]) -> tuple[facts.Fact, ...]:
        unfinished: tuple[facts.Fact, ...] = ()
        if abandoned:
            first = whole(abandoned.get("from_block_index"))
            unfinished = self._calls.abandon(b.call_id for b in self._blocks.values() if b.index >= first)
            self._blocks = {index: block for index, block in self._blocks.items() if index < first}
            self.broken_off += 1
        else:
            self.broken_off = 0
        self.handed_back = self._stop_reason not in {"", "tool_use", "pause_turn"}
        return (*unfinished, *self._spent())

    def _spent(self) -> tuple[facts.Fact, ...]:
        raw, self._usage = self._usage, {}
        if self._accounts is not None:
            return self._accounts.model_call(raw)
        return (usage_of(raw),) if raw else ()

    def _step(self) -> tuple[facts.Fact, ...]:
        return (facts.StepBegin(),) if self._accounts is not None else ()

    # -- whole messages

    def whole_message(self, message: Mapping[str, Any]) -> tuple[facts.Fact, ...]:
        """An `assistant` line. Empty when all of it was streamed."""
        message_id = text(message.get("id"))
        synthetic = message.get("model") == SYNTHETIC
        step: tuple[facts.Fact, ...] = ()
        if message_id != self._message_id and not synthetic:
            self._message_id, self._blocks, step = message_id, {}, self._step()
        content = message.get("content")
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else rows(content)
        said = [fact for block in blocks for fact in self._whole_block(block, synthetic=synthetic)]
        return (*step, *said) if said else ()

    def _whole_block(self, block: Mapping[str, Any], *, synthetic: bool) -> tuple[facts.Fact, ...]:
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
        said = text(block.get(kind))
        return () if not said else (facts.Text(said) if kind == "text" else facts.Thinking(said),)

    def _was_streamed(self, kind: str) -> bool:
        for block in self._blocks.values():
            if block.kind == kind and block.told and not block.covered:
                block.covered = True
                return True
        return False
