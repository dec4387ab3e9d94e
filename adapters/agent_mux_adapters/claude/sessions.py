"""The sessions that Claude Code stores: one JSON Lines file each, in one directory per working directory.

The path is `$CLAUDE_CONFIG_DIR` (or `~/.claude`) `/projects/<cwd with other characters as ->/<id>.jsonl`. The rows of
the conversation are a tree (`uuid`, `parentUuid`); other rows hold metadata. A user who returns to an earlier prompt
and sends another one leaves a branch behind: its messages are skipped, its usage is counted. Recorded with 1.0.120 to
2.1.330 (resumed, forked, continued, rewound).
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from agent_mux.sdk import facts
from agent_mux.sdk.config import AgentPaths
from agent_mux.sdk.session_files import (
    JsonLinesReader,
    RowTree,
    SubagentUsageReader,
    find_session_files,
    parse_timestamp,
)
from agent_mux.sdk.sessions import (
    FilesSaved,
    FoundSession,
    ModelCalled,
    PromptSent,
    SessionCost,
    SessionDescribed,
    SessionEntry,
    SessionFact,
    SessionReader,
    SessionStore,
    UnknownRow,
)
from agent_mux_adapters._dialects.stream_json.messages import SYNTHETIC, MessageReader
from agent_mux_adapters._dialects.stream_json.tools import StreamJsonCalls
from agent_mux_adapters._dialects.tolerant import dollars, mapping, rows, text
from agent_mux_adapters.claude.outcome import api_error_of
from agent_mux_adapters.claude.subagents import ClaudeSubagents
from agent_mux_adapters.claude.tools import TOOLS
from agent_mux_adapters.claude.usage import usage_of, uses_anything

CONVERSATION = frozenset({"user", "assistant"})
"""The types of rows that hold messages. Each row has an id and that of the previous row."""
SUBAGENT = "agent-"
"""Prefix of the names of files with the rows of a sub-agent."""
BOOKKEEPING = frozenset(
    {
        "agent-name", "ai-title", "api-request", "api-request-blob", "api-request-shape", "atis-latch", "attachment",
        "cost-state", "custom-title", "file-history-delta", "file-history-snapshot",
        "last-prompt", "mode", "progress", "queue-operation",
        "summary", "system", "tag", "tools-used",
    }
)  # fmt: skip
"""Types of rows that are not part of the conversation."""
INTERRUPTED = "[Request interrupted by user"
HANDED_BACK = frozenset({"end_turn", "stop_sequence", "max_tokens", "refusal"})
"""The stop reasons of a model call that end the turn."""
_AGENT_ID = re.compile(r"[0-9A-Za-z-]{1,64}")
LOCAL = ("<command-", "<local-command-")
"""Prefixes of rows about the CLI's own commands, which are not part of the prompt."""


def root(place: AgentPaths) -> Path:
    """Return the directory that contains the directories of the projects."""
    return place.home_of("CLAUDE_CONFIG_DIR", ".claude") / "projects"


def find(place: AgentPaths) -> Iterator[FoundSession]:
    """Find all sessions. The files of sub-agents are not sessions."""
    found = find_session_files(root(place), "*/*.jsonl")
    return (one for one in found if not one.path.name.startswith(SUBAGENT))


def open_session(found: FoundSession) -> SessionReader:
    """Open a session for reading from its first row."""
    return _WithSubagents(found.path)


class _WithSubagents:
    """A session and the usage of its sub-agents, which have their own files beside it."""

    def __init__(self, path: Path) -> None:
        self._stored = ClaudeStoredRows(path)
        self._rows = JsonLinesReader(path, self._stored.read)
        self._beside = path.parent
        self._directory = path.with_suffix("") / "subagents"
        self._inside = SubagentUsageReader(lambda: _used_inside)

    def read(self) -> Iterator[SessionEntry]:
        """Yield the new entries. See `Cursor.read`."""
        yield from self._rows.read()
        beside = (self._beside / f"{SUBAGENT}{agent}.jsonl" for agent in self._stored.subagents)
        yield from self._inside.read(
            (*sorted(self._directory.glob("*.jsonl")), *(path for path in beside if path.is_file()))
        )


def _used_inside(row: Mapping[str, Any]) -> Iterable[SessionEntry]:
    call = _model_call(row)
    return () if call is None else (SessionEntry(parse_timestamp(row.get("timestamp")), call),)


