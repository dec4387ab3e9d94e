"""The messages of one session: text and thinking, tool calls, steps, and their usage."""

from collections.abc import Mapping
from typing import Any

import msgspec

from agent_mux.sdk.facts import (
    Fact,
    Ignored,
    McpBegin,
    Note,
    RunCost,
    SessionKnown,
    StepBegin,
    StepDone,
    SubagentBegin,
    TextDelta,
    TextEnd,
    ThinkingDelta,
    ThinkingEnd,
    ToolBegin,
    ToolReady,
)
from agent_mux.sdk.streamed_text import missing_text
from agent_mux_adapters._dialects.tolerant import mapping, need_text, text
from agent_mux_adapters.opencode.tools import McpToolNames, OpencodeToolCalls
from agent_mux_adapters.opencode.usage import OpencodeUsage, read_usage

Kind = type[TextDelta] | type[ThinkingDelta]
_KINDS: dict[str, Kind] = {"text": TextDelta, "reasoning": ThinkingDelta}
_ENDS: dict[Kind, Fact] = {TextDelta: TextEnd(), ThinkingDelta: ThinkingEnd()}
IGNORED_PARTS = {
    "agent": "part of a prompt",
    "compaction": "emitted when it is done",
    "file": "part of a prompt, or of what a tool read",
    "patch": "emitted from the tools",
    "retry": "emitted from session.status",
    "snapshot": "OpenCode's own, for undoing",
    "subtask": "part of a prompt",
}


class StreamedParts:
    """The parts of text and thinking that are not complete yet. The complete part supplies what its deltas did not."""

    __slots__ = ("_kinds", "_open", "_texts")

    def __init__(self) -> None:
        self._kinds: dict[str, Kind] = {}
        self._texts: dict[str, list[str]] = {}
        self._open: Kind | None = None
        """The kind of text that is open for the consumer; None between texts."""

    def fragment(self, part_id: str, text: str) -> tuple[Fact, ...]:
        """Emit a delta of a part (the hot path)."""
        kind = self._kinds.get(part_id)
        if kind is None:
            return (Ignored("message.part.delta", "the start of its part was not seen; the complete part follows"),)
        self._texts[part_id].append(text)
        self._open = kind
        return (kind(text),)

    def part(self, part_id: str, native: str, text: str, *, complete: bool) -> tuple[Fact, ...]:
        """Read the part in its current state; emit what the deltas did not contain."""
        kind = self._kinds.setdefault(part_id, _KINDS[native])
        emitted = "".join(self._texts.get(part_id, ()))
        missing = missing_text(text, emitted)
        rest = missing or ""
        self._texts[part_id] = [emitted + rest]
        facts: tuple[Fact, ...] = (kind(rest),) if rest else ()
        if complete and missing is None and emitted.rstrip() != text.rstrip():
            facts = (Note("opencode streamed a text that differs from the complete one", "warn"),)
        self._open = kind if rest else self._open
        if complete:
            del self._kinds[part_id]
            facts = *facts, *self.end_open()
        return facts or (Ignored(f"part:{native}", "emitted from its fragments"),)

    def end_open(self) -> tuple[Fact, ...]:
        """End the open text because something else begins; its part may be completed later."""
        kind, self._open = self._open, None
        return (_ENDS[kind],) if kind is not None else ()

    def discard(self) -> None:
        """Forget incomplete parts at the end of a turn."""
        self._kinds.clear()
        self._texts.clear()
        self._open = None


class OpencodeMessage(msgspec.Struct):
    """An answer of the model, as far as it was received."""

    id: str
    is_summary: bool
    finish: str = ""
    error: Any = None
    structured: Any = None
    is_complete: bool = False


