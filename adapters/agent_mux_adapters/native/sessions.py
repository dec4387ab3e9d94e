"""The sessions that the embedded agent stores: `<its directory>/sessions/<session id>.json`, replaced as a whole.

A session is a list of loops; each stores the messages that it added to the history of its parent. A loop that continues
from a part of that history is a branch, and the messages that it leaves behind are not emitted. The format is that of
`agent_loop.sessions`, read as plain data.
"""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from agent_mux.sdk import facts
from agent_mux.sdk.config import AgentPaths
from agent_mux.sdk.native_json import load_object
from agent_mux.sdk.session_files import find_session_files, redact_bytes
from agent_mux.sdk.sessions import (
    FoundSession,
    ModelCalled,
    PromptSent,
    SessionDescribed,
    SessionEntry,
    SessionFact,
    SessionReader,
    SessionStore,
    UnreadableSessionError,
)
from agent_mux_adapters._dialects.tolerant import dollars, mapping, optional_whole, rows, text, whole
from agent_mux_adapters.native.installation import directory

SUB_AGENT = "-sub"
"""End of the ids of sessions of sub-agents."""
NEWEST_VERSION = 1
"""The newest version of the format that is understood."""


def root(place: AgentPaths) -> Path:
    """Return the directory of the files."""
    return directory(place) / "sessions"


def find(place: AgentPaths) -> Iterator[FoundSession]:
    """Yield all sessions; files whose name begins with a dot are locks or incomplete.

    The session of a sub-agent is part of its parent's.
    """
    found = find_session_files(root(place), "*.json")
    return (one for one in found if not one.path.name.startswith(".") and not one.path.stem.endswith(SUB_AGENT))


def open_session(found: FoundSession) -> SessionReader:
    """Return a cursor at the session's beginning."""
    return NativeStoredSession(found.path)


