"""What a session was about, and what it came to: one row of a listing. Made by reading it once, in bounded memory.

Which sessions, and where to look for them.


Which session an id means: its own, or the beginning of it.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from agent_mux.errors import AgentMuxError
from agent_mux.events.base import CostRecord
from agent_mux.sdk import facts
from agent_mux.sdk.models import Price
from agent_mux.sdk.sessions import Cursor, Described, Entry, Found, ModelCalled, Prompted, SpentSoFar
from agent_mux.sessions.spending import CallCollector, PricedCall, UsageTotals

LONGEST_TITLE = 120  # characters


class SessionSummary(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, kw_only=True):
    """One stored session."""

    id: str
    """Unified: `<agent>:<native id>`."""
    agent: str
    native_id: str
    """As the agent names it: what resumes it."""
    title: str = ""
    """As the agent or a person named it, else how its first prompt begins."""
    cwd: str | None = None
    branch: str | None = None
    """The git branch that was checked out."""
    agent_version: str | None = None
    forked_from: str | None = None
    """Unified id of the session that it began as a copy of."""
    created_at: int | None = None
    """Milliseconds since the epoch, as updated_at."""
    updated_at: int
    turn_count: int = 0
    message_count: int = 0
    """Prompts and answers."""
    tool_call_count: int = 0
    models: tuple[str, ...] = ()
    """In the order of their first use."""
    cost: CostRecord
    path: str
    """The file that holds it."""
    tags: tuple[str, ...] = ()
    """Of the runs that it came of: see `agent_mux.sessions.tags`. Never remembered with the rest."""


class SummarizedSession(msgspec.Struct, frozen=True):
    """A summary and the calls that its cost is made of."""

    summary: SessionSummary
    calls: tuple[PricedCall, ...]
    is_part: bool = False
    """Of another session."""

    @property
    def is_session(self) -> bool:
        """It is one of its own, and something was said or done in it: agents begin files that they never use."""
        told = self.summary
        return not self.is_part and bool(told.message_count or told.tool_call_count or self.calls)


class Summarizer:
    """Reads a session for its summary."""

    def __init__(self, prices: Mapping[str, Price]) -> None:
        self._tally = CallCollector(prices)
        self._said: dict[str, str] = {}
        self._first_prompt = ""
        self._models: dict[str, None] = {}
        self._turns = self._messages = self._tools = 0
        self._first: int | None = None
        self._last = 0
        self._at: int | None = None
        self._handlers: dict[type, Callable[[Any], None]] = {
            Described: self._described,
            Prompted: self._prompted,
            ModelCalled: self._called,
            SpentSoFar: self._spent,
            facts.Text: self._answered,
            facts.ToolReady: self._used,
            facts.McpBegin: self._used,
            facts.SubagentBegin: self._used,
        }

    def read(self, cursor: Cursor) -> None:
        """All that there is."""
        for entry in cursor.read():
            self.take(entry)

    def take(self, entry: Entry) -> None:
        """One more entry."""
        at = self._at = entry.at
        if at is not None:
            self._first = at if self._first is None else min(self._first, at)
            self._last = max(self._last, at)
        handler = self._handlers.get(entry.fact.__class__)
        if handler is not None:
            handler(entry.fact)

    def _described(self, fact: Described) -> None:
        self._said.update({name: value for name, value in msgspec.structs.asdict(fact).items() if value is not None})

    def _prompted(self, fact: Prompted) -> None:
        self._turns += 1
        self._messages += 1
        self._first_prompt = self._first_prompt or fact.text.strip()

    def _answered(self, _: facts.Text) -> None:
        self._messages += 1

    def _used(self, _: facts.Fact) -> None:
        self._tools += 1

    def _called(self, fact: ModelCalled) -> None:
        if fact.model:
            self._models.setdefault(fact.model)
        self._tally.called(self._at, fact)

    def _spent(self, fact: SpentSoFar) -> None:
        self._tally.total = fact.usd

    @property
    def native_id(self) -> str:
        """As the session itself has it; empty where it does not say."""
        return self._said.get("session_id", "")

    def result(self, agent: str, found: Found) -> SummarizedSession:
        """What came of it."""
        said, calls = self._said, self._tally.calls()
        parent = said.get("forked_from")
        summary = SessionSummary(
            id=f"{agent}:{self.native_id}",
            agent=agent,
            native_id=self.native_id,
            title=said.get("title") or _shortened(self._first_prompt),
            cwd=said.get("cwd"),
            branch=said.get("branch"),
            agent_version=said.get("version"),
            forked_from=None if parent is None else f"{agent}:{parent}",
            created_at=self._first,
            updated_at=self._last or found.modified // 1_000_000,
            turn_count=self._turns,
            message_count=self._messages,
            tool_call_count=self._tools,
            models=tuple(self._models),
            cost=UsageTotals.of(calls).record(),
            path=str(found.path),
        )
        return SummarizedSession(summary, calls, is_part="part_of" in said)


def _shortened(prompt: str) -> str:
    first = " ".join(prompt.split())
    return first if len(first) <= LONGEST_TITLE else first[: LONGEST_TITLE - 1] + "…"


When = datetime | int
"""Milliseconds since the epoch, or a time with its zone (without one: local time)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionFilter:
    """Conditions that all have to be met. None: whatever it is."""

    agent: str | None = None
    """Whose they are: a name or an alias."""
    since: When | None = None
    """Changed at this time or later."""
    until: When | None = None
    """Changed before this time."""
    model: str | None = None
    """One of its models is this one."""
    tags: tuple[str, ...] = ()
    """It has all of these."""
    cwd: str | None = None
    """It was held in this directory, or below."""
    directory: Path | None = None
    """Look into this copy of the agent's own directory, and nowhere else."""

    def matches(self, summary: SessionSummary) -> bool:
        """This is one of them, as far as the session itself says."""
        return (
            self.has_time(summary.updated_at)
            and (self.model is None or self.model in summary.models)
            and set(self.tags) <= set(summary.tags)
            and (self.cwd is None or _is_below(summary.cwd, self.cwd))
        )

    def has_time(self, at: int) -> bool:
        """A time, in milliseconds since the epoch, that is wanted."""
        return (self.since is None or at >= _milliseconds(self.since)) and (
            self.until is None or at < _milliseconds(self.until)
        )


