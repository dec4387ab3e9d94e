"""The stored messages of one session, as facts.

Hermes speaks in the user's place, too: reports of what was done in the background begin turns that nobody asked for,
and everything else of the kind is no prompt. When the context is compressed, the messages stay where they are, and
those that were kept are stored once more behind the summary. A fork is a copy of the words alone: its tool calls and
their results have lost each other.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from sqlite3 import Row
from typing import Any

from agent_mux import facts
from agent_mux.sessions.closing import HeldClosing
from agent_mux.sessions.lines import milliseconds_of
from agent_mux.sessions.store import Entry, Prompted, Told
from agent_mux_adapters._dialects.tolerant import mapping, rows, text
from agent_mux_adapters.hermes.calls import DELEGATION, Call, Calls
from agent_mux_adapters.hermes.delegation import NAME, Delegation, background_id, goals_of
from agent_mux_adapters.hermes.meter import Meter
from agent_mux_adapters.hermes.servers import Servers

STRUCTURED = "\x00json:"
"""Begins content that is no text but a list of parts."""
INTERRUPTED = "Operation interrupted"
"""How Hermes' own last word begins, when a turn was interrupted between two answers."""
SUMMARY = ("[CONTEXT COMPACTION", "[CONTEXT SUMMARY]")
NUDGES = ("[System: ", "[Your active task list was preserved")
LIMIT_REACHED = "You've reached the maximum number of tool-calling iterations"
REPORT = "[IMPORTANT: Background process "
DELEGATED = "[ASYNC DELEGATION "
_ID_BEHIND = "COMPLETE — "


class StoredMessages:
    """Reads the messages of one session."""

    def __init__(self, cwd: str, *, gives_reasons: bool = False) -> None:
        """`gives_reasons`: its messages say why the model stopped. One that does not was broken off."""
        self._calls = Calls(cwd, Servers())
        self._delegation = Delegation(Meter())
        self._open: dict[str, Call] = {}
        self._closing = HeldClosing()
        self._gives_reasons = gives_reasons
        self._is_limited = False
        self._compressed: set[int] = set()
        """What is behind a summary."""
        self._may_repeat = False
        self._readers: Mapping[str, Callable[[Row], Iterable[Told]]] = {
            "user": self._user,
            "assistant": self._assistant,
            "tool": self._result,
        }

    def read(self, row: Row) -> Iterator[Entry]:
        """What a message says."""
        at = time_of(row["timestamp"])
        reader = self._readers.get(row["role"])
        if reader is None or self._is_elsewhere(row):
            return iter(())
        return self._closing.passed_on(at, reader(row))

    def close(self) -> Iterator[Entry]:
        """Nothing follows, for now."""
        return self._closing.release()

    def _is_elsewhere(self, row: Row) -> bool:
        """It was taken back, or is told in another row."""
        known = hash((row["role"], row["content"], row["tool_call_id"], row["tool_calls"]))
        if row["compacted"]:
            self._compressed.add(known)
            self._may_repeat = True
            return False
        if not row["active"]:
            return True
        is_repeated = self._may_repeat and known in self._compressed
        self._may_repeat = is_repeated or (self._may_repeat and _words(row).startswith((*SUMMARY, *NUDGES)))
        return is_repeated

    def _user(self, row: Row) -> Iterable[Told]:
        said = _words(row)
        if said.startswith(SUMMARY):
            yield facts.ContextCompacted(said)
        elif said.startswith(LIMIT_REACHED):
            self._is_limited = True
        elif said.startswith((DELEGATED, REPORT)):
            yield facts.TurnBegin()
            if said.startswith(DELEGATED):
                yield facts.SubagentDone(said.partition(_ID_BEHIND)[2].partition("]")[0], said)
        elif not said.startswith(NUDGES):
            self._is_limited = False
            yield Prompted(said)

    def _assistant(self, row: Row) -> Iterable[Told]:
        said, calls = _words(row).strip(), rows(_parsed(row["tool_calls"]))
        if said.startswith(SUMMARY):
            yield facts.ContextCompacted(said)
            return
        self._closing.forget()
        is_told_why = bool(row["finish_reason"])
        self._gives_reasons = self._gives_reasons or is_told_why
        if said.startswith(INTERRUPTED) and not is_told_why:
            yield facts.TurnStopped()
            return
        yield facts.StepBegin()
        thought = text(row["reasoning"]) or text(row["reasoning_content"])
        if thought.strip():
            yield facts.Thinking(thought)
        if said:
            yield facts.Text(said)
        for call in calls:
            yield from self._called(call)
        if not calls:
            yield self._end(is_told_why=is_told_why)

    def _end(self, *, is_told_why: bool) -> facts.Fact:
        if self._is_limited:
            return facts.TurnLimitHit()
        return facts.TurnDone() if is_told_why or not self._gives_reasons else facts.TurnStopped()

    def _called(self, said: Mapping[str, Any]) -> Iterable[Told]:
        function = mapping(said.get("function"))
        arguments = mapping(_parsed(function.get("arguments")))
        call = Call(id=text(said.get("id")), name=text(function.get("name")), arguments=arguments)
        self._open[call.id] = call
        return () if call.name == DELEGATION else self._calls.called(call.id, call.name, arguments)

    def _result(self, row: Row) -> Iterable[Told]:
        call = self._open.pop(text(row["tool_call_id"]), None)
        if call is None:
            return ()
        said = _words(row)
        told = {"tool_id": call.id, "args": call.arguments, "result": _parsed(said, said)}
        return self._delegated(call, told) if call.name == DELEGATION else self._calls.ended(call, told)

    def _delegated(self, call: Call, told: Mapping[str, Any]) -> Iterable[Told]:
        started, goals = background_id(told), goals_of(call.arguments or {})
        if started is not None:
            return (facts.SubagentBegin(started, NAME, goals),)
        failed = [fact for fact in self._delegation.called(told) if not isinstance(fact, facts.Ignored)]
        return failed or (facts.SubagentBegin(call.id, NAME, goals), facts.SubagentDone(call.id, str(told["result"])))


def time_of(seconds: Any) -> int | None:
    """As all times are told: in milliseconds."""
    return milliseconds_of(seconds * 1000) if isinstance(seconds, int | float) else None


def _words(row: Row) -> str:
    said = text(row["content"])
    if not said.startswith(STRUCTURED):
        return said
    parts = rows(_parsed(said.removeprefix(STRUCTURED)))
    return "\n".join(text(part.get("text")) for part in parts if part.get("type") == "text")


def _parsed(said: Any, otherwise: Any = None) -> Any:
    try:
        return json.loads(said) if isinstance(said, str) else otherwise
    except (ValueError, RecursionError):
        return otherwise
