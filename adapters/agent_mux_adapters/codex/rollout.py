"""The lines of a rollout: the items of the app-server, spelled in another way, and what the model calls used."""

import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import unquote, urlsplit

from agent_mux import facts
from agent_mux.sessions.lines import milliseconds_of
from agent_mux.sessions.store import Described, Entry, ModelCalled, Prompted, Told
from agent_mux_adapters._dialects.tolerant import mapping, rows, text, whole
from agent_mux_adapters.codex import calls
from agent_mux_adapters.codex.delegation import Activity, CollabCall, Delegation
from agent_mux_adapters.codex.failures import failure_of
from agent_mux_adapters.codex.items import THREAD_ITEMS, Message, Reasoning, load
from agent_mux_adapters.codex.meter import usage_of
from agent_mux_adapters.codex.thread import Thread
from agent_mux_adapters.codex.wire import Tokens

CALLS = frozenset({"function_call", "custom_tool_call", "local_shell_call", "web_search_call"})
"""What the model says to call a tool."""


class StoredThread:
    """Reads the lines of one rollout."""

    def __init__(self, until: int | None = None) -> None:
        self._until = until
        self._id = ""
        self._model = ""
        self._thread = Thread("", "")
        self._delegation = Delegation()
        self.subagents: dict[str, None] = {}
        """Those that it had, by the ids of their threads."""
        self._is_answered = False
        """The model's answer is complete. The results of its calls may follow."""
        self._error: facts.Failure | None = None
        """What the turn will end with."""
        self._lines: Mapping[str, Callable[[Mapping[str, Any]], Iterable[Told]]] = {
            "session_meta": self._begins,
            "turn_context": self._context,
            "event_msg": self._event,
            "token_usage_record": self._used,
            "response_item": self._answer,
        }
        self._events: Mapping[str, Callable[[Mapping[str, Any]], Iterable[Told]]] = {
            "item_completed": lambda event: self._item(mapping(event.get("item"))),
            "thread_name_updated": lambda event: (Described(title=text(event.get("thread_name")) or None),),
            "error": self._failed,
            "task_complete": lambda _: (self._closing(),),
            "turn_aborted": lambda _: (facts.TurnStopped(),),
        }

    def read(self, line: Mapping[str, Any]) -> Iterator[Entry]:
        """What a line says."""
        if self._until is not None and whole(line.get("ordinal")) >= self._until:
            return
        at = milliseconds_of(line.get("timestamp"))
        reader = self._lines.get(text(line.get("type")))
        for fact in reader(mapping(line.get("payload"))) if reader is not None else ():
            if isinstance(fact, facts.SubagentBegin):
                self.subagents.setdefault(fact.subagent_id)
            yield Entry(at, fact)

    # -- the thread

    def _begins(self, meta: Mapping[str, Any]) -> Iterable[Told]:
        if self._id:  # versions that copied what they forked from copied its beginning, too
            return
        self._id = text(meta.get("id"))
        cwd = text(meta.get("cwd"))
        self._thread = Thread(self._id, cwd)
        yield Described(
            session_id=self._id or None,
            cwd=cwd or None,
            branch=text(mapping(meta.get("git")).get("branch")) or None,
            version=text(meta.get("cli_version")) or None,
            forked_from=text(meta.get("forked_from_id")) or None,
            part_of=text(meta.get("parent_thread_id")) or None,
        )

    def _context(self, context: Mapping[str, Any]) -> Iterable[Told]:
        self._model = text(context.get("model")) or self._model
        return ()

    def _used(self, record: Mapping[str, Any]) -> Iterable[Told]:
        counts = mapping(record.get("usage"))
        usage = usage_of(Tokens(**{name: whole(counts.get(name)) for name in Tokens.__struct_fields__}))
        if usage is not None:
            self._is_answered = True
            yield ModelCalled(text(record.get("response_id")), self._model, usage)

    def _answer(self, item: Mapping[str, Any]) -> Iterable[Told]:
        """What the model said, as it said it: of use only for where its calls begin."""
        return self._next_step() if text(item.get("type")) in CALLS else ()

    def _next_step(self) -> Iterable[Told]:
        """The model says something: if its last answer was complete, this is another one."""
        if not self._is_answered:
            return ()
        self._is_answered = False
        return (*self._thread.end_step(), *self._thread.begin_step())

    # -- its turns

    def _event(self, event: Mapping[str, Any]) -> Iterable[Told]:
        reader = self._events.get(text(event.get("type")))
        return reader(event) if reader is not None else ()

    def _failed(self, event: Mapping[str, Any]) -> Iterable[Told]:
        self._error = failure_of(text(event.get("message")) or "the agent reported an error")
        return ()

    def _closing(self) -> facts.Fact:
        error, self._error = self._error, None
        return facts.TurnDone() if error is None else facts.TurnFailed(error)

    def _item(self, stored: Mapping[str, Any]) -> Iterable[Told]:  # noqa: PLR0911  # a table
        kind = text(stored.get("type"))
        if kind == "UserMessage":
            return (Prompted(_texts_of(stored.get("content"))),)
        item = load(THREAD_ITEMS, _as_of_the_app_server(kind, stored))
        match item:
            case Message():
                return (*self._next_step(), *self._thread.said(item))
            case Reasoning():
                return (*self._next_step(), *self._thread.thought(item))
            case calls.Call():
                return self._thread.call_completed(item)
            case CollabCall():
                return (*self._thread.begin_step(), *self._delegation.call_completed(item))
            case Activity(kind="started"):
                return (*self._thread.begin_step(), *self._delegation.begin(item.agent_thread_id, item.agent_path, ""))
            case Activity(kind="completed"):
                return self._delegation.report(item.agent_thread_id)
        return ()