ALL = SessionFilter()


def _milliseconds(when: When) -> int:
    return when if isinstance(when, int) else round(when.timestamp() * 1000)


def _is_below(cwd: str | None, directory: str) -> bool:
    return cwd is not None and (cwd == directory or cwd.startswith(directory.rstrip("/") + "/"))


SHORTEST_PREFIX = 4  # characters of an id that may stand for it
_Known = TypeVar("_Known")


def choose_session(
    session: str, native_id: str, known: Iterable[_Known], summary_of: Callable[[_Known], SessionSummary]
) -> _Known:
    """The one of these with this id, or the only one whose id begins so.

    `session` is what was asked for, `native_id` what of it names a session. Raises SESSION_NOT_FOUND: none, or several.
    """
    exact: dict[str, _Known] = {}
    begin_so: dict[str, _Known] = {}
    for one in known:
        summary = summary_of(one)
        if summary.native_id == native_id:
            found = exact
        elif len(native_id) >= SHORTEST_PREFIX and summary.native_id.startswith(native_id):
            found = begin_so
        else:
            continue
        # Of copies with one id, in several places, the one that was changed last.
        if summary.id not in found or summary.updated_at > summary_of(found[summary.id]).updated_at:
            found[summary.id] = one
    candidates = exact or begin_so
    if len(candidates) != 1:
        raise AgentMuxError("SESSION_NOT_FOUND", _not_one(session, sorted(candidates)))
    return next(iter(candidates.values()))


def _not_one(session: str, candidates: Sequence[str]) -> str:
    if not candidates:
        return f"no stored session has the id {session!r}; `amux sessions list` shows those there are"
    ids = ", ".join(candidates[:5])
    return f"{session!r} may be any of {len(candidates)} sessions ({ids}); give more of its id"
