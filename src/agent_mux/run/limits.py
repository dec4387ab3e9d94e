"""How many runs may work at a time: all together, of each agent, and how many more may wait."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from agent_mux.errors import AgentMuxError, FieldError, ValidationError
from agent_mux.sdk.registry import AdapterRegistry

_COUNT = "a whole number >= 1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
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


class Room:
    """What is taken of the limits."""

    def __init__(self, limits: Limits) -> None:
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

    def copy(self) -> "Room":
        """The same, to find out what would be."""
        twin = Room(self._limits)
        twin._taken, twin._total = Counter(self._taken), self._total
        return twin


def read_limits(total: Any, per_agent: Any, waiting: Any, adapters: AdapterRegistry) -> Limits:
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
    return Limits(total=total, per_agent=each, of_agent=of_agent, waiting=waiting)


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
