"""Sessions that Codex stores: rollouts, one file of JSON lines for each thread.

`$CODEX_HOME` (else `~/.codex`) `/sessions/<year>/<month>/<day>/rollout-<time>-<id>.jsonl`. Its `item_completed` events
are the items of the app-server with other field names. Measured with 0.169.0.
"""

import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from agent_mux.sdk import facts
from agent_mux.sdk.config import AgentPaths
from agent_mux.sdk.session_files import (
    JsonLinesReader,
    SubagentUsageReader,
    find_session_files,
    parse_timestamp,
    read_json_objects,
)
from agent_mux.sdk.sessions import (
    FoundSession,
    ModelCalled,
    PromptSent,
    SessionDescribed,
    SessionEntry,
    SessionFact,
    SessionReader,
    SessionStore,
)
from agent_mux_adapters._dialects.tolerant import mapping, rows, text, whole
from agent_mux_adapters.codex.items import THREAD_ITEMS, MessageItem, ReasoningItem, read_item
from agent_mux_adapters.codex.outcome import failure_of
from agent_mux_adapters.codex.subagents import CodexSubagents, CollabCall, SubagentActivity
from agent_mux_adapters.codex.threads import CodexThread
from agent_mux_adapters.codex.tools import CodexToolCall
from agent_mux_adapters.codex.usage import usage_of
from agent_mux_adapters.codex.wire import CodexTokens

MAX_FORKS = 50
"""The longest chain of forks that is followed. A longer one is a cycle."""
TOOL_CALL_TYPES = frozenset({"function_call", "custom_tool_call", "local_shell_call", "web_search_call"})
"""Types of the model's output items that call a tool."""
_THREAD_ID = re.compile(r"[0-9A-Za-z-]{1,64}")


def root(place: AgentPaths) -> Path:
    """Return the directory with the directories of the years."""
    return place.home_of("CODEX_HOME", ".codex") / "sessions"


def find(place: AgentPaths) -> Iterator[FoundSession]:
    """Find the rollouts of all threads."""
    return find_session_files(root(place), "*/*/*/rollout-*.jsonl")


def open_session(found: FoundSession) -> SessionReader:
    """Return a cursor at the first line of a rollout."""
    return RolloutCursor(found.path)


class RolloutCursor:
    """A cursor over a thread and, before it, the part of the thread that it was forked from.

    The rollout of a fork contains only what came after the fork.
    """

    def __init__(self, path: Path, *, until: int | None = None, forks_left: int = MAX_FORKS) -> None:
        """`until`: the ordinal of the first line to leave out; None for no limit."""
        self._path = path
        self._forks_left = forks_left
        self._is_new = True
        self._thread = RolloutReader(until)
        self._lines = JsonLinesReader(path, self._thread.read)
        self._subagents = SubagentUsageReader(lambda: RolloutReader().read)

    def read(self) -> Iterator[SessionEntry]:
        """Read the entries since the last call. See `Cursor.read`."""
        if self._is_new:
            self._is_new = False
            origin = self._origin()
            inherited = origin.read() if origin is not None else ()
            yield from (entry for entry in inherited if not isinstance(entry.fact, SessionDescribed))
        yield from self._lines.read()
        paths = map(self._rollout_of, self._thread.subagents)
        yield from self._subagents.read(path for path in paths if path is not None)

    def _rollout_of(self, thread_id: str) -> Path | None:
        if not _THREAD_ID.fullmatch(thread_id):
            return None
        return next(self._path.parents[3].glob(f"*/*/*/rollout-*-{thread_id}.jsonl"), None)

    def _origin(self) -> "RolloutCursor | None":
        first = mapping(next(read_json_objects(self._path), {}).get("payload"))
        path, until = self._rollout_of(text(first.get("forked_from_id"))), first.get("forked_from_ordinal_exclusive")
        if path is None or not isinstance(until, int) or not self._forks_left:
            return None
        return RolloutCursor(path, until=until, forks_left=self._forks_left - 1)