def _as_of_the_app_server(kind: str, stored: Mapping[str, Any]) -> dict[str, Any]:
    """An item in the spelling that the rest of this adapter reads."""
    item = {**stored, "type": kind[:1].lower() + kind[1:]}
    match kind:
        case "AgentMessage":
            item["text"] = _texts_of(stored.get("content"))
        case "Reasoning":
            item["summary"], item["content"] = stored.get("summary_text") or [], stored.get("raw_content") or []
        case "CommandExecution":
            item["command"] = _command_line(stored.get("command"))
            item["cwd"] = _path_of(text(stored.get("cwd")))
            item["duration_ms"] = _milliseconds(mapping(stored.get("duration")))
        case "FileChange":
            changes = mapping(stored.get("changes"))
            item["changes"] = [_change(path, mapping(change)) for path, change in changes.items()]
        case "CollabAgentToolCall":
            states = mapping(stored.get("agents_states"))
            item["agents_states"] = {agent_id: _state(state) for agent_id, state in states.items()}
        case "McpToolCall":
            item["duration_ms"] = _milliseconds(mapping(stored.get("duration")))
    return item


def _change(path: str, change: Mapping[str, Any]) -> dict[str, Any]:
    kind = {"type": change.get("type"), "move_path": change.get("move_path")}
    return {"path": path, "kind": kind, "diff": text(change.get("unified_diff")) or text(change.get("content"))}


def _state(state: Any) -> dict[str, Any]:
    """A word, or `{"completed": <what it said>}`."""
    if isinstance(state, dict) and state:
        word, said = next(iter(state.items()))
        return {"status": word, "message": said if isinstance(said, str) else None}
    return {"status": text(state)}


def _command_line(command: Any) -> str:
    return shlex.join(map(str, command)) if isinstance(command, list) else text(command)


def _path_of(place: str) -> str | None:
    """A path, or the `file:` URL of one."""
    return (unquote(urlsplit(place).path) if place.startswith("file:") else place) or None


def _milliseconds(duration: Mapping[str, Any]) -> int | None:
    return whole(duration.get("secs")) * 1000 + whole(duration.get("nanos")) // 1_000_000 if duration else None


def _texts_of(content: Any) -> str:
    return "\n".join(text(block.get("text")) for block in rows(content) if text(block.get("text")))
