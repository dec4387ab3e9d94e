"""The session store contract: how an adapter reads the sessions that its agent stored.

Stores only read; the agents own their files. A store yields the facts that a codec would emit, plus `StoredFact` values
for what only stores record, so messages, costs and events are derived the same way for every agent.
See docs/spec/run-api.md, section 6.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Protocol

import msgspec

from agent_mux.sdk import facts
from agent_mux.sdk.config import AgentPaths
from agent_mux.sdk.declarations import Declaration


class StoredFact(msgspec.Struct, frozen=True, gc=False):
    """Base of the facts that only session stores yield; codecs never emit them."""


class PromptSent(StoredFact, frozen=True):
    """The user sent a prompt, which begins a turn."""

    text: str
    id: str = ""
    """The agent's own id of the prompt, by which the session can be rewound to the state before it; empty: none."""


class FilesSaved(StoredFact, frozen=True):
    """The agent saved the files that it edits in a turn, so that a rewind to the turn's prompt can restore them."""

    prompt: str
    """`PromptSent.id` of the turn."""


class SessionDescribed(StoredFact, frozen=True):
    """Properties of the whole session. None: not stated. The last stated value applies."""

    session_id: str | None = None
    """The agent's own id of the session."""
    title: str | None = None
    cwd: str | None = None
    branch: str | None = None
    """Git branch that was checked out."""
    version: str | None = None
    """Version of the agent."""
    forked_from: str | None = None
    """The agent's own id of the session that this one was copied from."""
    part_of: str | None = None
    """The agent's own id of the parent session. This one is then the output of a sub-agent, not listed as a session."""


class ModelCalled(StoredFact, frozen=True):
    """The usage of one model call. It replaces an earlier fact with the same key, because agents write calls twice."""

    key: str
    """Id of the call, from the agent or its provider, equal in all copies of the session; empty: none."""
    model: str
    """The agent's name of the model; empty: unknown."""
    usage: facts.Usage
    usd: float | None = None
    """Cost in US dollars as the agent reports it; None: not reported."""
    is_inside: bool = False
    """Whether a sub-agent made the call: its cost counts, but it is not a call of the main agent."""


class SessionCost(StoredFact, frozen=True):
    """The agent's own total cost of the session so far. The last value applies."""

    usd: float
    """Cost in US dollars."""


class UnknownRow(StoredFact, frozen=True):
    """The store cannot read a row that may be part of the conversation.

    A session of which nothing else is read is reported as unreadable, with the kinds of these rows.
    """

    kind: str
    """Type of the row, as the agent names it."""


SessionFact = facts.Fact | StoredFact


class SessionEntry(NamedTuple):
    """One fact of a stored session with its time."""

    at: int | None
    """Milliseconds since the epoch; None: the store has no time for it."""
    fact: SessionFact


class FoundSession(NamedTuple):
    """A stored session, found by name, size and time without reading it."""

    path: Path
    """File that contains the session, possibly with others."""
    key: str
    """Identifies the session within the file; empty if the file contains only this one."""
    size: int
    """Bytes of the file, or another number that grows when entries are added."""
    modified: int
    """Time of the last change in nanoseconds since the epoch."""


class SessionReader(Protocol):
    """Reads one session from its beginning, in bounded memory."""

    def read(self) -> Iterator[SessionEntry]:
        """Yield the entries up to the current end; a later call continues from there.

        Raises `UnreadableSessionError` if the file is not a session of this agent or has an unsupported newer format,
        and `OSError`.
        """
        ...


class UnreadableSessionError(Exception):
    """The file is not a session, or cannot be read. The message is a phrase with the reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionStore(Declaration):
    """Finds and opens the stored sessions of one agent."""

    root: Callable[[AgentPaths], Path]
    """Returns the directory or database of the sessions, which need not exist."""
    find: Callable[[AgentPaths], Iterator[FoundSession]]
    """Yields all sessions, without reading them. Raises `OSError` if the directory cannot be read."""
    open: Callable[[FoundSession], SessionReader]
    """Returns a reader that begins at the start of the session."""
    has_quota: bool = False
    """Whether sessions have reports of the account's quota."""


_TURN_ENDS = facts.TurnDone | facts.TurnFailed | facts.TurnStopped | facts.TurnLimitHit
_TURN_BEGINS = PromptSent | facts.TurnBegin


class TurnEndBuffer:
    """Moves the end of each turn after all other facts of the turn."""

    def __init__(self) -> None:
        self._held: SessionEntry | None = None

    def pass_on(self, at: int | None, read: Iterable[SessionFact]) -> Iterator[SessionEntry]:
        """Yield the facts without ends of turns, which are held back until another turn begins."""
        for fact in read:
            if isinstance(fact, _TURN_ENDS):
                self._held = SessionEntry(at, fact)
                continue
            if isinstance(fact, _TURN_BEGINS):
                yield from self.release()
            yield SessionEntry(at, fact)

    def forget(self) -> None:
        """Discard the held end, because the turn continues."""
        self._held = None

    def release(self) -> Iterator[SessionEntry]:
        """Yield the held end, if any: the turn is complete, or the store has no more entries for now."""
        held, self._held = self._held, None
        if held is not None:
            yield held
