"""`session/update`: what the agent says and does."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from agent_mux.facts import (
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

FILLING = 0.8  # of the context window; the event spec (19) names this share
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
    """The agent's side of the turns: messages, thoughts, tool calls, usage."""

    def __init__(self, session: AcpSession, tools: AcpTools, *, is_inside: bool = False) -> None:
        self._session = session
        self._is_inside = is_inside
        """Of a sub-agent."""
        self._account = session.account
        self._quirks = session.quirks
        self.tools = self._tools = tools
        self._inner: dict[str, AcpReader] = {}
        """What sub-agents do, by the call that delegated to them."""
        self._prefixes = tuple(session.quirks.asides)
        self._message_id: str | None = None
        self._thought_id: str | None = None
        self._saying = self._thinking = False
        self._warned = False
        self.failure: Failure | None = None
        """The agent said in words that the turn failed."""
        self.spoke = False
        """There was a message or a call in this turn."""
        self._kinds: dict[str, Callable[[Mapping[str, Any]], Facts]] = {
            MESSAGE: self._message,
            THOUGHT: self._thought,
            USER: lambda _: (Ignored(USER, "our own prompt"),),
            "tool_call": self._call,
            "tool_call_update": self._call_update,
            "plan": self._plan,
            "plan_update": self._plan,
            "usage_update": self._usage,
        }

    # -- the hot path

    def fragment(self, chunk: Chunk) -> Facts | None:
        """A fragment of a message or a thought; None when it needs the full reading."""
        text_ = chunk.content.text
        if chunk.meta is not None or not text_ or chunk.content.type != "text":
            return None
        if chunk.kind == MESSAGE:
            if self._saying and chunk.message_id == self._message_id and not text_.startswith(self._prefixes):
                return (TextDelta(text_),)
            return self._say(text_, chunk.message_id)
        if chunk.kind != THOUGHT:
            return None
        if self._thinking and chunk.message_id == self._thought_id and self._tools.is_idle:
            return (ThinkingDelta(text_),)
        return self._think(text_, chunk.message_id)

    # -- any update

    def told(self, session_id: str, update: Mapping[str, Any]) -> Facts | None:
        """One update. None when its kind is not known."""
        kind, session = text(update.get("sessionUpdate")), self._session
        if kind in SILENT or kind in self._quirks.ignored:
            if session.in_history and kind == self._quirks.history_ends_with:
                session.in_history = False
            return (Ignored(kind, SILENT.get(kind) or self._quirks.ignored[kind]),)
        handle = self._kinds.get(kind)
        if handle is None:
            return None
        if kind != "usage_update" and self._is_history(session_id, kind):
            session.saw_before(session_id, kind, update.get("messageId"))
            return (Ignored(kind, "what was before this run"),)
        if session.id not in (None, session_id):
            return (Ignored(kind, "another session"),)
        if kind != "usage_update" and not session.in_turn:
            return self._late(kind, update)
        inner, inside = self.scope_of(update)
        return handle(update) if inner is self else inside(inner.told_inside(kind, update))

    def _is_history(self, session_id: str, kind: str) -> bool:
        session = self._session
        if session.id is None and not session.is_seen_from_both_sides:
            # Only a session that is continued begins with a message of the user.
            return kind == USER or session.any_before() is not None
        return session.id is None or (session.in_history and session.id == session_id)

    def _late(self, kind: str, update: Mapping[str, Any]) -> Facts:
        said = text_of(update.get("content")) if kind == MESSAGE else ""
        if self._prefixes and said.startswith(self._prefixes):
            meant = self._meant(said)
            return (Note(meant.message, "warn") if isinstance(meant, Failure) else meant,)
        if said.strip():
            return (Note(f"{self._quirks.agent} said after the end of the turn: {said}"),)
        return (Ignored(kind, AFTER_TURN),)

    def turn_over(self) -> Facts:
        """The turn is over."""
        self._message_id = self._thought_id = self.failure = None
        self._saying = self._thinking = self.spoke = False
        self._inner.clear()
        return self._tools.turn_over()

    # -- sub-agents

    def scope_of(self, shown: Mapping[str, Any]) -> tuple["AcpReader", Callable[[Iterable[Fact]], Facts]]:
        """Whose an update or a call is: our own, or a sub-agent's; and how its facts are told."""
        parent = self._quirks.parent_call_of(mapping(shown.get("_meta")))
        call = self._tools.call(parent) if parent else None
        if call is None or not call.is_subagent:
            return self, tuple
        inner = self._inner.get(parent)
        if inner is None:
            inner = self._inner[parent] = AcpReader(self._session, self._tools.inner(), is_inside=True)
        return inner, lambda facts: _inside(parent, facts)

    def told_inside(self, kind: str, update: Mapping[str, Any]) -> Facts:
        """An update of a sub-agent, as if it were the agent's own."""
        return self._kinds[kind](update)

    # -- prose

    def _message(self, update: Mapping[str, Any]) -> Facts:
        content = mapping(update.get("content"))
        said, usage = text_of(content), default_usage(mapping(update.get("_meta")))
        facts = self._say(said, _id_of(update)) if said else self._other_content(content)
        if usage is not None:
            facts = (*facts, self._account.of_call(usage, inside=self._is_inside))
        return facts or (Ignored(MESSAGE, "empty"),)

    def _thought(self, update: Mapping[str, Any]) -> Facts:
        said = text_of(update.get("content"))
        return self._think(said, _id_of(update)) if said else (Ignored(THOUGHT, "empty"),)

    def _say(self, said: str, message_id: str | None) -> Facts:
        if self._prefixes and said.startswith(self._prefixes):
            return self._aside(said)
        facts = self._step()
        if self._saying and message_id != self._message_id:
            facts = (*facts, TextEnd())
        self._saying, self._message_id, self._thought_id = True, message_id, None
        self._thinking = False
        return *facts, TextDelta(said)

    def _think(self, said: str, thought_id: str | None) -> Facts:
        facts = self._step()
        if self._thought_id is not None and thought_id not in (None, self._thought_id):
            facts = (*facts, ThinkingEnd())
        self._saying, self._thought_id, self._thinking = False, thought_id, True
        return *facts, ThinkingDelta(said)

    def _aside(self, said: str) -> Facts:
        meant = self._meant(said)
        if isinstance(meant, Failure):
            self.failure = self.failure or meant
            return (Ignored(MESSAGE, "the agent's own words for a failure: told when the turn ends"),)
        return *self._pause(), meant

    def _meant(self, said: str) -> Fact | Failure:
        return next(read for prefix, read in self._quirks.asides.items() if said.startswith(prefix))(said)

    def _other_content(self, content: Mapping[str, Any]) -> Facts:
        match content.get("type"):
            case "image":
                image = ImageProduced(text(content.get("mimeType")), text(content.get("data")) or None)
                return *self._step(), *self._pause(), image
            case "resource_link":
                return (Note(f"{self._quirks.agent} refers to {text(content.get('uri'))}"),)
            case "audio" | "resource":
                return (Note(f"{self._quirks.agent} sent {content.get('type')}, which cannot be shown"),)
        return ()

    # -- tools

    def _call(self, update: Mapping[str, Any]) -> Facts:
        same = self._tools.continues_step(update)
        silent = self._tools.end_silent(but=text(update.get("toolCallId")))
        begun = () if same else (StepBegin(),)
        self.spoke = True
        return *self._pause(), *silent, *begun, *(self._tools.announced(update) or (unchanged_call("tool_call"),))

    def _call_update(self, update: Mapping[str, Any]) -> Facts:
        # Of a call that nobody announced this is the beginning.
        begun = () if self._tools.continues_step(update) else (StepBegin(),)
        self.spoke = True
        return *self._pause(), *begun, *(self._tools.updated(update) or (unchanged_call("tool_call_update"),))

    def asked(self, tool_call: Any) -> Facts:
        """A request for permission, which shows a call, or another one: whatever was being said is complete."""
        self.spoke = True
        is_new = tool_call is not None and not self._tools.continues_step(mapping(tool_call))
        return *self._pause(), *((StepBegin(),) if is_new else ())

    def _plan(self, update: Mapping[str, Any]) -> Facts:
        if self._quirks.plan_repeats_tool_call:
            return (Ignored("plan", "its tool call tells the same"),)
        plan = update.get("entries", update.get("plan"))
        return *self._step(), *self._pause(), *self._tools.planned(plan)

    # -- figures

    def _usage(self, update: Mapping[str, Any]) -> Facts:
        self._account.saw_cost(update.get("cost"))
        used, size = whole(update.get("used")), whole(update.get("size"))
        if self._warned or not self._session.is_live or not size or used < FILLING * size:
            return (Ignored("usage_update", "the tokens and the cost are told when the turn ends"),)
        self._warned = True
        return (ContextFilling(used, size),)

    # -- inside

    def _step(self) -> Facts:
        """The model speaks: a new model call, where the calls of the last one are over."""
        self.spoke = True
        silent = self._tools.end_silent()
        if not self._tools.step_is_over:
            return silent
        self._tools.step_is_over = False
        return *silent, StepBegin()

    def _pause(self) -> Facts:
        """Something else than prose comes."""
        was, self._saying, self._thinking = self._saying, False, False
        thought, self._thought_id = self._thought_id, None
        return ((TextEnd(),) if was else ()) + ((ThinkingEnd(),) if thought is not None else ())


def _inside(parent: str, facts: Iterable[Fact]) -> Facts:
    """Model calls are told apart in the main agent only."""
    told = tuple(
        fact if isinstance(fact, Ignored | Note) else InSubagent(parent, fact)
        for fact in facts
        if not isinstance(fact, StepBegin)
    )
    return told or (Ignored("session/update", "a step of a sub-agent"),)


def _id_of(update: Mapping[str, Any]) -> str | None:
    found = update.get("messageId")
    return found if isinstance(found, str) else None
