"""Native lines to facts, by line type. Both modes print these lines."""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from agent_mux.sdk import facts
from agent_mux.sdk.codec import CodecContext, Exit
from agent_mux_adapters._dialects.pi.flavor import Flavor
from agent_mux_adapters._dialects.pi.messages import PiMessages
from agent_mux_adapters._dialects.pi.notices import (
    IGNORED_LINES,
    compaction_facts,
    fallback_model,
    ignored_role,
    notice_of,
    summary_retry,
)
from agent_mux_adapters._dialects.pi.subagents import PiSubagents, ignored_event
from agent_mux_adapters._dialects.pi.tools import PiToolCalls
from agent_mux_adapters._dialects.pi.turns import PiTurns
from agent_mux_adapters._dialects.pi.wire import UPDATE_START, AgentEnd, decode_agent_end, decode_update
from agent_mux_adapters._dialects.tolerant import as_json, mapping, rows, text

Facts = tuple[facts.Fact, ...]
_AGENT_END_START = b'{"type":"agent_end",'
_ASSISTANT = "assistant"


class PiReader:
    """The reader of one run's lines, with the state that spans lines."""

    def __init__(self, context: CodecContext, flavor: Flavor) -> None:
        self.calls = PiToolCalls(flavor, context)
        self.turns = PiTurns(marks_final_end=flavor.marks_final_end)
        self._subagents = PiSubagents(flavor, context, self.turns.usage_totals)
        self.calls.on_background_job = self._subagents.begin_background
        self._context = context
        self._messages = PiMessages(self.calls)
        self._ignored_lines = {**IGNORED_LINES, **flavor.ignored_lines}
        self._stderr_lines: list[str] = []
        self._session_id = ""
        """The id of the session; empty until the agent reports it."""
        self._model = ""
        self._readers: Mapping[str, Callable[[Mapping[str, Any]], Facts | None]] = {
            "session": self._session,
            "agent_start": lambda _: self.turns.begin(),
            "agent_end": lambda line: self._end_attempt(_agent_end_of(line)),
            "agent_settled": lambda _: self.turns.settle(),
            "turn_start": lambda _: (facts.StepBegin(),),
            "turn_end": self._turn_end,
            "message_start": self._message_start,
            "message_end": self._message_end,
            "tool_execution_start": self.calls.execution_started,
            "tool_execution_update": self.calls.execution_updated,
            "tool_execution_end": lambda line: (
                *self.calls.execution_ended(line),
                *self._subagents.read_fetched_reports(line),
            ),
            "auto_retry_start": self.turns.begin_retry,
            "auto_retry_end": self.turns.end_retry,
            "compaction_start": self._begin_compaction,
            "compaction_end": self._end_compaction,
            "auto_compaction_start": self._begin_compaction,
            "auto_compaction_end": self._end_compaction,
            "summarization_retry_scheduled": summary_retry,
            "extension_error": self._extension_failed,
            "notice": self._notice,
            "subagent_lifecycle": self._subagents.read_lifecycle,
            "subagent_event": self._subagents.read_event,
            "retry_fallback_applied": fallback_model,
        }

    # -- the lines

    def update(self, line: bytes) -> Facts | None:
        """Read a line that begins as `message_update` does (the hot path); return None if it has another shape."""
        event = decode_update(line)
        if event is None:
            return None
        if event.type == "text_delta":
            return self._messages.fragment(event, "text") or (facts.Ignored("message_update/text_delta", "no text"),)
        return self._messages.update(event, line)

    def read_bulky(self, line: bytes) -> Facts | None:
        """Read `agent_end`, or a fragment inside a sub-agent, without decoding the whole line; None for others."""
        silent = ignored_event(line)
        if silent is not None:
            return (silent,)
        end = decode_agent_end(line) if line.startswith(_AGENT_END_START) else None
        return self._end_attempt(end) if end is not None else None

    def read_object(self, native: Mapping[str, Any], line: bytes) -> Facts:
        """Read a decoded line; unknown ones become `Unknown`."""
        kind = text(native.get("type"))
        if kind == "message_update":
            plain = as_json(native).encode("utf-8", "replace")
            event = decode_update(plain) if plain.startswith(UPDATE_START) else decode_update(_reordered(native))
            emitted = self._messages.update(event, plain) if event is not None else None
        elif kind in self._ignored_lines:
            emitted = (facts.Ignored(kind, self._ignored_lines[kind]),)
        else:
            reader = self._readers.get(kind)
            emitted = reader(native) if reader is not None else None
            emitted = (facts.Ignored(kind, "nothing new"),) if emitted == () else emitted
        return emitted if emitted is not None else unknown_line(kind, line)

    def read_stderr(self, line: bytes) -> Facts:
        """Read a line of standard error. Lines outside a turn are kept: they may explain a failed start."""
        line_text = line.decode("utf-8", "replace")
        if not self._session_id or not self.turns.is_running:
            self._stderr_lines.append(line_text)
        return (facts.LogLine(line_text, "stderr"),)

    def finish(self, ending: Exit) -> Facts:
        """Return the facts that follow from the exit, if the agent printed no end of its turn."""
        return self.turns.finish(self._stderr_lines, ending.code)

    def name_session(
        self, session_id: str, *, model: str | None = None, forked_from: str | None = None, prior_turns: int = 0
    ) -> Facts:
        """Emit the session's id; only the first call has an effect."""
        if self._session_id or not session_id:
            return ()
        self._session_id = session_id
        context = self._context
        forked = context.fork_session_id or forked_from
        resumed = context.session_id is not None
        self._model = model or ""
        return (facts.SessionKnown(session_id, resumed, forked, prior_turns, model),)

    def _update_model(self, message: Mapping[str, Any]) -> Facts:
        """Emit the model of an answer when it differs from the one reported before."""
        model = model_name(message.get("provider"), message.get("model"))
        if not self._session_id or not model or model == self._model:
            return ()
        self._model = model
        return (facts.SessionKnown(self._session_id, model=model),)

    # -- line types

    def _end_attempt(self, end: AgentEnd) -> Facts:
        emitted = self.turns.end_attempt(end)
        return (*self._subagents.close_unreported(), *emitted) if not self.turns.is_running else emitted

    def _session(self, line: Mapping[str, Any]) -> Facts:
        return self.name_session(text(line.get("id")), forked_from=_id_in(text(line.get("parentSession"))))

    def _message_start(self, line: Mapping[str, Any]) -> Facts | None:
        role = text(mapping(line.get("message")).get("role"))
        if role == _ASSISTANT:
            self._messages.begin()
            return (facts.Ignored("message_start/assistant", "its fragments follow"),)
        return ignored_role("message_start", role)

    def _message_end(self, line: Mapping[str, Any]) -> Facts | None:
        message = mapping(line.get("message"))
        role = text(message.get("role"))
        if role != _ASSISTANT:
            return self._subagents.read_reports(message) or ignored_role("message_end", role)
        # Each model call counts, also one that answered with nothing.
        empty = (facts.StepBegin("generation"),) if message.get("stopReason") == "stop" and _is_empty(message) else ()
        emitted = (
            *empty,
            *self._messages.end(message.get("content"), is_broken=_is_broken(message)),
            *self.turns.record_message(message),
        )
        return *emitted, *self._update_model(message)

    def _turn_end(self, line: Mapping[str, Any]) -> Facts:
        if _is_broken(mapping(line.get("message"))):
            return (
                facts.Ignored("turn_end", "a model call that failed; its repetition or the end of the turn follows"),
            )
        return (facts.StepDone(),)

    def _begin_compaction(self, _: Mapping[str, Any]) -> Facts:
        self.turns.begin_compaction()
        return ()

    def _end_compaction(self, line: Mapping[str, Any]) -> Facts:
        self.turns.end_compaction(will_retry=line.get("willRetry") is True)
        return compaction_facts(line, in_turn=self.turns.is_running)

    def _notice(self, line: Mapping[str, Any]) -> Facts:
        if line.get("source") == "compaction" and line.get("level") == "warning":
            self.turns.give_up_compaction()
        return notice_of(line)

    def _extension_failed(self, line: Mapping[str, Any]) -> Facts:
        path, error = text(line.get("extensionPath")), text(line.get("error"))
        if not self.turns.is_running:
            return (facts.Note(f"extension {path}: {error}", "warn"),)
        return (facts.PluginFailed(path, path.rpartition("/")[2] or path, error),)


