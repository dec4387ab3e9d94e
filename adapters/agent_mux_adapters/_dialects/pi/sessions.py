"""The sessions that agents of this dialect store: JSON-lines files with a tree of entries, version 3.

`<directory of the agent>/sessions/<cwd>/<time>_<id>.jsonl`. Recorded with pi 0.73 and 0.87, and with omp 18.2.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path, PurePath
from typing import Any

from agent_mux.sdk import facts
from agent_mux.sdk.codec import CodecContext
from agent_mux.sdk.config import AgentPaths
from agent_mux.sdk.session_files import JsonLinesReader, RowTree, find_session_files, parse_timestamp
from agent_mux.sdk.sessions import (
    FoundSession,
    ModelCalled,
    PromptSent,
    SessionDescribed,
    SessionEntry,
    SessionFact,
    SessionStore,
    TurnEndBuffer,
    UnreadableSessionError,
)
from agent_mux_adapters._dialects.pi.flavor import Flavor
from agent_mux_adapters._dialects.pi.messages import PiMessages
from agent_mux_adapters._dialects.pi.outcome import ABORTED, failure_of
from agent_mux_adapters._dialects.pi.tools import PiToolCalls
from agent_mux_adapters._dialects.pi.usage import cost_record
from agent_mux_adapters._dialects.tolerant import mapping, rows, text, whole

NEWEST_VERSION = 3
"""The newest version of the format that is understood."""
TOOL_USE = "toolUse"


def session_store(flavor: Flavor, directory: Callable[[AgentPaths], Path]) -> SessionStore:
    """Return the session store of an agent that keeps its files below `directory`."""

    def root(place: AgentPaths) -> Path:
        return directory(place) / "sessions"

    def find(place: AgentPaths) -> Iterator[FoundSession]:
        return find_session_files(root(place), "*/*.jsonl")

    def open_session(found: FoundSession) -> JsonLinesReader:
        entries = PiStoredEntries(found.path, flavor)
        return JsonLinesReader(found.path, entries.read, entries.close)

    return SessionStore(root=root, find=find, open=open_session)


class PiStoredEntries:
    """The reader of one session's entries."""

    def __init__(self, path: Path, flavor: Flavor) -> None:
        self._flavor = flavor
        self._abandoned = RowTree(id="id", parent="parentId", starts=_is_prompt).abandoned_rows(path)
        self._set_directory("")
        self._closing = TurnEndBuffer()
        self._readers: Mapping[str, Callable[[Mapping[str, Any]], Iterable[SessionFact]]] = {
            "session": self._read_header,
            "message": self._read_message,
            "title": lambda row: (SessionDescribed(title=text(row.get("title")) or None),),
            "session_info": lambda row: (SessionDescribed(title=text(row.get("name")) or None),),
            "compaction": lambda row: (facts.ContextCompacted(text(row.get("summary"))),),
        }

    def _set_directory(self, cwd: str) -> None:
        self._calls = PiToolCalls(self._flavor, CodecContext(agent=self._flavor.agent, protocol="stored", cwd=cwd))
        self._messages = PiMessages(self._calls)

    def read(self, row: Mapping[str, Any]) -> Iterator[SessionEntry]:
        """Read one entry of the file."""
        at = parse_timestamp(row.get("timestamp"))
        reader = self._readers.get(text(row.get("type")))
        return self._closing.pass_on(at, reader(row) if reader is not None else ())

    def close(self) -> Iterator[SessionEntry]:
        """Return the closing entry that waits for a successor: the file has no more entries for now."""
        return self._closing.release()

    def _read_header(self, row: Mapping[str, Any]) -> Iterable[SessionFact]:
        version = whole(row.get("version"))
        if version > NEWEST_VERSION:
            raise UnreadableSessionError(
                f"its format has version {version}; agent-mux reads versions up to {NEWEST_VERSION}"
            )
        cwd = text(row.get("cwd"))
        self._set_directory(cwd)
        parent = PurePath(text(row.get("parentSession"))).stem.rpartition("_")[2]
        yield SessionDescribed(session_id=text(row.get("id")) or None, cwd=cwd or None, forked_from=parent or None)

    def _read_message(self, row: Mapping[str, Any]) -> Iterable[SessionFact]:
        message = mapping(row.get("message"))
        is_abandoned = text(row.get("id")) in self._abandoned
        match message.get("role"):
            case "assistant":
                if not is_abandoned:
                    yield from self._read_answer(message)
                yield from _model_call(row, message)
            case "toolResult" if not is_abandoned:
                yield from self._calls.execution_ended({**message, "result": message})
            case "user" if not is_abandoned and _is_prompt(row):
                yield PromptSent(_plain_text(message.get("content")), text(row.get("id")))

    def _read_answer(self, message: Mapping[str, Any]) -> Iterable[SessionFact]:
        self._closing.forget()
        yield facts.StepBegin()
        yield from self._messages.end(message.get("content"))
        reason, error = text(message.get("stopReason")), text(message.get("errorMessage"))
        if reason == "aborted" or error in ABORTED:
            yield facts.TurnStopped()
        elif reason == "error":
            yield facts.TurnFailed(failure_of(error or "the agent reported an error"))
        elif reason != TOOL_USE:
            yield facts.TurnDone()


def _model_call(row: Mapping[str, Any], message: Mapping[str, Any]) -> Iterable[SessionFact]:
    cost = cost_record(message.get("usage"))
    if cost is None:
        return
    usage = facts.Usage(
        cost.input_tokens,
        cost.output_tokens,
        cost.thinking_tokens,
        cost.cached_tokens,
        cost.cache_creation_tokens,
    )
    # Ids of entries are short: only together with the time do they identify the same call in a copy and nothing else.
    key = f"{text(row.get('id'))}/{text(row.get('timestamp'))}"
    usd = cost.total_usd if cost.source == "native" else None
    yield ModelCalled(key, text(message.get("model")), usage, usd)


def _is_prompt(row: Mapping[str, Any]) -> bool:
    """Return whether an entry is a prompt of the user, not of the agent itself."""
    message = mapping(row.get("message"))
    return message.get("role") == "user" and message.get("attribution", "user") == "user"


def _plain_text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(text(block.get("text")) for block in rows(content) if block.get("type") == "text")
