"""What stored sessions cost, grouped. Each model call counts once, however many copies of it there are.

Where two sessions part: a fork from its origin, or two agents with the same task.


Finding sessions by what was said and done in them.


A session that goes on: its events, as the agent stores them.
"""

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from difflib import SequenceMatcher
from itertools import takewhile
from pathlib import Path
from typing import Any, Literal, Self

import anyio
import msgspec

from agent_mux.events import AgentEvent
from agent_mux.sdk import facts
from agent_mux.sdk.session_databases import LOG
from agent_mux.sdk.sessions import Cursor, Prompted, UnreadableError
from agent_mux.sessions.conversation import Session, SessionMessage
from agent_mux.sessions.events import SessionEvents
from agent_mux.sessions.library import SessionLibrary, StoredSession
from agent_mux.sessions.spending import PricedCall, UsageTotals
from agent_mux.sessions.summary import ALL, SessionFilter, SessionSummary

GroupBy = Literal["agent", "model", "day", "tag"]
UNKNOWN = "unknown"
UNTAGGED = "(no tag)"


class CostReport(dict[str, UsageTotals]):
    """Sums by group."""

    def __init__(self, groups: Mapping[str, UsageTotals], total: UsageTotals) -> None:
        super().__init__(groups)
        self.total = total
        """Each call once: a session with two tags is in the sums of both."""


def cost_report(library: SessionLibrary, wanted: SessionFilter = ALL, *, group_by: GroupBy = "agent") -> CostReport:
    """The sums by group, the dearest first; days in their order. `total` has them all.

    Times and models are those of the calls: a session that went on for two days counts on both, with what was spent on
    each. Raises as `SessionLibrary.list` does.
    """
    # A call can be copied into a session that nobody asks for, or out of one: all are looked at. It belongs to the one
    # that was there first; a copy begins when its origin did, and goes on for longer.
    sessions = sorted(
        library.known(replace(wanted, since=None, until=None, model=None, cwd=None, tags=())),
        key=lambda known: (known.summary.created_at or 0, known.summary.updated_at),
    )
    sums: dict[str, UsageTotals] = {}
    total = UsageTotals()
    counted: set[tuple[str, str]] = set()
    for known in sessions:
        agent, summary = known.adapter.agent, known.summary
        is_wanted = replace(wanted, since=None, until=None, model=None).matches(summary)
        for call in known.calls:
            if call.key and (agent, call.key) in counted:
                continue
            counted.add((agent, call.key))
            at = call.at or summary.updated_at
            if is_wanted and wanted.has_time(at) and wanted.model in {None, call.model}:
                total.add(call)
                for group in _groups(group_by, summary, call, at):
                    sums.setdefault(group, UsageTotals()).add(call)
    by_name = sorted(sums.items())
    by_cost = sorted(by_name, key=lambda item: (-item[1].usd, -item[1].calls))
    return CostReport(dict(by_name if group_by == "day" else by_cost), total)


def _groups(group_by: GroupBy, summary: SessionSummary, call: PricedCall, at: int) -> tuple[str, ...]:
    match group_by:
        case "agent":
            return (summary.agent,)
        case "model":
            return (call.model or UNKNOWN,)
        case "day":
            return (datetime.fromtimestamp(at / 1000).astimezone().date().isoformat(),)
        case "tag":
            return summary.tags or (UNTAGGED,)


class Difference(msgspec.Struct, frozen=True, rename="camel", tag_field="op", tag="change"):
    """A part of one session that the other one has not, or has otherwise."""

    at: int
    """Where in the first session: the number of its first message, from 0."""
    removed: list[SessionMessage]
    """Messages that only the first one has."""
    added: list[SessionMessage]
    """Messages that only the second one has."""


class SessionDiff(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """Two sessions side by side."""

    first: SessionSummary
    second: SessionSummary
    common: int
    """Messages that both begin with."""
    changes: list[Difference]

    @property
    def is_same(self) -> bool:
        """The same was said and done in both."""
        return not self.changes


def diff(first: Session, second: Session) -> SessionDiff:
    """Compare what was said and done; times, models and the ids of calls do not matter."""
    left, right = _keys(first.messages), _keys(second.messages)
    common = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(left, right, strict=False)))
    matcher = SequenceMatcher(None, left[common:], right[common:], autojunk=False)
    changes = [
        Difference(common + a, first.messages[common + a : common + b], second.messages[common + c : common + d])
        for kind, a, b, c, d in matcher.get_opcodes()
        if kind != "equal"
    ]
    return SessionDiff(first=first.summary, second=second.summary, common=common, changes=changes)


