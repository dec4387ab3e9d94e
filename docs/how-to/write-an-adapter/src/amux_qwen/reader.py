"""The reader of Qwen Code's lines, as far as they differ from the dialect.

Every `assistant` line has its own id, so ids do not distinguish model calls; the tokens of a call are in its last
`assistant` line; block numbers restart at 0 when the kind changes; an API error is printed as text of the model.
"""

from collections.abc import Callable, Mapping
from typing import Any

from agent_mux.sdk import facts
from agent_mux.sdk.codec import CodecContext
from agent_mux_adapters._dialects.stream_json.codec import StreamJsonInput
from agent_mux_adapters._dialects.stream_json.messages import (
    MessageReader,
    MessageReaders,
    in_subagent,
    parent_of,
    without_ignored,
)
from agent_mux_adapters._dialects.stream_json.tools import StreamJsonCalls, StreamJsonSubagents, ToolResultBlock
from agent_mux_adapters._dialects.stream_json.wire import StreamDelta
from agent_mux_adapters._dialects.tolerant import kind_of, mapping, need_mapping, need_text, rows, text, whole
from amux_qwen.meter import Meter, counts_of, usage_facts
from amux_qwen.outcome import API_ERROR, closing_fact
from amux_qwen.tools import TOOLS

Facts = tuple[facts.Fact, ...]
LAUNCHED = "Background agent launched"
OWN_EVENTS = frozenset({"goal_state", "tool_progress"})
IGNORED: Mapping[str, str] = {
    "task_started": "the call of the sub-agent is reported",
    "session_start": "only for display",
    "session_end": "only for display",
    "worktree_restored": "only for display",
}
_ERROR = (facts.Ignored("stream_event/content_block_delta", "an API error: the closing message contains it"),)


class QwenMessages(MessageReader):
    """Reads the messages of one agent."""

    _in_call = False
    """Whether complete lines of a model call were read, but not its last one."""

    def fragment(self, index: int, delta: StreamDelta) -> Facts | None:
        """Return the facts of one delta (the hot path)."""
        if delta.type == "text_delta" and delta.text is not None and delta.text.startswith(API_ERROR):
            return _ERROR
        return super().fragment(index, delta)

    def event(self, event: Mapping[str, Any], line: Mapping[str, Any]) -> Facts:
        """Return the facts of a stream event."""
        return () if text(event.get("type")) in OWN_EVENTS else super().event(event, line)

    def whole_message(self, message: Mapping[str, Any]) -> Facts:
        """Return the facts of an `assistant` line."""
        blocks = [block for block in rows(message.get("content")) if not _is_api_error(block)]
        read = super().whole_message({**message, "content": blocks})
        usage = mapping(message.get("usage"))
        self.count(usage)
        self._in_call = not any(counts_of(usage))
        return read if self.is_streaming else (*read, *self.spent())

    def is_another(self, message_id: str) -> bool:  # noqa: ARG002  # every line has a different one
        """Return whether a complete line belongs to another model call than the line before."""
        return not (self.is_streaming or self._in_call)


class BackgroundDelegation(StreamJsonSubagents):
    """Tracks sub-agents, which by default run in the background; the result of their call only reports the launch."""

    def result(self, result: ToolResultBlock) -> Facts:
        """Return the facts of a call's result; none when it only reports the launch."""
        if result.shown.startswith(LAUNCHED):
            return ()
        return super().result(result)

    def notified(self, line: Mapping[str, Any]) -> Facts:
        """Return the end of a background sub-agent (`system/task_notification`), which does not contain its report."""
        data = mapping(line.get("data"))
        call_id, status = text(data.get("tool_use_id")), text(data.get("status"))
        if call_id not in self._waiting:
            return (facts.Ignored("system/task_notification", "a task that is not a sub-agent, or that has ended"),)
        self._waiting.discard(call_id)
        if status == "completed":
            return (facts.SubagentDone(call_id),)
        return (facts.SubagentDone(call_id, error=f"the sub-agent ended as {status or 'unknown'}"),)


