"""Stored messages of one session, as facts.

Messages of the role `user` are not always prompts: Hermes stores reports of background work, which begin turns of their
own, summaries and reminders under the same role. When the context is compressed, the messages stay in place, and those
that were kept are stored a second time after the summary. A fork copies only the texts: its tool calls and their
results can no longer be matched.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from sqlite3 import Row
from typing import Any

from agent_mux.sdk import facts
from agent_mux.sdk.session_files import parse_timestamp
from agent_mux.sdk.sessions import PromptSent, SessionEntry, SessionFact, TurnEndBuffer
from agent_mux_adapters._dialects.tolerant import mapping, rows, text
from agent_mux_adapters.hermes.mcp_servers import HermesMcpServers
from agent_mux_adapters.hermes.subagents import SUBAGENT_NAME, HermesSubagents, background_id, goals_of
from agent_mux_adapters.hermes.tools import DELEGATION, HermesCall, HermesTools
from agent_mux_adapters.hermes.usage import HermesUsage

_STRUCTURED_PREFIX = "\x00json:"
"""Begins content that is a list of parts instead of text."""
_INTERRUPTED_PREFIX = "Operation interrupted"
"""Begins the last message of a turn that was interrupted between two model calls."""
_SUMMARY_PREFIXES = ("[CONTEXT COMPACTION", "[CONTEXT SUMMARY]")
_REMINDER_PREFIXES = ("[System: ", "[Your active task list was preserved")
_LIMIT_PREFIX = "You've reached the maximum number of tool-calling iterations"
_BACKGROUND_PREFIX = "[IMPORTANT: Background process "
_DELEGATION_PREFIX = "[ASYNC DELEGATION "
_BEFORE_ID = "COMPLETE — "


class StoredMessages:
    """Reads the messages of one session, row by row."""

    def __init__(self, cwd: str, *, gives_reasons: bool = False) -> None:
        """Set `gives_reasons` when the session has finish reasons: a final message without one was interrupted."""
        self._tools = HermesTools(cwd, HermesMcpServers())
        self._subagents = HermesSubagents(HermesUsage())
        self._open: dict[str, HermesCall] = {}
        self._closing = TurnEndBuffer()
        self._gives_reasons = gives_reasons
        self._is_limited = False
        self._compressed: set[int] = set()
        """Hashes of the messages that a summary replaced."""
        self._may_repeat = False
        """Whether the next message may be the second copy of one of them."""
        self._readers: Mapping[str, Callable[[Row], Iterable[SessionFact]]] = {
            "user": self._user,
            "assistant": self._assistant,
            "tool": self._result,
        }

    def read(self, row: Row) -> Iterator[SessionEntry]:
        """Yield the entries of one message."""
        at = time_of(row["timestamp"])
        reader = self._readers.get(row["role"])
        if reader is None or self._is_skipped(row):
            return iter(())
        return self._closing.pass_on(at, reader(row))

    def close(self) -> Iterator[SessionEntry]:
        """Yield the closing that was held back, as no message follows for now."""
        return self._closing.release()

    def _is_skipped(self, row: Row) -> bool:
        """Return whether the message was withdrawn or is the second copy of another row."""
        key = hash((row["role"], row["content"], row["tool_call_id"], row["tool_calls"]))
        if row["compacted"]:
            self._compressed.add(key)
            self._may_repeat = True
            return False
        if not row["active"]:
            return True
        is_repeated = self._may_repeat and key in self._compressed
        # Summaries and reminders may stand before the copies and between them.
        between_copies = (*_SUMMARY_PREFIXES, *_REMINDER_PREFIXES)
        self._may_repeat = is_repeated or (self._may_repeat and _content(row).startswith(between_copies))
        return is_repeated

    def _user(self, row: Row) -> Iterable[SessionFact]:
        content = _content(row)
        if content.startswith(_SUMMARY_PREFIXES):
            yield facts.ContextCompacted(content)
        elif content.startswith(_LIMIT_PREFIX):
            self._is_limited = True
        elif content.startswith((_DELEGATION_PREFIX, _BACKGROUND_PREFIX)):
            yield facts.TurnBegin()
            if content.startswith(_DELEGATION_PREFIX):
                yield facts.SubagentDone(content.partition(_BEFORE_ID)[2].partition("]")[0], content)
        elif not content.startswith(_REMINDER_PREFIXES):
            self._is_limited = False
            yield PromptSent(content)

    def _assistant(self, row: Row) -> Iterable[SessionFact]:
        content, calls = _content(row).strip(), rows(_parsed(row["tool_calls"]))
        if content.startswith(_SUMMARY_PREFIXES):
            yield facts.ContextCompacted(content)
            return
        self._closing.forget()
        has_reason = bool(row["finish_reason"])
        self._gives_reasons = self._gives_reasons or has_reason
        if content.startswith(_INTERRUPTED_PREFIX) and not has_reason:
            yield facts.TurnStopped()
            return
        yield facts.StepBegin()
        thinking = text(row["reasoning"]) or text(row["reasoning_content"])
        if thinking.strip():
            yield facts.WholeThinking(thinking)
        if content:
            yield facts.WholeText(content)
        for call in calls:
            yield from self._call(call)
        if not calls:
            yield self._turn_end(has_reason=has_reason)

    def _turn_end(self, *, has_reason: bool) -> facts.Fact:
        if self._is_limited:
            return facts.TurnLimitHit()
        return facts.TurnDone() if has_reason or not self._gives_reasons else facts.TurnStopped()

    def _call(self, native: Mapping[str, Any]) -> Iterable[SessionFact]:
        function = mapping(native.get("function"))
        arguments = mapping(_parsed(function.get("arguments")))
        call = HermesCall(id=text(native.get("id")), name=text(function.get("name")), arguments=arguments)
        self._open[call.id] = call
        return () if call.name == DELEGATION else self._tools.start_stored(call.id, call.name, arguments)

    def _result(self, row: Row) -> Iterable[SessionFact]:
        call = self._open.pop(text(row["tool_call_id"]), None)
        if call is None:
            return ()
        content = _content(row)
        payload = {"tool_id": call.id, "args": call.arguments, "result": _parsed(content, content)}
        return self._delegation(call, payload) if call.name == DELEGATION else self._tools.end(call, payload)

    def _delegation(self, call: HermesCall, payload: Mapping[str, Any]) -> Iterable[SessionFact]:
        started, goals = background_id(payload), goals_of(call.arguments or {})
        if started is not None:
            return (facts.SubagentBegin(started, SUBAGENT_NAME, goals),)
        returned = self._subagents.delegation_returned(payload)
        failed = [fact for fact in returned if not isinstance(fact, facts.Ignored)]
        report = str(payload["result"])
        return failed or (facts.SubagentBegin(call.id, SUBAGENT_NAME, goals), facts.SubagentDone(call.id, report))


def time_of(seconds: Any) -> int | None:
    """Convert seconds to milliseconds; None when the value is not a number."""
    return parse_timestamp(seconds * 1000) if isinstance(seconds, int | float) else None


def _content(row: Row) -> str:
    content = text(row["content"])
    if not content.startswith(_STRUCTURED_PREFIX):
        return content
    parts = rows(_parsed(content.removeprefix(_STRUCTURED_PREFIX)))
    return "\n".join(text(part.get("text")) for part in parts if part.get("type") == "text")


def _parsed(value: Any, default: Any = None) -> Any:
    """Return the value of a JSON text; the default when it is not a text or not valid."""
    try:
        return json.loads(value) if isinstance(value, str) else default
    except (ValueError, RecursionError):
        return default
