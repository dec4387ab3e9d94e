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


class StoredFact(msgspec.Struct, frozen=True, gc=False):
    """What only stores know; no run tells it."""


class Prompted(StoredFact, frozen=True):
    """Somebody asked the agent for something: a turn begins."""

    text: str


class Described(StoredFact, frozen=True):
    """Something about the session as a whole. What is None was not said; the last word counts."""

    session_id: str | None = None
    """The agent's own id."""
    title: str | None = None
    cwd: str | None = None
    branch: str | None = None
    """The git branch that was checked out."""
    version: str | None = None
    """Of the agent."""
    forked_from: str | None = None
    """The agent's own id of the session that this one began as a copy of."""
    part_of: str | None = None
    """The agent's own id of the session that it belongs to: this is what a sub-agent said, and no session."""


class ModelCalled(StoredFact, frozen=True):
    """What one model call used. Under a key that was told before, it replaces what was told: agents write twice."""

    key: str
    """Of the agent or its provider, and the same in every copy of the session. Empty: there is none."""
    model: str
    """As the agent names it; empty where nobody knows."""
    usage: facts.Usage
    usd: float | None = None
    """US dollars, as the agent says. None: it does not."""
    is_inside: bool = False
    """Of a sub-agent: it costs, but is no call of the agent that it works for."""


class SpentSoFar(StoredFact, frozen=True):
    """The agent's own figure for the whole session until now. The last word counts."""

    usd: float
    """US dollars."""


Told = facts.Fact | StoredFact


class Entry(NamedTuple):
    """One thing that a session tells."""

    at: int | None
    """Milliseconds since the epoch; None where the store does not say."""
    fact: Told


class Found(NamedTuple):
    """A session that is there. Nobody has looked into it yet."""

    path: Path
    """The file that holds it, perhaps with others."""
    key: str
    """Which of them it is; empty where it has the file to itself."""
    size: int
    """Bytes of the file, or whatever else tells that something was added."""
    modified: int
    """When it was changed last, in nanoseconds since the epoch."""


class Cursor(Protocol):
    """Reads one session from its beginning, in bounded memory."""

    def read(self) -> Iterator[Entry]:
        """What was not read yet, up to the present end. Called again later, it goes on from there.

        Raises `UnreadableError` where the file is no session of this agent, or one from a future that is not
        understood, and `OSError`.
        """
        ...


class UnreadableError(Exception):
    """This is no session, or none that can be read: says why, as half a sentence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionStore:
    """The sessions of one agent."""

    root: Callable[[AgentPaths], Path]
    """The directory or database where they are, whether it is there or not."""
    find: Callable[[AgentPaths], Iterator[Found]]
    """All of them, by names, sizes and times alone. Raises `OSError` where the place cannot be read."""
    open: Callable[[Found], Cursor]


_CLOSING = facts.TurnDone | facts.TurnFailed | facts.TurnStopped | facts.TurnLimitHit
_NEXT = Prompted | facts.TurnBegin


class HeldClosing:
    """Passes on what a reader tells, each turn's end behind everything else of it."""

    def __init__(self) -> None:
        self._held: Entry | None = None

    def passed_on(self, at: int | None, told: Iterable[Told]) -> Iterator[Entry]:
        """These, without the end of the turn, and behind that of the turn before where another one begins."""
        for fact in told:
            if isinstance(fact, _CLOSING):
                self._held = Entry(at, fact)
                continue
            if isinstance(fact, _NEXT):
                yield from self.release()
            yield Entry(at, fact)

    def forget(self) -> None:
        """The turn goes on."""
        self._held = None

    def release(self) -> Iterator[Entry]:
        """Nothing follows, for now."""
        held, self._held = self._held, None
        if held is not None:
            yield held
