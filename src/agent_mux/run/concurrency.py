"""Limits of concurrently active runs, in total and per agent, and the queue of runs that wait.

A run waits only if no slot is free that it could use. Owners are served in turn (`FairQueue`), independently of the
scheduling of the event loop. A run whose agent has no free slot is skipped until the agent has one.
"""

from collections import Counter, deque
from collections.abc import Mapping
from typing import Any

import anyio
import msgspec

from agent_mux.errors import AgentMuxError, FieldError, ValidationError
from agent_mux.run.fair_queue import FairQueue
from agent_mux.sdk.registry import AdapterRegistry

_COUNT = "a whole number >= 1"
_PER_AGENT = "max_concurrent_runs_per_agent"


class ConcurrencyLimits(msgspec.Struct, frozen=True, kw_only=True):
    """How many runs may be active and how many may wait; None means no limit."""

    total: int | None = None
    per_agent: int | None = None
    """Limit of each agent that `of_agent` does not contain."""
    of_agent: Mapping[str, int] = {}
    """Limits by registered name of the agent."""
    waiting: int | None = None

    def of(self, agent: str) -> int | None:
        """Return the limit of one agent; None: no limit."""
        return self.of_agent.get(agent, self.per_agent)


class Capacity:
    """The used part of the limits."""

    def __init__(self, limits: ConcurrencyLimits) -> None:
        self._limits = limits
        self._used: Counter[str] = Counter()
        self._total = 0

    def allows(self, agent: str) -> bool:
        """Return whether one more run of this agent may become active."""
        total, own = self._limits.total, self._limits.of(agent)
        return (total is None or self._total < total) and (own is None or self._used[agent] < own)

    def acquire(self, agent: str) -> None:
        """Count a run of this agent as active."""
        self._total += 1
        self._used[agent] += 1

    def release(self, agent: str) -> None:
        """Count a run of this agent as ended."""
        self._total -= 1
        self._used[agent] -= 1

    def copy(self) -> "Capacity":
        """Return a copy for a simulation."""
        duplicate = Capacity(self._limits)
        duplicate._used, duplicate._total = Counter(self._used), self._total
        return duplicate


def parse_limits(total: Any, per_agent: Any, waiting: Any, adapters: AdapterRegistry) -> ConcurrencyLimits:
    """Return the limits from the options of a client. Raises `ValidationError` with every invalid field."""
    problems: list[FieldError] = []
    if total is not None and not _is_count(total):
        problems.append(FieldError("max_concurrent_runs", total, f"{_COUNT}, or None"))
    if waiting is not None and not _is_count(waiting, least=0):
        problems.append(FieldError("queue_limit", waiting, "a whole number >= 0, or None"))
    by_name = per_agent if isinstance(per_agent, Mapping) else {}
    if not (per_agent is None or by_name is per_agent or _is_count(per_agent)):
        problems.append(FieldError(_PER_AGENT, per_agent, f"{_COUNT}, numbers by agent, or None"))
    of_agent = _parse_agent_limits(by_name, adapters, problems)
    if problems:
        raise ValidationError(problems)
    each = None if isinstance(per_agent, Mapping) else per_agent
    return ConcurrencyLimits(total=total, per_agent=each, of_agent=of_agent, waiting=waiting)


def _parse_agent_limits(
    values: Mapping[Any, Any], adapters: AdapterRegistry, problems: list[FieldError]
) -> dict[str, int]:
    limits: dict[str, int] = {}
    for name, limit in values.items():
        path = f"{_PER_AGENT}.{name}"
        agent = _find_agent(name, adapters)
        if agent is None:
            problems.append(FieldError(_PER_AGENT, name, "names of registered agents, or their aliases"))
        elif agent in limits:
            problems.append(FieldError(path, limit, f"one limit: {agent} has one already"))
        elif not _is_count(limit):
            problems.append(FieldError(path, limit, _COUNT))
        else:
            limits[agent] = limit
    return limits


