"""The lines of one rollout, in all the ways in which releases of Codex have stored a thread.

In `item_completed` events, whose items are those of the app-server with other field names (measured with 0.148 to
0.169), or as `older_rollouts.py` describes (0.47 to 0.150). A thread that a newer release resumed has turns of both
kinds. A turn of the first kind begins with an item, and everything that repeats its items is skipped.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from agent_mux.sdk import facts
from agent_mux.sdk.session_files import parse_timestamp
from agent_mux.sdk.sessions import (
    ModelCalled,
    PromptSent,
    SessionDescribed,
    SessionEntry,
    SessionFact,
    StoredFact,
    UnknownRow,
)
from agent_mux_adapters._dialects.tolerant import mapping, text, whole
from agent_mux_adapters.codex.items import Item, MessageItem, ReasoningItem
from agent_mux_adapters.codex.older_rollouts import CALLS, OlderTurn
from agent_mux_adapters.codex.outcome import failure_of
from agent_mux_adapters.codex.quota import read_windows
from agent_mux_adapters.codex.stored_items import read_stored_item, texts_of
from agent_mux_adapters.codex.subagents import CodexSubagents, CollabCall, SubagentActivity
from agent_mux_adapters.codex.threads import CodexThread
from agent_mux_adapters.codex.tools import CodexToolCall
from agent_mux_adapters.codex.usage import TokenCounter, usage_of
from agent_mux_adapters.codex.wire import CodexTokens

ROLLED_BACK = "thread_rolled_back"
_LineReader = Callable[[Mapping[str, Any]], Iterable[SessionFact]]
_NO_ANSWER = "the turn ended without an answer; Codex stored no reason"


class TurnsRolledBack(StoredFact, frozen=True):
    """The user took back the last turns. For `rollbacks.py`, which removes them."""

    count: int


class RolloutReader:
    """Reader of the lines of one rollout, without those of its origin and its sub-agents."""

    def __init__(self, until: int | None = None) -> None:
        """`until`: the ordinal of the first line to leave out; None for no limit."""
        self._until = until
        self._id = ""
        self._model = ""
        self._timestamp = ""
        """The time of the current line."""
        self._thread = CodexThread("", "")
        self._older = OlderTurn(self._thread, self._next_step)
        self._subagents = CodexSubagents()
        self.subagents: dict[str, None] = {}
        """The sub-agents of the thread, by the ids of their own threads."""
        self._is_answered = False
        """Whether the model's answer is complete. The results of its tool calls may follow."""
        self._error: facts.Failure | None = None
        """The failure that the turn will end with."""
        self._turn_id = ""
        self._has_end = False
        """Whether the end of the turn will be stored; up to 0.80 it is not."""
        self._has_items = False
        """Whether the turn consists of `item_completed` events."""
        self._counter = TokenCounter(None)
        self._has_records = False
        """Whether the tokens of the turn are in `token_usage_record` lines."""
        self._recorded_total: Any = None
        """The tokens of the thread after calls that have such lines."""
        self._unknown: dict[str, None] | None = {}
        """Kinds of lines with output of the model, in a thread without a prompt; None once there is one."""
        self._lines: Mapping[str, _LineReader] = {
            "session_meta": self._session_meta,
            "turn_context": self._turn_context,
            "event_msg": self._event,
            "token_usage_record": self._token_usage,
            "response_item": self._response_item,
            "compacted": lambda row: (facts.ContextCompacted(text(row.get("message"))),),
        }
        self._events: Mapping[str, _LineReader] = {
            "item_completed": lambda event: self._item(mapping(event.get("item"))),
            "user_message": self._user_message,
            "token_count": lambda event: (*self._token_count(event), *_quota(event)),
            "thread_name_updated": lambda event: (SessionDescribed(title=text(event.get("thread_name")) or None),),
            "error": self._failed,
            ROLLED_BACK: lambda event: (TurnsRolledBack(whole(event.get("num_turns"))),),
            "task_started": self._turn_started,
            "task_complete": lambda _: self._turn_over(self._turn_end()),
            "turn_aborted": lambda _: self._turn_over(facts.TurnStopped()),
        }

    def read(self, line: Mapping[str, Any]) -> Iterator[SessionEntry]:
        """Return the entries of one line."""
        if self._until is not None and whole(line.get("ordinal")) >= self._until:
            return
        self._timestamp = text(line.get("timestamp"))
        at = parse_timestamp(line.get("timestamp"))
        reader = self._lines.get(text(line.get("type")))
        for fact in reader(mapping(line.get("payload"))) if reader is not None else ():
            if isinstance(fact, facts.SubagentBegin):
                self.subagents.setdefault(fact.subagent_id)
            elif isinstance(fact, PromptSent):
                self._unknown = None
            yield SessionEntry(at, fact)

    def close(self) -> Iterator[SessionEntry]:
        """Return what follows from the end of the file: for now, there are no more lines."""
        yield from (SessionEntry(None, fact) for fact in self._unstored_end())
        yield from (SessionEntry(None, UnknownRow(kind)) for kind in self._unknown or ())

    # -- the thread

    def _session_meta(self, meta: Mapping[str, Any]) -> Iterable[SessionFact]:
        if self._id:  # versions that copied the history of a fork also copied the first line of its origin
            return
        self._id = text(meta.get("id"))
        cwd = text(meta.get("cwd"))
        self._thread.id, self._thread.cwd = self._id, cwd
        yield SessionDescribed(
            session_id=self._id or None,
            cwd=cwd or None,
            branch=text(mapping(meta.get("git")).get("branch")) or None,
            version=text(meta.get("cli_version")) or None,
            forked_from=text(meta.get("forked_from_id")) or None,
            part_of=text(meta.get("parent_thread_id")) or _spawning_thread(meta) or None,
        )

    def _turn_context(self, context: Mapping[str, Any]) -> Iterable[SessionFact]:
        self._model = text(context.get("model")) or self._model
        self._turn_id = text(context.get("turn_id"))
        if not self._has_end and self._older.prompt is None:  # there, each model call begins with such a line
            self._is_answered = True
        return ()

    def _token_usage(self, record: Mapping[str, Any]) -> Iterable[SessionFact]:
        usage = usage_of(_tokens(record.get("usage")))
        if usage is not None:
            self._is_answered = self._has_records = True
            yield ModelCalled(text(record.get("response_id")), self._model, usage)

    def _token_count(self, event: Mapping[str, Any]) -> Iterable[SessionFact]:
        """Handle the tokens of the thread so far, which are stored again and again."""
        info = mapping(event.get("info"))
        if not info:
            return
        if self._has_records:
            self._recorded_total = info.get("total_token_usage")
            return
        if self._recorded_total is not None:
            self._counter.set(_tokens(self._recorded_total))
            self._recorded_total = None
        total = _tokens(info.get("total_token_usage"))
        added = self._counter.advance(total, _tokens(info.get("last_token_usage")))
        usage = usage_of(added) if added is not None else None
        if usage is not None:
            self._is_answered = self._is_answered or self._has_end
            # Copies of a turn keep its id, but not its times.
            origin = self._turn_id or f"{self._id}/{self._timestamp}"
            yield ModelCalled(f"{origin}/{total.input_tokens}/{total.output_tokens}", self._model, usage)

    def _response_item(self, item: Mapping[str, Any]) -> Iterable[SessionFact]:
        kind = text(item.get("type"))
        if self._unknown is not None and (kind in CALLS or item.get("role") == "assistant"):
            self._unknown.setdefault(f"response_item/{kind}")
        if not self._has_items:
            return self._older.response_item(item)
        # In a turn of items it shows where a step with tool calls begins, and what was denied.
        step = self._next_step() if kind in CALLS else ()
        return (*step, *self._older.denied(item))

    def _next_step(self) -> Iterable[SessionFact]:
        """Begin a step if the model's last answer was complete: its next output is of another model call."""
        if not self._is_answered:
            return ()
        self._is_answered = False
        return (*self._thread.end_step(), *self._thread.begin_step())

    # -- its turns

    def _event(self, event: Mapping[str, Any]) -> Iterable[SessionFact]:
        reader = self._events.get(text(event.get("type")))
        if reader is not None:
            return reader(event)
        return () if self._has_items else self._older.event(event)

    def _turn_started(self, event: Mapping[str, Any]) -> Iterable[SessionFact]:
        ended = self._unstored_end()
        self._turn_id, self._has_end = text(event.get("turn_id")), True
        return ended

    def _user_message(self, event: Mapping[str, Any]) -> Iterable[SessionFact]:
        prompt = text(event.get("message"))
        if text(event.get("kind")) not in {"", "plain"} or (self._has_items and prompt == self._older.prompt):
            return ()
        return self._prompted(prompt, has_items=False)

    def _prompted(self, prompt: str, *, has_items: bool) -> Iterable[SessionFact]:
        ended = self._unstored_end()
        self._has_items, self._has_records = has_items, False
        return (*ended, *self._older.prompted(prompt, self._turn_id))

    def _failed(self, event: Mapping[str, Any]) -> Iterable[SessionFact]:
        self._error = failure_of(text(event.get("message")) or "the agent reported an error")
        return ()

    def _turn_end(self) -> facts.Fact:
        if self._error is not None:
            return facts.TurnFailed(self._error)
        if self._older.prompt is not None:
            return facts.TurnFailed(facts.Failure("AGENT_CRASH", _NO_ANSWER))
        return facts.TurnDone()

    def _turn_over(self, closing: facts.Fact) -> Iterable[SessionFact]:
        self._older.ended()
        self._error, self._has_end = None, False
        return (closing,)

    def _unstored_end(self) -> Iterable[SessionFact]:
        """Return the end of a turn whose end is not stored, if the model's last output was a message."""
        if self._has_end or self._has_items or not self._older.may_be_over:
            return ()
        return self._turn_over(facts.TurnDone())

    def _item(self, stored: Mapping[str, Any]) -> Iterable[SessionFact]:
        if text(stored.get("type")) == "UserMessage":
            prompt = texts_of(stored.get("content"))
            if not self._has_items and prompt == self._older.prompt:  # an event has shown it before
                self._has_items = True
                return ()
            return self._prompted(prompt, has_items=True)
        item = read_stored_item(stored)
        if not self._has_items:
            return self._item_of_older_turn(item)
        return self._item_of_turn(item)

    def _item_of_turn(self, item: Item | None) -> Iterable[SessionFact]:
        if item is not None:
            self._older.prompt = None
        match item:
            case MessageItem():
                return (*self._next_step(), *self._thread.message_completed(item))
            case ReasoningItem():
                return (*self._next_step(), *self._thread.thought_completed(item))
            case CodexToolCall():
                return self._older.completed(item)
        return self._subagent_item(item)

    def _item_of_older_turn(self, item: Item | None) -> Iterable[SessionFact]:
        match item:
            case MessageItem():
                return self._older.message(item.text)
            case CodexToolCall():
                return self._older.completed(item)
        return self._subagent_item(item)

    def _subagent_item(self, item: Item | None) -> Iterable[SessionFact]:
        match item:
            case CollabCall():
                return (*self._thread.begin_step(), *self._subagents.call_completed(item))
            case SubagentActivity(kind="started"):
                return (*self._thread.begin_step(), *self._subagents.begin(item.agent_thread_id, item.agent_path, ""))
            case SubagentActivity(kind="completed"):
                return self._subagents.report(item.agent_thread_id)
        return ()


def _tokens(counts: Any) -> CodexTokens:
    fields = mapping(counts)
    return CodexTokens(**{name: whole(fields.get(name)) for name in CodexTokens.__struct_fields__})


def _spawning_thread(meta: Mapping[str, Any]) -> str:
    spawned = mapping(mapping(mapping(meta.get("source")).get("subagent")).get("thread_spawn"))
    return text(spawned.get("parent_thread_id"))


def _quota(event: Mapping[str, Any]) -> Iterable[SessionFact]:
    windows = read_windows(mapping(event.get("rate_limits")))
    return (facts.QuotaReported(windows),) if windows else ()