class RolloutReader:
    """Reader of the lines of one rollout, without those of its origin and its sub-agents."""

    def __init__(self, until: int | None = None) -> None:
        """`until`: the ordinal of the first line to leave out; None for no limit."""
        self._until = until
        self._id = ""
        self._model = ""
        self._thread = CodexThread("", "")
        self._subagents = CodexSubagents()
        self.subagents: dict[str, None] = {}
        """The sub-agents of the thread, by the ids of their own threads."""
        self._is_answered = False
        """Whether the model's answer is complete. The results of its tool calls may follow."""
        self._error: facts.Failure | None = None
        """The failure that the turn will end with."""
        self._lines: Mapping[str, Callable[[Mapping[str, Any]], Iterable[SessionFact]]] = {
            "session_meta": self._session_meta,
            "turn_context": self._turn_context,
            "event_msg": self._event,
            "token_usage_record": self._token_usage,
            "response_item": self._response_item,
        }
        self._events: Mapping[str, Callable[[Mapping[str, Any]], Iterable[SessionFact]]] = {
            "item_completed": lambda event: self._item(mapping(event.get("item"))),
            "thread_name_updated": lambda event: (SessionDescribed(title=text(event.get("thread_name")) or None),),
            "error": self._failed,
            "task_complete": lambda _: (self._turn_end(),),
            "turn_aborted": lambda _: (facts.TurnStopped(),),
        }

    def read(self, line: Mapping[str, Any]) -> Iterator[SessionEntry]:
        """Return the entries of one line."""
        if self._until is not None and whole(line.get("ordinal")) >= self._until:
            return
        at = parse_timestamp(line.get("timestamp"))
        reader = self._lines.get(text(line.get("type")))
        for fact in reader(mapping(line.get("payload"))) if reader is not None else ():
            if isinstance(fact, facts.SubagentBegin):
                self.subagents.setdefault(fact.subagent_id)
            yield SessionEntry(at, fact)

    # -- the thread

    def _session_meta(self, meta: Mapping[str, Any]) -> Iterable[SessionFact]:
        if self._id:  # versions that copied the history of a fork also copied the first line of its origin
            return
        self._id = text(meta.get("id"))
        cwd = text(meta.get("cwd"))
        self._thread = CodexThread(self._id, cwd)
        yield SessionDescribed(
            session_id=self._id or None,
            cwd=cwd or None,
            branch=text(mapping(meta.get("git")).get("branch")) or None,
            version=text(meta.get("cli_version")) or None,
            forked_from=text(meta.get("forked_from_id")) or None,
            part_of=text(meta.get("parent_thread_id")) or None,
        )

    def _turn_context(self, context: Mapping[str, Any]) -> Iterable[SessionFact]:
        self._model = text(context.get("model")) or self._model
        return ()

    def _token_usage(self, record: Mapping[str, Any]) -> Iterable[SessionFact]:
        counts = mapping(record.get("usage"))
        usage = usage_of(CodexTokens(**{name: whole(counts.get(name)) for name in CodexTokens.__struct_fields__}))
        if usage is not None:
            self._is_answered = True
            yield ModelCalled(text(record.get("response_id")), self._model, usage)

    def _response_item(self, item: Mapping[str, Any]) -> Iterable[SessionFact]:
        """Handle an output item of the model. It only shows where a step with tool calls begins."""
        return self._next_step() if text(item.get("type")) in TOOL_CALL_TYPES else ()

    def _next_step(self) -> Iterable[SessionFact]:
        """Begin a step if the model's last answer was complete: its next output is of another model call."""
        if not self._is_answered:
            return ()
        self._is_answered = False
        return (*self._thread.end_step(), *self._thread.begin_step())

    # -- its turns

    def _event(self, event: Mapping[str, Any]) -> Iterable[SessionFact]:
        reader = self._events.get(text(event.get("type")))
        return reader(event) if reader is not None else ()

    def _failed(self, event: Mapping[str, Any]) -> Iterable[SessionFact]:
        self._error = failure_of(text(event.get("message")) or "the agent reported an error")
        return ()

    def _turn_end(self) -> facts.Fact:
        error, self._error = self._error, None
        return facts.TurnDone() if error is None else facts.TurnFailed(error)

    def _item(self, stored: Mapping[str, Any]) -> Iterable[SessionFact]:  # noqa: PLR0911  # a table
        kind = text(stored.get("type"))
        if kind == "UserMessage":
            return (PromptSent(_texts_of(stored.get("content"))),)
        item = read_item(THREAD_ITEMS, _app_server_item(kind, stored))
        match item:
            case MessageItem():
                return (*self._next_step(), *self._thread.message_completed(item))
            case ReasoningItem():
                return (*self._next_step(), *self._thread.thought_completed(item))
            case CodexToolCall():
                return self._thread.call_completed(item)
            case CollabCall():
                return (*self._thread.begin_step(), *self._subagents.call_completed(item))
            case SubagentActivity(kind="started"):
                return (*self._thread.begin_step(), *self._subagents.begin(item.agent_thread_id, item.agent_path, ""))
            case SubagentActivity(kind="completed"):
                return self._subagents.report(item.agent_thread_id)
        return ()


# -- stored items as items of the app-server


def _app_server_item(kind: str, stored: Mapping[str, Any]) -> dict[str, Any]:
    """Convert a stored item to the field names and values that the app-server uses."""
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
    """Convert the state of a sub-agent: a status, or `{status: last message}`."""
    if isinstance(state, dict) and state:
        status, message = next(iter(state.items()))
        return {"status": status, "message": message if isinstance(message, str) else None}
    return {"status": text(state)}


def _command_line(command: Any) -> str:
    return shlex.join(map(str, command)) if isinstance(command, list) else text(command)


def _path_of(location: str) -> str | None:
    """Return the path in a path or a `file:` URL; None when it is empty."""
    return (unquote(urlsplit(location).path) if location.startswith("file:") else location) or None


def _milliseconds(duration: Mapping[str, Any]) -> int | None:
    return whole(duration.get("secs")) * 1000 + whole(duration.get("nanos")) // 1_000_000 if duration else None


def _texts_of(content: Any) -> str:
    return "\n".join(text(block.get("text")) for block in rows(content) if text(block.get("text")))


STORE = SessionStore(root=root, find=find, open=open_session)
