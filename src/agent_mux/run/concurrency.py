"""How many runs may work at a time: all together, of each agent, and how many more may wait.

Places for runs that may work at a time, and the queue of those that wait for one.

Nobody waits while there is a place that it could take. Owners are served in turn (`FairQueue`), whatever the event loop
does; a run whose agent has no room is passed over until there is some.
"""

from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import anyio

from agent_mux.errors import AgentMuxError, FieldError, ValidationError
from agent_mux.run.fair_queue import FairQueue
from agent_mux.sdk.registry import AdapterRegistry

_COUNT = "a whole number >= 1"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConcurrencyLimits:
    """None: without limit."""

    total: int | None = None
    per_agent: int | None = None
    """Of each agent that `of_agent` does not name."""
    of_agent: Mapping[str, int] = field(default_factory=dict)
    """By registered name."""
    waiting: int | None = None

    def of(self, agent: str) -> int | None:
        """The limit of one agent."""
        return self.of_agent.get(agent, self.per_agent)


class Capacity:
    """What is taken of the limits."""

    def __init__(self, limits: ConcurrencyLimits) -> None:
        self._limits = limits
        self._taken: Counter[str] = Counter()
        self._total = 0

    def is_for(self, agent: str) -> bool:
        """One more run of this agent may work."""
        total, own = self._limits.total, self._limits.of(agent)
        return (total is None or self._total < total) and (own is None or self._taken[agent] < own)

    def take(self, agent: str) -> None:
        """A run of this agent works."""
        self._total += 1
        self._taken[agent] += 1

    def give_back(self, agent: str) -> None:
        """It works no more."""
        self._total -= 1
        self._taken[agent] -= 1

    def copy(self) -> "Capacity":
        """The same, to find out what would be."""
        twin = Capacity(self._limits)
        twin._taken, twin._total = Counter(self._taken), self._total
        return twin


def parse_limits(total: Any, per_agent: Any, waiting: Any, adapters: AdapterRegistry) -> ConcurrencyLimits:
    """The limits that a client was given. Raises `ValidationError` with every one that cannot be."""
    problems: list[FieldError] = []
    if total is not None and not _is_count(total):
        problems.append(FieldError("max_concurrent_runs", total, f"{_COUNT}, or None"))
    if waiting is not None and not _is_count(waiting, least=0):
        problems.append(FieldError("queue_limit", waiting, "a whole number >= 0, or None"))
    by_name = per_agent if isinstance(per_agent, Mapping) else {}
    if not (per_agent is None or by_name is per_agent or _is_count(per_agent)):
        problems.append(FieldError(_PER_AGENT, per_agent, f"{_COUNT}, numbers by agent, or None"))
    of_agent = _by_agent(by_name, adapters, problems)
    if problems:
        raise ValidationError(problems)
    each = None if isinstance(per_agent, Mapping) else per_agent
    return ConcurrencyLimits(total=total, per_agent=each, of_agent=of_agent, waiting=waiting)


_PER_AGENT = "max_concurrent_runs_per_agent"


def _by_agent(told: Mapping[Any, Any], adapters: AdapterRegistry, problems: list[FieldError]) -> dict[str, int]:
    limits: dict[str, int] = {}
    for name, most in told.items():
        path = f"{_PER_AGENT}.{name}"
        agent = _named(name, adapters)
        if agent is None:
            problems.append(FieldError(_PER_AGENT, name, "names of registered agents, or their aliases"))
        elif agent in limits:
            problems.append(FieldError(path, most, f"one limit: {agent} has one already"))
        elif not _is_count(most):
            problems.append(FieldError(path, most, _COUNT))
        else:
            limits[agent] = most
    return limits


def _named(name: Any, adapters: AdapterRegistry) -> str | None:
    if isinstance(name, str) and name in adapters.names():
        return name  # without importing its adapter
    try:
        return adapters.get(name).agent
    except (AgentMuxError, TypeError):
        return None


def _is_count(value: Any, *, least: int = 1) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


NO_LIMITS = ConcurrencyLimits()


class ConcurrencyLimiter:
    """Who works, and who waits."""

    def __init__(self, limits: ConcurrencyLimits = NO_LIMITS) -> None:
        self._limits = limits
        self._room = Capacity(limits)
        self._queue: FairQueue[Slot] = FairQueue()
        self._working: dict[Slot, None] = {}
        """In the order in which they were admitted."""
        self._order: dict[Slot, int] | None = None
        self._changed: anyio.Event | None = None

    @property
    def working(self) -> int:
        """How many have a place."""
        return len(self._working)

    @property
    def waiting(self) -> int:
        """How many wait for one."""
        return len(self._queue)

    @property
    def changed(self) -> anyio.Event:
        """Set when somebody has come or gone; the next change has another. Take it first, and look then."""
        if self._changed is None:
            self._changed = anyio.Event()
        return self._changed

    def enter(self, agent: str = "", owner: str = "") -> "Slot":
        """Take a place, or a number in the queue. To be left in any case. Raises LIMIT_EXCEEDED: the queue is full."""
        ticket = Slot(self, agent)
        self._queue.add(ticket, owner, agent)
        self._admit()
        most = self._limits.waiting
        if not ticket.is_held and most is not None and self.waiting > most:
            self._queue.remove(ticket)
            full = f"{self.working} runs work and {most} wait, and no more may (queue_limit)"
            raise AgentMuxError("LIMIT_EXCEEDED", f"{full}; try again when some have ended")
        self._tell_of_change()
        return ticket

    def leave(self, ticket: "Slot") -> None:
        """Give the place back, or the number. Twice is once."""
        if ticket in self._queue:
            self._queue.remove(ticket)
        elif ticket.is_held:
            ticket.is_held = False
            del self._working[ticket]
            self._room.give_back(ticket.agent)
            self._admit()
        else:
            return
        self._tell_of_change()

    def position(self, ticket: "Slot") -> int | None:
        """How many are admitted until it is, itself included; None: it does not wait.

        As things stand, and if all runs take equally long: the order is played through, once for each change.
        """
        if ticket not in self._queue:
            return None
        if self._order is None:
            self._order = self._played_through()
        return self._order[ticket]

    def _admit(self) -> None:
        while (ticket := self._queue.pop(self._room.is_for)) is not None:
            self._room.take(ticket.agent)
            self._working[ticket] = None
            ticket.admit()

    def _played_through(self) -> dict["Slot", int]:
        queue, room = self._queue.copy(), self._room.copy()
        working = deque(ticket.agent for ticket in self._working)
        order: dict[Slot, int] = {}
        while queue:
            room.give_back(working.popleft())
            while (ticket := queue.pop(room.is_for)) is not None:
                room.take(ticket.agent)
                working.append(ticket.agent)
                order[ticket] = len(order) + 1
        return order

    def _tell_of_change(self) -> None:
        self._order = None
        changed, self._changed = self._changed, None
        if changed is not None:
            changed.set()


class Slot:
    """One run's place, or its number in the queue."""

    def __init__(self, places: ConcurrencyLimiter, agent: str) -> None:
        self.agent = agent
        self.is_held = False
        """It is a place."""
        self._places = places
        self._admitted = anyio.Event()

    @property
    def position(self) -> int | None:
        """In the queue, from 1; None: it is a place, or was left."""
        return self._places.position(self)

    def admit(self) -> None:
        """A place is free."""
        self.is_held = True
        self._admitted.set()

    async def wait(self) -> None:
        """Until there is a place."""
        await self._admitted.wait()

    def leave(self) -> None:
        """The run needs no place any more."""
        self._places.leave(self)
