"""What an agent says and thinks in one session: fragments, then the whole part, which adds what they missed."""

# MERGED DOC: """One session of OpenCode: what its messages and their parts say."""
from collections.abc import Mapping
from typing import Any

import msgspec

from agent_mux.facts import (
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
from agent_mux_adapters._dialects.tolerant import mapping, need_text, text
from agent_mux_adapters.opencode.tools import McpToolNames, OpencodeToolCalls
from agent_mux_adapters.opencode.usage import OpencodeUsage, read_usage

Kind = type[TextDelta] | type[ThinkingDelta]
_KINDS: dict[str, Kind] = {"text": TextDelta, "reasoning": ThinkingDelta}
_ENDS: dict[Kind, Fact] = {TextDelta: TextEnd(), ThinkingDelta: ThinkingEnd()}


class StreamedParts:
    """The parts that are not complete yet."""

    __slots__ = ("_kinds", "_open", "_texts")

    def __init__(self) -> None:
        self._kinds: dict[str, Kind] = {}
        self._texts: dict[str, list[str]] = {}
        self._open: Kind | None = None
        """What is being said now."""

    def fragment(self, part_id: str, text: str) -> tuple[Fact, ...]:
        """A fragment: the hot path."""
        kind = self._kinds.get(part_id)
        if kind is None:
            return (Ignored("message.part.delta", "of a part that did not begin here; it is told whole"),)
        self._texts[part_id].append(text)
        self._open = kind
        return (kind(text),)

    def part(self, part_id: str, native: str, text: str, *, complete: bool) -> tuple[Fact, ...]:
        """The part as it is now."""
        kind = self._kinds.setdefault(part_id, _KINDS[native])
        emitted = "".join(self._texts.get(part_id, ()))
        rest = text[len(emitted) :] if text.startswith(emitted) else ""
        self._texts[part_id] = [emitted + rest]
        facts: tuple[Fact, ...] = (kind(rest),) if rest else ()
        if complete and not text.startswith(emitted) and emitted.rstrip() != text.rstrip():
            facts = (Note("opencode streamed a text that differs from the complete one", "warn"),)
        self._open = kind if rest else self._open
        if complete:
            del self._kinds[part_id]
            facts = *facts, *self.end_open()
        return facts or (Ignored(f"part:{native}", "its fragments tell it"),)

    def end_open(self) -> tuple[Fact, ...]:
        """Something else begins: what is being said is over, though its part may be completed later."""
        kind, self._open = self._open, None
        return (_ENDS[kind],) if kind is not None else ()

    def discard(self) -> None:
        """What is not complete never will be."""
        self._kinds.clear()
        self._texts.clear()
        self._open = None


IGNORED_PARTS = {
    "agent": "part of a prompt",
    "compaction": "told when it is done",
    "file": "part of a prompt, or of what a tool read",
    "patch": "told by the tools",
    "retry": "session.status tells it",
    "snapshot": "OpenCode's own, for undoing",
    "subtask": "part of a prompt",
}


class OpencodeMessage(msgspec.Struct):
    """An answer of the model, as far as it is known."""

    id: str
    is_summary: bool
    finish: str = ""
    error: Any = None
    structured: Any = None
    is_complete: bool = False


class OpencodeSession:
    """The main session of a run, or that of a sub-agent."""

    def __init__(self, session_id: str, cwd: str, names: McpToolNames, usage: tuple[OpencodeUsage, ...]) -> None:
        """`spent`: what all threads of the run use together, the run's first."""
        self.id = session_id
        self.calls = OpencodeToolCalls(cwd, names)
        self.streamed = StreamedParts()
        self.usage = OpencodeUsage()
        self.message: OpencodeMessage | None = None
        """The answer that comes, or came last."""
        self.summary = ""
        """What the context was compacted to."""
        self.model = ""
        self.has_progressed = False
        """A model call succeeded, since somebody asked last; making a summary does not count."""
        self._totals = usage
        self._roles: dict[str, str] = {}

    def count_usage_for(self, *usage: OpencodeUsage) -> None:
        """From now on, what is used counts for these."""
        self._totals = usage

    def message_updated(self, info: Mapping[str, Any]) -> tuple[Fact, ...]:
        """A message began, changed or is complete. Raises `WrongShapeError` where it is none."""
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
        return (Ignored(kind, "its parts tell it"),)

    def part_updated(self, part: Mapping[str, Any]) -> tuple[Fact, ...] | None:
        """A part of a message. None when it is of no known type; raises `WrongShapeError` when it is misshapen."""
        kind = text(part.get("type"))
        match kind:
            case "text" | "reasoning":
                return self._text_part(kind, part)
            case "tool":
                return self._tool_part(part)
            case "step-start":
                return (StepBegin(),)
            case "step-finish":
                return self._step_finished(part)
        return (Ignored(f"part:{kind}", IGNORED_PARTS[kind]),) if kind in IGNORED_PARTS else None

    def is_prompt_text(self, part: Mapping[str, Any]) -> bool:
        """The text of a prompt, or of a message for the turn that runs."""
        is_text = part.get("type") == "text" and part.get("synthetic") is not True
        return is_text and self._roles.get(text(part.get("messageID"))) == "user"

    def mark_summary(self, message_id: str) -> None:
        """What this message says is no answer: the context is compacted to it."""
        self._roles[message_id] = "summary"

    def _text_part(self, kind: str, part: Mapping[str, Any]) -> tuple[Fact, ...]:
        part_id, time = need_text(part, "id"), mapping(part.get("time"))
        # Only answers say when they began; OpenCode's own additions to a conversation are marked.
        role = self._roles.get(text(part.get("messageID")), "assistant" if time else "user")
        if role == "user" or part.get("synthetic") is True:
            return (Ignored(f"part:{kind}", "our own side"),)
        if role == "summary":
            self.summary = text(part.get("text")) if kind == "text" else self.summary
            return (Ignored(f"part:{kind}", "the summary is told when the context is compacted"),)
        return self.streamed.part(part_id, kind, text(part.get("text")), complete="end" in time)

    def _tool_part(self, part: Mapping[str, Any]) -> tuple[Fact, ...] | None:
        facts = self.calls.read_part(part)
        begins = any(isinstance(fact, ToolBegin | ToolReady | McpBegin | SubagentBegin) for fact in facts)
        return (*self.streamed.end_open(), *facts) if begins else facts or None

    def _step_finished(self, part: Mapping[str, Any]) -> tuple[Fact, ...]:
        call_usage, usd = read_usage(part)
        self.has_progressed = self.has_progressed or self._roles.get(text(part.get("messageID"))) != "summary"
        for totals in (self.usage, *self._totals):
            totals.add(call_usage, usd)
        run_record = self._totals[0].record
        cost = (RunCost(run_record),) if run_record is not None else ()
        return call_usage, *cost, StepDone()