class Reader:
    """Reads the lines of one run, except for the control protocol and the hot path of the codec."""

    def __init__(self, context: CodecContext, conversation: StreamJsonInput) -> None:
        self._context = context
        self._conversation = conversation
        continues = bool(context.session_id or context.fork_session_id)
        self._meter = Meter(is_new=context.prompt is not None and not continues)
        self._delegation = BackgroundDelegation()
        self._calls = calls = StreamJsonCalls(TOOLS, self._delegation)
        self.main = QwenMessages(calls, self._meter.model_call, is_main=True)
        self._scopes = MessageReaders(
            self.main, lambda: QwenMessages(calls, lambda raw: usage_facts(counts_of(raw)), is_main=False)
        )
        self._retry_announced = False
        self.has_closed = False
        """Whether a turn has ended with its closing message."""
        self._readers: Mapping[str, Callable[[Mapping[str, Any]], Facts]] = {
            "system/init": self._init,
            "system/retry": self._retry,
            "system/task_notification": self._delegation.notified,
            "system/model_fallback": self._fallback,
            "stream_event": self._scopes.stream_event,
            "assistant": self._scopes.assistant,
            "user": self._user,
            "result": self._result,
        }

    def read(self, line: Mapping[str, Any]) -> Facts | None:
        """Return the facts of a line, at least one, or None for an unknown type. Raise `WrongShapeError`."""
        reader = self._readers.get(text(line.get("type"))) or self._readers.get(kind_of(line))
        if reader is not None:
            return without_ignored(reader(line))
        why = IGNORED.get(text(line.get("subtype"))) if line.get("type") == "system" else None
        return (facts.Ignored(kind_of(line), why),) if why else None

    def finish(self) -> Facts:
        """Return the facts at the end of the output: none."""
        return ()

    # -- line types

    def _init(self, line: Mapping[str, Any]) -> Facts:
        self._calls.cwd = text(line.get("cwd"))
        self._calls.permitted = line.get("permission_mode") == "yolo"
        session_id, model = need_text(line, "session_id"), text(line.get("model")) or None
        resumed = self._context.session_id is not None
        return (facts.SessionKnown(session_id, resumed, self._context.fork_session_id, model=model), facts.TurnBegin())

    def _user(self, line: Mapping[str, Any]) -> Facts:
        content = need_mapping(line, "message").get("content")
        self._meter.has_unreported |= bool(parent_of(line))
        results = self._calls.results(content, None)
        nothing = facts.Ignored("user", "a prompt, or text that the agent injected")
        return in_subagent(parent_of(line), results) or (nothing,)

    def _retry(self, line: Mapping[str, Any]) -> Facts:
        """Return the retry when the agent begins to wait; ignore the line without numbers at the next attempt."""
        data = mapping(line.get("data"))
        self._meter.has_unreported = True
        announced, self._retry_announced = self._retry_announced, "attempt" in data
        if announced and "attempt" not in data:
            return (facts.Ignored("system/retry", "the announced attempt begins"),)
        attempt, most, delay = (whole(data.get(field)) for field in ("attempt", "maxRetries", "delayMs"))
        return (facts.Retrying(attempt or 1, most, text(data.get("reason")) or "retry", delay),)

    def _fallback(self, line: Mapping[str, Any]) -> Facts:
        data = mapping(line.get("data"))
        names = text(data.get("fromModel")), text(data.get("toModel"))
        return (facts.Note(f"the agent goes on with another model: {' -> '.join(names)}", "warn"),)

    def _result(self, line: Mapping[str, Any]) -> Facts:
        if parent_of(line):
            return (facts.Ignored(kind_of(line), "the end of a sub-agent: the result of its call reports it"),)
        self.has_closed = True
        self._conversation.prompt_answered()
        return (*self._meter.turn(mapping(line.get("usage"))), closing_fact(line))


def _is_api_error(block: Mapping[str, Any]) -> bool:
    return text(block.get("text")).startswith(API_ERROR)
