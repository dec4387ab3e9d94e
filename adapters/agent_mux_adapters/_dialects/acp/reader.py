"""Reading `session/update`: messages, thoughts, tool calls, plans and usage."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from agent_mux.sdk.facts import (
    ContextFilling,
    Fact,
    Failure,
    Ignored,
    ImageProduced,
    InSubagent,
    Note,
    StepBegin,
    TextDelta,
    TextEnd,
    ThinkingDelta,
    ThinkingEnd,
)
from agent_mux_adapters._dialects.acp.tools import AcpTools, unchanged_call
from agent_mux_adapters._dialects.acp.turns import AcpSession
from agent_mux_adapters._dialects.acp.usage import default_usage
from agent_mux_adapters._dialects.acp.wire import MESSAGE, THOUGHT, USER, Chunk, text_of
from agent_mux_adapters._dialects.tolerant import mapping, text, whole

FILLING = 0.8
"""Share of the context window at which the context warning is due. See docs/spec/events.md, section 19."""
AFTER_TURN = "after the end of the turn"
SILENT: Mapping[str, str] = {
    "available_commands_update": "commands for a person to type",
    "config_option_update": "a setting for a user interface",
    "current_mode_update": "a setting for a user interface",
    "plan_removed": "a plan for a user interface",
    "session_info_update": "the title of the session",
}
Facts = tuple[Fact, ...]


class AcpReader:
    """Reads the updates of the main agent, or of one sub-agent."""

    def __init__(self, session: AcpSession, tools: AcpTools, *, is_inside: bool = False) -> None:
        self._session = session
        self._is_inside = is_inside
        """Whether this reader belongs to a sub-agent."""
        self._usage_total = session.usage_total
        self._quirks = session.quirks
        self.tools = self._tools = tools
        self._inner: dict[str, AcpReader] = {}
        """Readers of the sub-agents, by the call that delegated to them."""
        self._prefixes = tuple(session.quirks.asides)
        self._message_id: str | None = None
        self._thought_id: str | None = None
        self._in_message = self._in_thought = False
        self._warned = False
        self.failure: Failure | None = None
        """The failure that the agent reported as a message of its own."""
        self.spoke = False
        """Whether the current turn had a message or a tool call."""
        self._kinds: dict[str, Callable[[Mapping[str, Any]], Facts]] = {
            MESSAGE: self._message,
            THOUGHT: self._thought,
            USER: lambda _: (Ignored(USER, "our own prompt"),),
            "tool_call": self._tool_call,
            "tool_call_update": self._tool_call_update,
            "plan": self._plan,
            "plan_update": self._plan,
            "usage_update": self._usage,
        }

    # -- the hot path

    def fragment(self, chunk: Chunk) -> Facts | None:
        """Return the fact of a text fragment; None when the line needs the full parse."""
        text_ = chunk.content.text
        if chunk.meta is not None or not text_ or chunk.content.type != "text":
            return None
        if chunk.kind == MESSAGE:
            if self._in_message and chunk.message_id == self._message_id and not text_.startswith(self._prefixes):
                return (TextDelta(text_),)
            return self._message_fragment(text_, chunk.message_id)
        if chunk.kind != THOUGHT:
            return None
        if self._in_thought and chunk.message_id == self._thought_id and self._tools.is_idle:
            return (ThinkingDelta(text_),)
        return self._thought_fragment(text_, chunk.message_id)

    # -- all updates

    def read(self, session_id: str, update: Mapping[str, Any]) -> Facts | None:
        """Return the facts of one update; None when its kind is unknown."""
        kind, session = text(update.get("sessionUpdate")), self._session
        if kind in SILENT or kind in self._quirks.ignored:
            if session.in_history and kind == self._quirks.history_ends_with:
                session.in_history = False
            return (Ignored(kind, SILENT.get(kind) or self._quirks.ignored[kind]),)
        handle = self._kinds.get(kind)
        if handle is None:
            return None
        if kind != "usage_update" and self._is_history(session_id, kind):
            session.count_replayed(session_id, kind, update.get("messageId"))
            return (Ignored(kind, "history before this run"),)
        if session.id not in (None, session_id):
            return (Ignored(kind, "another session"),)
        if kind != "usage_update" and not session.in_turn:
            return self._late(kind, update)
        reader, attribute = self.scope_of(update)
        return handle(update) if reader is self else attribute(reader.read_inside(kind, update))

    def _is_history(self, session_id: str, kind: str) -> bool:
        session = self._session
        if session.id is None and not session.has_client_side:
            # Only a resumed session begins with a message of the user.
            return kind == USER or session.replayed_session() is not None
        return session.id is None or (session.in_history and session.id == session_id)

    def _late(self, kind: str, update: Mapping[str, Any]) -> Facts:
        message = text_of(update.get("content")) if kind == MESSAGE else ""
        if self._prefixes and message.startswith(self._prefixes):
            aside = self._aside_fact(message)
            return (Note(aside.message, "warn") if isinstance(aside, Failure) else aside,)
        if message.strip():
            return (Note(f"{self._quirks.agent} sent a message after the end of the turn: {message}"),)
        return (Ignored(kind, AFTER_TURN),)

    def turn_over(self) -> Facts:
        """Close the turn: clear its state and end its tool calls."""
        self._message_id = self._thought_id = self.failure = None
        self._in_message = self._in_thought = self.spoke = False
        self._inner.clear()
        return self._tools.turn_over()

    # -- sub-agents

    def scope_of(self, shown: Mapping[str, Any]) -> tuple["AcpReader", Callable[[Iterable[Fact]], Facts]]:
        """Return the reader for an update or call, and the function that attributes its facts to the sub-agent."""
        parent = self._quirks.parent_call_of(mapping(shown.get("_meta")))
        call = self._tools.call(parent) if parent else None
        if call is None or not call.is_subagent:
            return self, tuple
        inner = self._inner.get(parent)
        if inner is None:
            inner = self._inner[parent] = AcpReader(self._session, self._tools.inner(), is_inside=True)
        return inner, lambda facts: _inside(parent, facts)

    def read_inside(self, kind: str, update: Mapping[str, Any]) -> Facts:
        """Read an update of a sub-agent with this reader."""
        return self._kinds[kind](update)

    # -- messages and thoughts

    def _message(self, update: Mapping[str, Any]) -> Facts:
        content = mapping(update.get("content"))
        message, usage = text_of(content), default_usage(mapping(update.get("_meta")))
        facts = self._message_fragment(message, _id_of(update)) if message else self._other_content(content)
        if usage is not None:
            facts = (*facts, self._usage_total.add_call(usage, inside=self._is_inside))
        return facts or (Ignored(MESSAGE, "empty"),)

    def _thought(self, update: Mapping[str, Any]) -> Facts:
        thought = text_of(update.get("content"))
        return self._thought_fragment(thought, _id_of(update)) if thought else (Ignored(THOUGHT, "empty"),)

    def _message_fragment(self, message: str, message_id: str | None) -> Facts:
        if self._prefixes and message.startswith(self._prefixes):
            return self._aside(message)
        facts = self._begin_step()
        if self._in_message and message_id != self._message_id:
            facts = (*facts, TextEnd())
        self._in_message, self._message_id, self._thought_id = True, message_id, None
        self._in_thought = False
        return *facts, TextDelta(message)

    def _thought_fragment(self, thought: str, thought_id: str | None) -> Facts:
        facts = self._begin_step()
        if self._thought_id is not None and thought_id not in (None, self._thought_id):
            facts = (*facts, ThinkingEnd())
        self._in_message, self._thought_id, self._in_thought = False, thought_id, True
        return *facts, ThinkingDelta(thought)

    def _aside(self, message: str) -> Facts:
        aside = self._aside_fact(message)
        if isinstance(aside, Failure):
            self.failure = self.failure or aside
            return (Ignored(MESSAGE, "a failure reported as a message; it is emitted when the turn ends"),)
        return *self._end_text(), aside

    def _aside_fact(self, message: str) -> Fact | Failure:
        return next(read for prefix, read in self._quirks.asides.items() if message.startswith(prefix))(message)

    def _other_content(self, content: Mapping[str, Any]) -> Facts:
        match content.get("type"):
            case "image":
                image = ImageProduced(text(content.get("mimeType")), text(content.get("data")) or None)
                return *self._begin_step(), *self._end_text(), image
            case "resource_link":
                return (Note(f"{self._quirks.agent} refers to {text(content.get('uri'))}"),)
            case "audio" | "resource":
                return (Note(f"{self._quirks.agent} sent {content.get('type')}, which cannot be shown"),)
        return ()

    # -- tools

    def _tool_call(self, update: Mapping[str, Any]) -> Facts:
        same = self._tools.continues_step(update)
        silent = self._tools.end_silent(but=text(update.get("toolCallId")))
        begun = () if same else (StepBegin(),)
        self.spoke = True
        return *self._end_text(), *silent, *begun, *(self._tools.announced(update) or (unchanged_call("tool_call"),))

    def _tool_call_update(self, update: Mapping[str, Any]) -> Facts:
        # For a call that was not announced, this update is its first.
        begun = () if self._tools.continues_step(update) else (StepBegin(),)
        self.spoke = True
        return *self._end_text(), *begun, *(self._tools.updated(update) or (unchanged_call("tool_call_update"),))

    def permission_requested(self, tool_call: Any) -> Facts:
        """End the open message before a permission request, and begin a step when the request shows a new call."""
        self.spoke = True
        is_new = tool_call is not None and not self._tools.continues_step(mapping(tool_call))
        return *self._end_text(), *((StepBegin(),) if is_new else ())

    def _plan(self, update: Mapping[str, Any]) -> Facts:
        if self._quirks.plan_repeats_tool_call:
            return (Ignored("plan", "repeats its tool call"),)
        plan = update.get("entries", update.get("plan"))
        return *self._begin_step(), *self._end_text(), *self._tools.planned(plan)

    # -- usage

    def _usage(self, update: Mapping[str, Any]) -> Facts:
        self._usage_total.record_cost(update.get("cost"))
        used, size = whole(update.get("used")), whole(update.get("size"))
        if self._warned or not self._session.is_live or not size or used < FILLING * size:
            return (Ignored("usage_update", "tokens and cost are emitted when the turn ends"),)
        self._warned = True
        return (ContextFilling(used, size),)

    # -- inside

    def _begin_step(self) -> Facts:
        """Begin a step when the tool calls of the previous one are over."""
        self.spoke = True
        silent = self._tools.end_silent()
        if not self._tools.step_is_over:
            return silent
        self._tools.step_is_over = False
        return *silent, StepBegin()

    def _end_text(self) -> Facts:
        """End the open message or thought before something else."""
        was_message, self._in_message, self._in_thought = self._in_message, False, False
        thought, self._thought_id = self._thought_id, None
        return ((TextEnd(),) if was_message else ()) + ((ThinkingEnd(),) if thought is not None else ())


def _inside(parent: str, facts: Iterable[Fact]) -> Facts:
    """Attribute facts to a sub-agent, without its steps: only the main agent has steps."""
    attributed = tuple(
        fact if isinstance(fact, Ignored | Note) else InSubagent(parent, fact)
        for fact in facts
        if not isinstance(fact, StepBegin)
    )
    return attributed or (Ignored("session/update", "a step of a sub-agent"),)


def _id_of(update: Mapping[str, Any]) -> str | None:
    found = update.get("messageId")
    return found if isinstance(found, str) else None