class NativeStoredSession:
    """The reader of one session. A session grows at its end; each reading skips what was emitted before."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._emitted = 0

    def read(self) -> Iterator[SessionEntry]:
        """Yield new entries; see `Cursor.read`."""
        session = _session(load_object(redact_bytes(self._path.read_bytes())))
        for number, entry in enumerate(_entries(session)):
            if number >= self._emitted:
                self._emitted = number + 1
                yield entry


class StoredToolResults:
    """The effects of one loop's tool calls, from its stored events: commands and files.

    The history contains only the texts for the model, and a forked session has no events.
    """

    def __init__(self, events: Iterable[Mapping[str, Any]]) -> None:
        self._commands: dict[str, str] = {}
        self._effects: dict[str, list[Mapping[str, Any]]] = {}
        self._started: dict[str, Mapping[str, Any]] = {}
        self._reported: dict[str, Mapping[str, Any]] = {}
        for event in events:
            match event.get("type"):
                case "tool_call" if text(event.get("shell_command")):
                    self._commands[text(mapping(event.get("call")).get("id"))] = text(event.get("shell_command"))
                case "sub_agent_start":
                    self._started[text(event.get("call_id"))] = event
                case "sub_agent_end":
                    self._reported[text(event.get("call_id"))] = event
                case "tool_result":
                    call_id = text(mapping(event.get("message")).get("tool_call_id"))
                    self._effects[call_id] = rows(event.get("effects"))

    def delegation(self, call_id: str) -> facts.SubagentBegin | None:
        """Return the start of the sub-agent that a call started; None for other calls."""
        started = self._started.get(call_id)
        if started is None:
            return None
        names = (text(started.get(name)) for name in ("subagent_id", "name", "prompt"))
        return facts.SubagentBegin(*names)

    def report(self, call_id: str, key: str) -> Iterator[SessionFact]:
        """Yield the end of the sub-agent that a call started, with the usage of its model."""
        end = self._reported.get(call_id)
        if end is None:
            return
        usage, usd = _usage(mapping(end.get("usage")))
        yield ModelCalled(key, text(end.get("model")), usage, usd, is_inside=True)
        summary, is_done = text(end.get("text")), text(end.get("status")) in {"completed", "limited"}
        error = None if summary and is_done else text(end.get("error")) or "it returned no text"
        yield facts.SubagentDone(text(end.get("subagent_id")), summary, error)

    def shell(self, call_id: str) -> facts.ShellInvocation | None:
        """Return the command that a call ran; None for other calls."""
        command = self._commands.get(call_id)
        return facts.ShellInvocation(command) if command else None

    def end(self, message: Mapping[str, Any], output: str) -> facts.ToolDone:
        """Return the end of the call whose result is this message."""
        call_id = text(message.get("tool_call_id"))
        effects = self._effects.get(call_id, [])
        command_effect = next((effect for effect in effects if effect.get("type") == "command_ran"), {})
        exit_code = optional_whole(mapping(message.get("details")).get("exit_code"))
        has_failed = message.get("is_error") is True or bool(exit_code)
        return facts.ToolDone(
            call_id,
            output=None if has_failed else output,
            error=output if has_failed else None,
            stdout=text(command_effect.get("stdout")) or None,
            stderr=text(command_effect.get("stderr")) or None,
            exit_code=exit_code,
            files=tuple(file for effect in effects if (file := _file(effect)) is not None),
            name=text(message.get("name")) or None,
        )


def _file(effect: Mapping[str, Any]) -> facts.FileEffect | None:
    path = text(effect.get("path"))
    match effect.get("type"):
        case "file_read":
            return facts.FileRead(path)
        case "file_written":
            return facts.FileWritten(path, whole(effect.get("byte_count")), effect.get("created") is True)
        case "file_patched":
            return facts.FilePatched(path, text(effect.get("diff")))
        case "file_deleted":
            return facts.FileDeleted(path)
    return None


def _session(envelope: Mapping[str, Any] | None) -> Mapping[str, Any]:
    fields = mapping(envelope)
    version, session = whole(fields.get("format")), mapping(fields.get("session"))
    if version > NEWEST_VERSION:
        raise UnreadableSessionError(
            f"its format has version {version}; agent-mux reads versions up to {NEWEST_VERSION}"
        )
    if not text(session.get("session_id")):
        raise UnreadableSessionError("not a JSON object with a session and its id")
    return session


def _entries(session: Mapping[str, Any]) -> Iterator[SessionEntry]:
    described = SessionDescribed(
        session_id=text(session.get("session_id")),
        cwd=text(session.get("cwd")) or None,
        forked_from=text(session.get("forked_from")) or None,
    )
    yield SessionEntry(_timestamp(session.get("created_at")), described)
    prompted, calls = 0, 0
    for loop, kept in _active_branch(rows(session.get("loops"))):
        results = StoredToolResults(rows(loop.get("events")))
        for message in rows(loop.get("messages"))[:kept]:
            at = _timestamp(message.get("timestamp")) or _timestamp(loop.get("started_at"))
            if message.get("role") == "user":
                prompted, calls = whole(message.get("timestamp")), 0
            calls += 1
            # The prompt's time and the answer's position after it are the same in a fork, so they identify the call.
            for item in _message(message, f"{prompted}/{calls}" if prompted else "", results):
                yield SessionEntry(at, item)
        closing = _closing(loop) if kept is None else None
        if closing is not None:
            yield SessionEntry(_timestamp(loop.get("ended_at")), closing)


def _current(loops: list[Mapping[str, Any]], by_id: Mapping[str, Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the last loop, or of loops that ran in parallel the selected one, else the one before them."""
    last = loops[-1:]
    group = mapping(last[0].get("parallel_group")) if last else {}
    if not group:
        return last
    current = by_id.get(text(group.get("selected_loop_id")) or text(last[0].get("parent_loop_id")))
    return [] if current is None else [current]