def _find_agent(name: Any, adapters: AdapterRegistry) -> str | None:
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
    """Assigns slots to runs, and keeps the queue of runs that wait for one."""

    def __init__(self, limits: ConcurrencyLimits = NO_LIMITS) -> None:
        self._limits = limits
        self._capacity = Capacity(limits)
        self._queue: FairQueue[Slot] = FairQueue()
        self._working: dict[Slot, None] = {}
        """The active slots as keys, in the order of admission."""
        self._order: dict[Slot, int] | None = None
        self._changed: anyio.Event | None = None

    @property
    def working(self) -> int:
        """Number of active runs."""
        return len(self._working)

    @property
    def waiting(self) -> int:
        """Number of runs that wait for a slot."""
        return len(self._queue)

    @property
    def changed(self) -> anyio.Event:
        """Event that is set at the next change of any slot.

        Get it before reading the state, so that no change is missed.
        """
        if self._changed is None:
            self._changed = anyio.Event()
        return self._changed

    def enter(self, agent: str = "", owner: str = "") -> "Slot":
        """Return an active or a waiting slot, which the caller must leave in any case.

        Raises LIMIT_EXCEEDED if the queue is full.
        """
        slot = Slot(self, agent, owner)
        self._queue.add(slot, owner, agent)
        self._admit()
        limit = self._limits.waiting
        if not slot.is_held and limit is not None and self.waiting > limit:
            self._queue.remove(slot)
            full = f"{self.working} runs are active and {limit} wait, the most allowed (queue_limit)"
            raise AgentMuxError("LIMIT_EXCEEDED", f"{full}; try again when some have ended")
        self._notify_change()
        return slot

    def leave(self, slot: "Slot") -> None:
        """Release an active slot, or remove a waiting one from the queue. A second call does nothing."""
        if slot in self._queue:
            self._queue.remove(slot)
        elif slot.is_held:
            slot.is_held = False
            del self._working[slot]
            self._capacity.release(slot.agent)
            self._admit()
        else:
            return
        self._notify_change()

    def change_agent(self, slot: "Slot", agent: str) -> None:
        """Exchange an active slot for one of another agent, which may have to wait for it.

        The limit on the number of waiting runs does not apply to a run that has begun.
        """
        self.leave(slot)
        slot.expect(agent)
        self._queue.add(slot, slot.owner, agent)
        self._admit()
        self._notify_change()

    def position(self, slot: "Slot") -> int | None:
        """Return how many slots are admitted until this one is, itself included; None if it does not wait.

        An estimate that assumes equal durations of all runs. The order is simulated once after each change.
        """
        if slot not in self._queue:
            return None
        if self._order is None:
            self._order = self._simulate_order()
        return self._order[slot]

    def _admit(self) -> None:
        while (slot := self._queue.pop(self._capacity.allows)) is not None:
            self._capacity.acquire(slot.agent)
            self._working[slot] = None
            slot.admit()

    def _simulate_order(self) -> dict["Slot", int]:
        queue, capacity = self._queue.copy(), self._capacity.copy()
        working = deque(slot.agent for slot in self._working)
        order: dict[Slot, int] = {}
        while queue:
            capacity.release(working.popleft())
            while (slot := queue.pop(capacity.allows)) is not None:
                capacity.acquire(slot.agent)
                working.append(slot.agent)
                order[slot] = len(order) + 1
        return order

    def _notify_change(self) -> None:
        self._order = None
        changed, self._changed = self._changed, None
        if changed is not None:
            changed.set()


class Slot:
    """One run's permission to be active, or its entry in the queue."""

    def __init__(self, limiter: ConcurrencyLimiter, agent: str, owner: str = "") -> None:
        self.agent = agent
        self.owner = owner
        self.is_held = False
        """Whether the slot is active."""
        self._limiter = limiter
        self._admitted = anyio.Event()

    @property
    def position(self) -> int | None:
        """Position in the queue, from 1; None if the slot is active or was left."""
        return self._limiter.position(self)

    def admit(self) -> None:
        """Give the waiting run its slot, which wakes it."""
        self.is_held = True
        self._admitted.set()

    def expect(self, agent: str) -> None:
        """Make a slot that was left ready to wait for another agent."""
        self.agent = agent
        self._admitted = anyio.Event()

    def change_agent(self, agent: str) -> None:
        """Exchange the active slot for one of another agent; `wait` returns when it is active."""
        self._limiter.change_agent(self, agent)

    async def wait(self) -> None:
        """Wait until the slot is active."""
        await self._admitted.wait()

    def leave(self) -> None:
        """Release the slot; the run no longer needs it."""
        self._limiter.leave(self)
