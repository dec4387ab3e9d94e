"""Session summaries: one row of a listing per session, filters over them, and lookup by id.

A summary is made by reading a session once, in bounded memory.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta

from agent_mux.errors import AgentMuxError
from agent_mux.events.base import CostRecord
from agent_mux.sdk import facts
from agent_mux.sdk.checked import Checked
from agent_mux.sdk.models import Price
from agent_mux.sdk.sessions import (
    FoundSession,
    ModelCalled,
    PromptSent,
    SessionCost,
    SessionDescribed,
    SessionEntry,
    SessionReader,
    UnknownRow,
)
from agent_mux.sessions.spending import CallCollector, PricedCall, UsageTotals

MAX_TITLE_LENGTH = 120  # characters
MIN_PREFIX_LENGTH = 4  # characters of an id that suffice to find its session
When = datetime | int
"""Milliseconds since the epoch, or a datetime (local time if it has no time zone)."""


class SessionSummary(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, kw_only=True):
    """The identity, origin, size and cost of a stored session."""

    id: Annotated[str, Meta(description="Unified id: `<agent>:<native id>`.")]
    agent: str
    """Registered name of the agent."""
    native_id: Annotated[str, Meta(description="The agent's own id, which resumes the session.")]
    title: Annotated[
        str, Meta(description="Title from the agent or a person, else the beginning of the first prompt.")
    ] = ""
    cwd: str | None = None
    """Working directory of the session; None if the agent does not store it."""
    branch: Annotated[str | None, Meta(description="The git branch that was checked out.")] = None
    agent_version: str | None = None
    """Version of the agent that wrote the session."""
    forked_from: Annotated[
        str | None, Meta(description="Unified id of the session from which this one was forked.")
    ] = None
    created_at: Annotated[int | None, Meta(description="Milliseconds since the epoch, like `updated_at`.")] = None
    updated_at: int
    """Time of the last entry, in milliseconds since the epoch."""
    turn_count: int = 0
    """Number of prompts."""
    message_count: Annotated[int, Meta(description="Number of prompts and answers.")] = 0
    tool_call_count: int = 0
    """Number of tool calls."""
    models: Annotated[tuple[str, ...], Meta(description="Models in the order of their first use.")] = ()
    cost: CostRecord
    """Cost in US dollars and tokens, with its source."""
    path: Annotated[str, Meta(description="The file that contains the session.")]
    tags: Annotated[
        tuple[str, ...],
        Meta(
            description=(
                "Tags of the runs of this session (see `agent_mux.sessions.tags`); not part of the cached summary."
            )
        ),
    ] = ()


class SummarizedSession(msgspec.Struct, frozen=True):
    """A summary and the model calls of which its cost is the sum."""

    summary: SessionSummary
    calls: tuple[PricedCall, ...]
    is_part: bool = False
    """Whether this is a part of another session, such as the work of a sub-agent."""
    unknown_rows: tuple[str, ...] = ()
    """Kinds of rows that the store cannot read."""

    @property
    def is_session(self) -> bool:
        """Whether this is a session of its own with content; agents also create files that they never use."""
        summary = self.summary
        return not self.is_part and bool(summary.message_count or summary.tool_call_count or self.calls)


class Summarizer:
    """Reads a session and produces its summary."""

    def __init__(self, prices: Mapping[str, Price]) -> None:
        self._calls = CallCollector(prices)
        self._description: dict[str, str] = {}
        self._first_prompt = ""
        self._models: dict[str, None] = {}
        self._unknown_rows: dict[str, None] = {}
        self._turns = self._messages = self._tools = 0
        self._first: int | None = None
        self._last = 0
        self._at: int | None = None
        self._handlers: dict[type, Callable[[Any], None]] = {
            SessionDescribed: self._describe,
            PromptSent: self._add_prompt,
            ModelCalled: self._add_model_call,
            SessionCost: self._set_total,
            facts.WholeText: self._add_answer,
            facts.ToolReady: self._add_tool_call,
            facts.McpBegin: self._add_tool_call,
            facts.SubagentBegin: self._add_tool_call,
            UnknownRow: lambda fact: self._unknown_rows.setdefault(fact.kind),
        }

    def read(self, cursor: SessionReader) -> None:
        """Read all entries that the cursor yields."""
        for entry in cursor.read():
            self.receive(entry)

    def receive(self, entry: SessionEntry) -> None:
        """Process one entry; entries must arrive in stored order."""
        at = self._at = entry.at
        if at is not None:
            self._first = at if self._first is None else min(self._first, at)
            self._last = max(self._last, at)
        handler = self._handlers.get(entry.fact.__class__)
        if handler is not None:
            handler(entry.fact)

    def _describe(self, fact: SessionDescribed) -> None:
        fields = msgspec.structs.asdict(fact)
        self._description.update({name: value for name, value in fields.items() if value is not None})

    def _add_prompt(self, fact: PromptSent) -> None:
        self._turns += 1
        self._messages += 1
        self._first_prompt = self._first_prompt or fact.text.strip()

    def _add_answer(self, _: facts.WholeText) -> None:
        self._messages += 1

    def _add_tool_call(self, _: facts.Fact) -> None:
        self._tools += 1

    def _add_model_call(self, fact: ModelCalled) -> None:
        if fact.model:
            self._models.setdefault(fact.model)
        self._calls.add(self._at, fact)

    def _set_total(self, fact: SessionCost) -> None:
        self._calls.total = fact.usd

    @property
    def native_id(self) -> str:
        """The agent's own session id; empty if the session contains none."""
        return self._description.get("session_id", "")

    def result(self, agent: str, found: FoundSession) -> SummarizedSession:
        """Return the summary of what was read."""
        description, calls = self._description, self._calls.calls()
        parent = description.get("forked_from")
        summary = SessionSummary(
            id=f"{agent}:{self.native_id}",
            agent=agent,
            native_id=self.native_id,
            title=description.get("title") or _shorten(self._first_prompt),
            cwd=description.get("cwd"),
            branch=description.get("branch"),
            agent_version=description.get("version"),
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
        is_part = "part_of" in description
        return SummarizedSession(summary, calls, is_part, tuple(self._unknown_rows))


def _shorten(prompt: str) -> str:
    title = " ".join(prompt.split())
    return title if len(title) <= MAX_TITLE_LENGTH else title[: MAX_TITLE_LENGTH - 1] + "…"


# -- filters


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionFilter(Checked):
    """Conditions that a session must all meet. A condition that is None always holds."""

    agent: str | None = None
    """Name or alias of the agent."""
    since: When | None = None
    """Changed at this time or later."""
    until: When | None = None
    """Changed before this time."""
    model: str | None = None
    """Used this model."""
    tags: tuple[str, ...] = ()
    """Has all of these tags."""
    cwd: str | None = None
    """Ran in this directory or below it."""
    directory: Path | None = None
    """Search this copy of the agent's own directory instead of the default one."""

    def matches(self, summary: SessionSummary) -> bool:
        """Return whether the session meets the conditions, except `agent` and `directory`."""
        return (
            self.has_time(summary.updated_at)
            and (self.model is None or self.model in summary.models)
            and set(self.tags) <= set(summary.tags)
            and (self.cwd is None or _is_below(summary.cwd, self.cwd))
        )

    def has_time(self, at: int) -> bool:
        """Return whether a time, in milliseconds since the epoch, lies between `since` and `until`."""
        return (self.since is None or at >= _milliseconds(self.since)) and (
            self.until is None or at < _milliseconds(self.until)
        )


ALL = SessionFilter()


def _milliseconds(when: When) -> int:
    return when if isinstance(when, int) else round(when.timestamp() * 1000)


def _is_below(cwd: str | None, directory: str) -> bool:
    return cwd is not None and (cwd == directory or cwd.startswith(directory.rstrip("/") + "/"))


# -- lookup by id

_Session = TypeVar("_Session")


def choose_session(
    session: str, native_id: str, known: Iterable[_Session], summary_of: Callable[[_Session], SessionSummary]
) -> _Session:
    """Return the session with this id, or the only one whose id begins with it.

    Args:
        session: The id as the user gave it, for error messages.
        native_id: The part of it that is the agent's own id, or its beginning.
        known: The sessions to choose from.
        summary_of: Returns the summary of one of them.

    Raises:
        AgentMuxError: SESSION_NOT_FOUND if no session, or more than one, matches.
    """
    exact: dict[str, _Session] = {}
    by_prefix: dict[str, _Session] = {}
    for candidate in known:
        summary = summary_of(candidate)
        if summary.native_id == native_id:
            matches = exact
        elif len(native_id) >= MIN_PREFIX_LENGTH and summary.native_id.startswith(native_id):
            matches = by_prefix
        else:
            continue
        # Copies in several places can share an id; the one that changed last is used.
        if summary.id not in matches or summary.updated_at > summary_of(matches[summary.id]).updated_at:
            matches[summary.id] = candidate
    candidates = exact or by_prefix
    if len(candidates) != 1:
        raise AgentMuxError("SESSION_NOT_FOUND", _not_found_message(session, sorted(candidates)))
    return next(iter(candidates.values()))


def only_of(found: Sequence[SessionSummary]) -> SessionSummary:
    """Return the first session. Raises SESSION_NOT_FOUND if there is none."""
    if not found:
        raise AgentMuxError("SESSION_NOT_FOUND", "no stored session matches; list them with `amux sessions list`")
    return found[0]


def _not_found_message(session: str, candidates: Sequence[str]) -> str:
    if not candidates:
        return f"no stored session has the id {session!r}; list the sessions with `amux sessions list`"
    ids = ", ".join(candidates[:5])
    return f"{session!r} matches {len(candidates)} sessions ({ids}); pass more characters of the id"