def _keys(messages: Sequence[SessionMessage]) -> list[bytes]:
    return [msgspec.json.encode(_key(message)) for message in messages]


def _key(message: SessionMessage) -> tuple[Literal["user", "assistant"], str, list[Any]]:
    return message.role, message.text, [(tool.name, tool.input, tool.output, tool.error) for tool in message.tools]


AROUND = 60  # characters of an excerpt on either side of what was found
SearchOrder = Literal["relevance", "date", "cost"]


class Hit(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """A session in which it was found."""

    session: SessionSummary
    count: int
    """How often."""
    excerpt: str
    """Where it was found first, with a few words around it."""


def search(
    library: SessionLibrary,
    text: str,
    wanted: SessionFilter = ALL,
    *,
    sort: SearchOrder = "relevance",
    limit: int | None = 50,
) -> list[Hit]:
    """The sessions in which a text occurs: in a prompt, an answer, a thought, or what a tool was given or answered.

    Upper and lower case are the same. By relevance, sessions come first in which it occurs most often. Raises as
    `SessionLibrary.list` does.
    """
    needle = text.casefold()
    looks = (_look_into(library, known, needle) for known in library.known(wanted))
    hits = sorted(
        (hit for hit in looks if hit is not None),
        key=lambda hit: (-_rank(hit, sort), -hit.session.updated_at, hit.session.id),
    )
    return hits[:limit]


def _rank(hit: Hit, sort: SearchOrder) -> float:
    match sort:
        case "relevance":
            return hit.count
        case "date":
            return hit.session.updated_at
        case "cost":
            return hit.session.cost.total_usd


def _look_into(library: SessionLibrary, known: StoredSession, needle: str) -> Hit | None:
    count, excerpt = 0, ""
    try:
        for said in _said(library, known):
            found = said.casefold().count(needle)
            if found and not count:
                excerpt = _around(said, needle)
            count += found
    except (OSError, UnreadableError):
        return None  # it was there a moment ago
    return Hit(session=known.summary, count=count, excerpt=excerpt) if count else None


def _said(library: SessionLibrary, known: StoredSession) -> Iterator[str]:
    for entry in library.open(known).read():
        match entry.fact:
            case Prompted(text) | facts.Text(text) | facts.Thinking(text):
                yield text
            case facts.ToolReady(input=value) | facts.McpBegin(input=value):
                yield _words(value)
            case facts.ToolDone(output=value, error=error) | facts.McpDone(output=value, error=error):
                yield error if error is not None else _words(value)
            case facts.SubagentBegin(prompt=text) | facts.SubagentDone(summary=text):
                yield text


def _words(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None else msgspec.json.encode(value).decode()


def _around(said: str, needle: str) -> str:
    at = said.casefold().find(needle)
    begin, end = max(at - AROUND, 0), at + len(needle) + AROUND
    cut = " ".join(said[begin:end].split())
    return f"{'…' if begin else ''}{cut}{'…' if end < len(said) else ''}"


LOOK_EVERY = 0.2  # seconds between two looks at the file


class Watcher:
    """The events of a session: those that are there, and then the others as they come.

    It has no end: no store tells that a session is over, and whoever resumes it can go on at any time. An iterator and
    not a generator: it may be dropped at any point.
    """

    def __init__(self, known: StoredSession, cursor: Cursor, *, from_start: bool = True) -> None:
        """`cursor`: at its beginning. `from_start`: with what is there already, or else with what comes next."""
        self._path = known.found.path
        self._cursor = cursor
        self._events = SessionEvents(known.adapter, known.summary)
        self._waiting: deque[AgentEvent] = deque()
        self._is_news = from_start
        self._seen: tuple[tuple[int, int], ...] | None = None

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> AgentEvent:
        """The next event. Raises `OSError` when the file is gone, `UnreadableError` when it is no session any more."""
        while not self._waiting:
            state = await anyio.to_thread.run_sync(_state_of, self._path)
            if state == self._seen:
                await anyio.sleep(LOOK_EVERY)
                continue
            events = await anyio.to_thread.run_sync(self._read)
            self._seen = state
            if self._is_news:
                self._waiting.extend(events)
            self._is_news = True
        return self._waiting.popleft()

    def _read(self) -> list[AgentEvent]:
        return list(self._events.read(self._cursor))


def _state_of(path: Path) -> tuple[tuple[int, int], ...]:
    log = path.with_name(path.name + LOG)
    found = [path.stat(), *([log.stat()] if log.exists() else [])]
    return tuple((status.st_size, status.st_mtime_ns) for status in found)