def _active_branch(loops: list[Mapping[str, Any]]) -> list[tuple[Mapping[str, Any], int | None]]:
    """Return the current loop after its ancestors; for each, how many of its messages count, None for all."""
    by_id = {text(loop.get("loop_id")): loop for loop in loops}
    chain: list[Mapping[str, Any]] = _current(loops, by_id)
    seen: set[str] = set()
    while chain:
        parent = text(chain[-1].get("parent_loop_id"))
        if parent not in by_id or parent in seen:
            break
        seen.add(parent)
        chain.append(by_id[parent])
    kept: list[tuple[Mapping[str, Any], int | None]] = []
    before = 0
    for loop in reversed(chain):
        base = whole(loop.get("base"))
        while kept and base < before:  # a branch from an earlier point: drop what it leaves behind
            last, count = kept.pop()
            size = len(rows(last.get("messages"))) if count is None else count
            before -= size
            if base > before:
                kept.append((last, base - before))
                before = base
        kept.append((loop, None))
        before += len(rows(loop.get("messages")))
    return kept


def _message(message: Mapping[str, Any], key: str, results: StoredToolResults) -> Iterable[SessionFact]:
    content = rows(message.get("content"))
    match message.get("role"):
        case "user" if message.get("origin", "user") == "user":
            yield PromptSent(_plain_text(content))
        case "assistant":
            yield facts.StepBegin()
            yield from (item for block in content for item in _block(block, results))
            yield from _model_call(message, key)
        case "tool" if results.delegation(text(message.get("tool_call_id"))) is not None:
            yield from results.report(text(message.get("tool_call_id")), key)
        case "tool":
            yield results.end(message, _plain_text(content))


def _block(block: Mapping[str, Any], results: StoredToolResults) -> Iterable[SessionFact]:
    match block.get("type"):
        case "text":
            yield facts.WholeText(text(block.get("text")))
        case "thinking":
            yield facts.WholeThinking(text(block.get("text")))
        case "tool_call":
            arguments = dict(mapping(block.get("arguments")))
            call_id = text(block.get("id"))
            delegation = results.delegation(call_id)
            if delegation is not None:
                yield delegation
                return
            yield facts.ToolReady(call_id, text(block.get("name")), arguments, results.shell(call_id))


def _model_call(message: Mapping[str, Any], key: str) -> Iterable[SessionFact]:
    tokens = mapping(message.get("usage"))
    if not tokens:
        return
    usage, usd = _usage(tokens)
    yield ModelCalled(key, text(message.get("model")), usage, usd)


def _usage(tokens: Mapping[str, Any]) -> tuple[facts.Usage, float | None]:
    """Return tokens, and the cost in US dollars if it is known."""
    usage = facts.Usage(
        whole(tokens.get("input_tokens")),
        whole(tokens.get("output_tokens")),
        optional_whole(tokens.get("thinking_tokens")),
        optional_whole(tokens.get("cache_read_tokens")),
        optional_whole(tokens.get("cache_write_tokens")),
    )
    return usage, dollars(tokens["cost_usd"]) if "cost_usd" in tokens else None


def _closing(loop: Mapping[str, Any]) -> facts.Fact | None:
    match loop.get("status"):
        case "completed":
            return facts.TurnDone()
        case "aborted":
            return facts.TurnStopped()
        case "limited":
            return facts.TurnLimitHit()
        case "failed":
            return facts.TurnFailed(facts.Failure("INTERNAL", text(loop.get("error")) or "the run failed"))
        case "rejected":
            return facts.TurnFailed(facts.Failure("INTERNAL", text(loop.get("rejection")) or "the prompt was refused"))
    return None


def _plain_text(content: Iterable[Mapping[str, Any]]) -> str:
    return "\n".join(text(block.get("text")) for block in content if block.get("type") == "text")


def _timestamp(value: Any) -> int | None:
    return whole(value) or None


STORE = SessionStore(root=root, find=find, open=open_session)