def _is_broken(message: Mapping[str, Any]) -> bool:
    """Return whether the model call of this message failed."""
    return message.get("stopReason") == "error"


def _is_empty(message: Mapping[str, Any]) -> bool:
    """Return whether a message has no block with content."""
    return not any(
        block.get("type") == "toolCall" or text(block.get("text")) or text(block.get("thinking"))
        for block in rows(message.get("content"))
    )


def model_name(provider: Any, model: Any) -> str:
    """Return the name as the agent's flags take it: `provider/model`."""
    return "/".join(filter(None, (text(provider), text(model))))


def unknown_line(kind: str, line: bytes) -> Facts:
    """Return the fact for a line of an unknown type or shape."""
    return (facts.Unknown(kind or "untyped", line.decode("utf-8", "replace")),)


def _agent_end_of(line: Mapping[str, Any]) -> AgentEnd:
    return AgentEnd("agent_end", line.get("willRetry", msgspec.UNSET), line.get("isTerminal", msgspec.UNSET))


def _reordered(native: Mapping[str, Any]) -> bytes:
    return as_json({"type": "message_update", **native}).encode("utf-8", "replace")


def _id_in(path: str) -> str | None:
    """Return the id in a path that ends with `<time>_<id>.jsonl`."""
    return path.rpartition("/")[2].removesuffix(".jsonl").partition("_")[2] or None