class ClaudeStoredRows:
    """Reads the rows of one session."""

    def __init__(self, path: Path) -> None:
        self._abandoned = _TREE.abandoned_rows(path)
        self._id = path.stem
        self.subagents: dict[str, None] = {}
        """The ids of the sub-agents that reported, each of which may have a file."""
        self._is_first = True
        self._calls = StreamJsonCalls(TOOLS, ClaudeSubagents())
        self._messages = self._new_messages()
        self._is_over = False
        """Whether the model finished, so that the turn is over unless more of the same message follows."""
        self._readers = {
            "user": self._user,
            "assistant": self._assistant,
            "cost-state": _cost_state,
            "file-history-snapshot": _files_saved,
            "summary": _title("summary"),
            "ai-title": _title("aiTitle"),
            "custom-title": _title("customTitle"),
        }

    def read(self, row: Mapping[str, Any]) -> Iterator[SessionEntry]:
        """Yield the entries of a row."""
        at = parse_timestamp(row.get("timestamp"))
        kind = text(row.get("type"))
        if self._is_first:  # rows of bookkeeping have no id of the session
            self._is_first = False
            yield SessionEntry(None, SessionDescribed(session_id=self._id))
        if kind not in CONVERSATION and kind not in BOOKKEEPING:
            yield SessionEntry(at, UnknownRow(kind or "a row without a type"))
        if self._is_over and kind != "assistant":
            self._is_over = False
            yield SessionEntry(at, facts.TurnDone())
        if not _is_of_main_agent(row):
            call = _model_call(row)
            if call is not None:
                yield SessionEntry(at, replace(call, is_inside=True))
            return
        reader = self._readers.get(kind)
        for fact in reader(row) if reader is not None else ():
            yield SessionEntry(at, fact)

    def _new_messages(self) -> MessageReader:
        return MessageReader(self._calls, lambda _: (), is_main=True)

    def _described(self, row: Mapping[str, Any]) -> SessionDescribed:
        self._calls.cwd = text(row.get("cwd")) or self._calls.cwd
        return SessionDescribed(
            session_id=text(row.get("sessionId")) or None,
            cwd=text(row.get("cwd")) or None,
            branch=text(row.get("gitBranch")) or None,
            version=text(row.get("version")) or None,
            forked_from=text(mapping(row.get("forkedFrom")).get("sessionId")) or None,
        )

    def _user(self, row: Mapping[str, Any]) -> Iterable[SessionFact]:
        if text(row.get("uuid")) in self._abandoned:
            if not self._calls.cwd:  # the only directory of a session that was rewound to before its first prompt
                yield SessionDescribed(cwd=text(row.get("cwd")) or None)
            return
        yield self._described(row)
        content = mapping(row.get("message")).get("content")
        if _is_prompt(row):
            self._messages = self._new_messages()
            yield PromptSent(_text_of(content), text(row.get("uuid")))
        elif _text_of(content).startswith(INTERRUPTED):
            yield facts.TurnStopped()
        else:
            subagent = text(mapping(row.get("toolUseResult")).get("agentId"))
            if _AGENT_ID.fullmatch(subagent):
                self.subagents.setdefault(subagent)
            yield from self._calls.results(content, row.get("toolUseResult"))

    def _assistant(self, row: Mapping[str, Any]) -> Iterable[SessionFact]:
        message = mapping(row.get("message"))
        if text(row.get("uuid")) not in self._abandoned:
            yield self._described(row)
            yield from self._message_facts(row, message)
        call = _model_call(row)
        if call is not None:
            yield call

    def _message_facts(self, row: Mapping[str, Any], message: Mapping[str, Any]) -> Iterable[SessionFact]:
        error = api_error_of({**row, "is_api_error_message": row.get("isApiErrorMessage")})
        if error is not None:
            return (facts.TurnFailed(facts.Failure("AGENT_CRASH", error.message or error.error)),)
        self._is_over = text(message.get("stop_reason")) in HANDED_BACK
        return self._messages.whole_message(message)


def _model_call(row: Mapping[str, Any]) -> ModelCalled | None:
    message = mapping(row.get("message"))
    usage, model = usage_of(mapping(message.get("usage"))), text(message.get("model"))
    if not uses_anything(usage) or model == SYNTHETIC:
        return None
    return ModelCalled(f"{text(row.get('requestId'))}/{text(message.get('id'))}", model, usage)


def _cost_state(row: Mapping[str, Any]) -> Iterable[SessionFact]:
    return (SessionCost(dollars(row.get("totalCostUSD"))),)


def _files_saved(row: Mapping[str, Any]) -> Iterable[SessionFact]:
    return (FilesSaved(text(row.get("messageId"))),)


def _title(field: str) -> Callable[[Mapping[str, Any]], Iterable[SessionFact]]:
    return lambda row: (SessionDescribed(title=text(row.get(field)) or None),)


def _is_prompt(row: Mapping[str, Any]) -> bool:
    """Return whether the user typed this row.

    Tool results, text that the CLI injected, and its own commands are not prompts.
    """
    if row.get("type") != "user" or row.get("isMeta") is True or row.get("isCompactSummary") is True:
        return False
    content = mapping(row.get("message")).get("content")
    if any(block.get("type") == "tool_result" for block in rows(content)):
        return False
    prompt = _text_of(content)
    return not prompt.startswith((INTERRUPTED, *LOCAL))


def _is_of_main_agent(row: Mapping[str, Any]) -> bool:
    return row.get("isSidechain") is not True


def _rewound_to(row: Mapping[str, Any]) -> str | None:
    """Return the last row of the conversation, which Claude stores with the last prompt, and after a rewind."""
    if row.get("type") != "last-prompt":
        return None
    return text(row.get("leafUuid")) or ("" if row.get("rewound") is True else None)


_TREE = RowTree(id="uuid", parent="parentUuid", starts=_is_prompt, includes=_is_of_main_agent, rewound=_rewound_to)


def _text_of(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(text(block.get("text")) for block in rows(content) if block.get("type") == "text")


STORE = SessionStore(root=root, find=find, open=open_session)