class OpencodeSession:
    """The main session of a run, or that of a sub-agent."""

    def __init__(self, session_id: str, cwd: str, names: McpToolNames, usage: tuple[OpencodeUsage, ...]) -> None:
        """Start reading a session. `usage`: what all sessions of the run use together, first for the run."""
        self.id = session_id
        self.calls = OpencodeToolCalls(cwd, names)
        self.streamed = StreamedParts()
        self.usage = OpencodeUsage()
        self.message: OpencodeMessage | None = None
        """The current answer, or else the last one."""
        self.summary = ""
        """The summary of the last compaction."""
        self.model = ""
        self.has_progressed = False
        """Whether a model call other than a summary succeeded since the last error about the context's size."""
        self._totals = usage
        self._roles: dict[str, str] = {}
        self._is_step_empty = False
        """Whether the model has answered with nothing so far in this step."""

    def count_usage_for(self, *usage: OpencodeUsage) -> None:
        """Count further usage for these totals."""
        self._totals = usage

    def message_updated(self, info: Mapping[str, Any]) -> tuple[Fact, ...]:
        """Read a message that began, changed or is complete. Raises `WrongShapeError` for another shape."""
        message_id, role = need_text(info, "id"), need_text(info, "role")
        kind = f"message.updated:{role}"
        is_summary = info.get("summary") is True
        self._roles[message_id] = "summary" if is_summary else role
        if role != "assistant":
            return (Ignored(kind, "our own side"),)
        if self.message is None or self.message.id != message_id:
            self.message = OpencodeMessage(message_id, is_summary)
        self.message.finish = text(info.get("finish")) or self.message.finish
        self.message.error = info.get("error") or self.message.error
        self.message.structured = info.get("structured", self.message.structured)
        self.message.is_complete = self.message.is_complete or "completed" in mapping(info.get("time"))
        model = f"{text(info.get('providerID'))}/{text(info.get('modelID'))}".strip("/")
        if model and model != self.model:
            self.model = model
            return (SessionKnown(self.id, model=model),)
        return (Ignored(kind, "emitted from its parts"),)

    def part_updated(self, part: Mapping[str, Any]) -> tuple[Fact, ...] | None:
        """Read a part of a message; return None for an unknown type. Raises `WrongShapeError` for another shape."""
        kind = text(part.get("type"))
        if kind == "tool" or text(part.get("text")):
            self._is_step_empty = False
        match kind:
            case "text" | "reasoning":
                return self._text_part(kind, part)
            case "tool":
                return self._tool_part(part)
            case "step-start":
                self._is_step_empty = True
                return (StepBegin(),)
            case "step-finish":
                return self._step_finished(part)
        return (Ignored(f"part:{kind}", IGNORED_PARTS[kind]),) if kind in IGNORED_PARTS else None

    def is_prompt_text(self, part: Mapping[str, Any]) -> bool:
        """Return whether a part is the text of a prompt, or of a message into the running turn."""
        is_text = part.get("type") == "text" and part.get("synthetic") is not True
        return is_text and self._roles.get(text(part.get("messageID"))) == "user"

    def mark_summary(self, message_id: str) -> None:
        """Mark a message as the summary of a compaction, which is not an answer."""
        self._roles[message_id] = "summary"

    def _text_part(self, kind: str, part: Mapping[str, Any]) -> tuple[Fact, ...]:
        part_id, time = need_text(part, "id"), mapping(part.get("time"))
        # Only answers have a start time; texts that OpenCode inserts are marked as synthetic.
        role = self._roles.get(text(part.get("messageID")), "assistant" if time else "user")
        if role == "user" or part.get("synthetic") is True:
            return (Ignored(f"part:{kind}", "our own side"),)
        if role == "summary":
            self.summary = text(part.get("text")) if kind == "text" else self.summary
            return (Ignored(f"part:{kind}", "the summary is emitted with the compaction"),)
        return self.streamed.part(part_id, kind, text(part.get("text")), complete="end" in time)

    def _tool_part(self, part: Mapping[str, Any]) -> tuple[Fact, ...] | None:
        facts = self.calls.read_part(part)
        begins = any(isinstance(fact, ToolBegin | ToolReady | McpBegin | SubagentBegin) for fact in facts)
        return (*self.streamed.end_open(), *facts) if begins else facts or None

    def _step_finished(self, part: Mapping[str, Any]) -> tuple[Fact, ...]:
        call_usage, usd = read_usage(part)
        is_summary = self._roles.get(text(part.get("messageID"))) == "summary"
        self.has_progressed = self.has_progressed or not is_summary
        # OpenCode calls the model again after such an answer, without limit: each call must count.
        empty = (StepBegin("generation"),) if self._is_step_empty and not is_summary else ()
        for totals in (self.usage, *self._totals):
            totals.add(call_usage, usd)
        run_record = self._totals[0].record
        cost = (RunCost(run_record),) if run_record is not None else ()
        return *empty, call_usage, *cost, StepDone()
