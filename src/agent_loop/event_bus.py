"""Publication of the events of runs to any number of subscribers.

Nothing is queued for a subscriber: it has a position in one bounded buffer that all subscribers share. So a run never
waits for a subscriber, and a stalled subscriber costs no memory. One that falls behind the buffer gets a `Gap`.
"""

import sys
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from threading import Lock
from types import TracebackType
from typing import Any, Protocol, Self, get_args
from uuid import uuid4
from weakref import WeakSet

import anyio
import msgspec

from agent_loop.errors import ConfigurationError, redact
from agent_loop.events import (
    LoopEvent,
    Noted,
    ParallelEvent,
    ParallelLoopEnd,
    ParallelLoopStart,
    SubAgentEnd,
    SubAgentEvent,
    SubAgentStart,
)
from agent_loop.messages.formatting import encode_json

AnyEvent = LoopEvent | ParallelEvent
BUFFERED = 4096
"""Events that a bus keeps by default."""
CallSoon = Callable[..., object]
"""Calls a function with arguments in an event loop, from any thread."""


def type_of(event: AnyEvent) -> str:
    """Return the value of the event's field `type` in JSON."""
    return str(type(event).__struct_config__.tag)


EVENT_TYPES = frozenset(str(each.__struct_config__.tag) for each in get_args(AnyEvent))
"""All values of `type_of`."""


class PublishedEvent(msgspec.Struct, frozen=True, kw_only=True):
    """An event of a run, as a bus publishes it."""

    number: int
    """Position in the events of the bus, from 0."""
    session_id: str
    """The session of the agent that published the event. Events of its sub-agents are `SubAgentEvent`."""
    event: AnyEvent

    @property
    def sessions(self) -> tuple[str, ...]:
        """The session, and those of the sub-agents whose event it is."""
        return (self.session_id, *_sub_agents_of(self.event))

    @property
    def loops(self) -> tuple[str, ...]:
        """The loop, and those of the sub-agents whose event it is; all loops of a parallel run."""
        return _loops_of(self.event)


class Gap(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="gap"):
    """Events that a subscriber did not get, because the buffer no longer has them; not all may have matched."""

    first: int
    """Number of the first missing event."""
    last: int
    """Number of the last missing event."""


class PublishingAgent(Protocol):
    """An agent that publishes its events: what a bus needs of `Agent`."""

    @property
    def session_id(self) -> str:
        """The id of the current session."""
        ...

    @property
    def is_running(self) -> bool:
        """Whether a run is active."""
        ...

    def steer(self, message: str) -> None:
        """Queue a message that the active run reads between two tools or turns. Thread-safe."""
        ...

    def follow_up(self, message: str) -> None:
        """Queue a message that the run reads when it would otherwise end. Thread-safe."""
        ...

    def abort(self, reason: str) -> None:
        """End the active run. Called in the event loop of the run."""
        ...


def _sub_agents_of(event: AnyEvent) -> tuple[str, ...]:
    match event:
        case SubAgentEvent():
            return (event.subagent_id, *_sub_agents_of(event.event))
        case SubAgentStart() | SubAgentEnd():
            return (event.subagent_id,)
        case _:
            return ()


def _loops_of(event: AnyEvent) -> tuple[str, ...]:
    match event:
        case ParallelLoopStart() | ParallelLoopEnd():
            return event.loop_ids
        case SubAgentEvent():
            return (event.loop_id, *_loops_of(event.event))
        case _:
            return (event.loop_id,)


class _Waiter:
    """A task that waits for the next event. The event may be published in another thread."""

    def __init__(self) -> None:
        self._event = anyio.Event()
        self._call_soon = _call_soon_here()

    async def wait(self) -> None:
        await self._event.wait()

    def wake(self) -> None:
        with suppress(RuntimeError):  # the event loop of the task has ended
            self._call_soon(self._event.set)


def _call_soon_here() -> CallSoon:
    """Return the function that calls others in the current event loop, which may be one of asyncio or Trio."""
    trio: Any = sys.modules.get("trio")
    if trio is not None and trio.lowlevel.in_trio_run():
        return trio.lowlevel.current_trio_token().run_sync_soon  # type: ignore[no-any-return]
    import asyncio  # noqa: PLC0415  # a program that uses Trio has no need of it

    return asyncio.get_running_loop().call_soon_threadsafe


class EventBus:
    """Publishes the events of agents that were created with `Agent(event_bus=bus)`. Thread-safe."""

    def __init__(self, *, buffer: int = BUFFERED, secrets: Collection[str] = ()) -> None:
        """Create a bus.

        Args:
            buffer: Number of events of all sessions that are kept for late and slow subscribers.
            secrets: Texts that are replaced in the published events, for example the API keys of tools. One that is
                split over several deltas is not found in these. Keys of models are not in events.

        Raises `ConfigurationError` for a buffer of less than one event.
        """
        if buffer < 1:
            raise ConfigurationError("the buffer of an event bus must have at least 1 event")
        self.bus_id = uuid4().hex[:12]
        """Distinguishes the numbers of this bus from those of another one, such as that of a restarted program."""
        self._buffer = buffer
        self._secrets = {secret: encode_json(secret)[1:-1] for secret in secrets if secret}
        self._events: dict[int, PublishedEvent] = {}
        self._next = 0
        self._is_closed = False
        self._waiters: dict[_Waiter, None] = {}
        self._agents: WeakSet[PublishingAgent] = WeakSet()
        self._runs: dict[str, tuple[PublishingAgent, CallSoon]] = {}
        self._lock = Lock()

    # -- subscribers ------------------------------------------------------------------------------------------------

    def subscribe(
        self,
        *,
        session: str | None = None,
        loop: str | None = None,
        types: Collection[str] | None = None,
        after: int | None = None,
    ) -> "Subscription":
        """Return a subscription, for `async with bus.subscribe() as events` and `async for`.

        Args:
            session: Only events of this session, which may be that of a sub-agent.
            loop: Only events of this loop, which may be that of a sub-agent.
            types: Only events of these types, such as "text_delta". "sub_agent_event" are all events of sub-agents.
            after: Number of the event before the first one, -1 for all events; those that the buffer no longer has are
                a `Gap`. None: only events that are published from now on.

        Raises `ConfigurationError` for an unknown type or number.
        """
        if isinstance(types, str) or (types is not None and not EVENT_TYPES.issuperset(types)):
            unknown = types if isinstance(types, str) else ", ".join(sorted(set(types) - EVENT_TYPES))
            raise ConfigurationError(f"types: got {unknown!r}; use a collection of {', '.join(sorted(EVENT_TYPES))}")
        with self._lock:
            published = self._next
        if after is not None and not -1 <= after < published:
            raise ConfigurationError(f"after: got {after}; the bus published {published} events, numbered from 0")
        start = published if after is None else after + 1
        return Subscription(self, start, session, loop, None if types is None else frozenset(types))

    def knows(self, session_id: str) -> bool:
        """Return whether the session is that of an agent of this bus, or the buffer has an event of it."""
        with self._lock:
            if any(agent.session_id == session_id for agent in self._agents):
                return True
            return any(session_id in published.sessions for published in self._events.values())

    @property
    def _oldest(self) -> int:
        return self._next - len(self._events)

    def take(self, subscription: "Subscription") -> "PublishedEvent | Gap | _Waiter | None":
        """Return what is next for a subscription: an item, a waiter until there is one, or None at the end."""
        with self._lock:
            start = subscription.position
            if start < self._oldest:
                subscription.position = self._oldest
                return Gap(first=start, last=self._oldest - 1)
            for number in range(start, self._next):
                subscription.position = number + 1
                if subscription.matches(self._events[number]):
                    return self._events[number]
            if self._is_closed or subscription.is_closed:
                return None
            waiter = _Waiter()
            self._waiters[waiter] = None
            return waiter

    def forget(self, waiter: _Waiter) -> None:
        """Remove a waiter, which may have been woken."""
        with self._lock:
            self._waiters.pop(waiter, None)

    def wake_all(self) -> None:
        """Have all waiting subscribers look for events."""
        with self._lock:
            waiters, self._waiters = self._waiters, {}
        for waiter in waiters:
            waiter.wake()

    # -- agents -----------------------------------------------------------------------------------------------------

    def attach(self, agent: PublishingAgent) -> None:
        """Add an agent whose events will be published. The bus does not keep it alive."""
        with self._lock:
            self._agents.add(agent)

    @contextmanager
    def running(self, agent: PublishingAgent) -> Iterator[None]:
        """Hold the agent as the active one of its session for the block, which runs in the event loop of its run."""
        session_id = agent.session_id
        self._runs[session_id] = agent, _call_soon_here()
        try:
            yield
        finally:
            self._runs.pop(session_id, None)

    def active_agent(self, session_id: str) -> PublishingAgent | None:
        """Return the agent that has an active run in the session, or None."""
        run = self._runs.get(session_id)
        return None if run is None else run[0]

    def abort(self, session_id: str, reason: str) -> bool:
        """End the active run of the session in an orderly way, from any thread. Return whether there is one."""
        run = self._runs.get(session_id)
        if run is None:
            return False
        agent, call_soon = run
        with suppress(RuntimeError):  # its event loop has ended
            call_soon(agent.abort, reason)
        return True

    def publish(self, session_id: str, event: AnyEvent) -> None:
        """Append an event of a session and wake the subscribers. After `close`, do nothing. Does not raise."""
        redacted = self._redacted(event)
        with self._lock:
            if self._is_closed:
                return
            self._events[self._next] = PublishedEvent(number=self._next, session_id=session_id, event=redacted)
            self._next += 1
            self._events.pop(self._next - 1 - self._buffer, None)
        self.wake_all()

    def close(self) -> None:
        """End all subscriptions once they have their events of the buffer. Runs continue unpublished."""
        with self._lock:
            self._is_closed = True
        self.wake_all()

    def _redacted(self, event: AnyEvent) -> AnyEvent:
        """Return the event without the secrets of the bus. One that cannot be searched is replaced by a notice."""
        if not self._secrets:
            return event
        try:
            data = encode_json(event)
            if not any(form in data for form in self._secrets.values()):
                return event
            return msgspec.convert(_redacted_values(msgspec.json.decode(data), self._secrets), type=type(event))
        except (ValueError, RecursionError):
            loop_id = _loops_of(event)[0]
            return Noted(loop_id=loop_id, text=f"an event {type_of(event)!r} is not shown: it cannot be redacted")


def _redacted_values(value: Any, secrets: Iterable[str]) -> Any:
    match value:
        case str():
            return redact(value, secrets)
        case dict():
            return {name: each if name == "type" else _redacted_values(each, secrets) for name, each in value.items()}
        case list():
            return [_redacted_values(each, secrets) for each in value]
        case _:
            return value


class Subscription:
    """The events of a bus from a position on, for one reader. Tasks that share it divide the events among them."""

    def __init__(
        self, bus: EventBus, start: int, session: str | None, loop: str | None, types: frozenset[str] | None
    ) -> None:
        self._bus = bus
        self._session = session
        self._loop = loop
        self._types = types
        self.position = start
        """Number of the next event to look at."""
        self.is_closed = False

    def matches(self, published: PublishedEvent) -> bool:
        """Return whether the event is one of those that were asked for."""
        return (
            (self._session is None or self._session in published.sessions)
            and (self._loop is None or self._loop in published.loops)
            and (self._types is None or type_of(published.event) in self._types)
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the subscription, also for a task that waits for its next event."""
        self.is_closed = True
        self._bus.wake_all()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> PublishedEvent | Gap:
        """Return the next event, or the gap before it. Ends when the bus or the subscription is closed."""
        await anyio.lowlevel.checkpoint()  # so that a reader of a full buffer is cancelled and delays no other task
        while isinstance(item := self._bus.take(self), _Waiter):
            try:
                await item.wait()
            finally:
                self._bus.forget(item)
        if item is None:
            raise StopAsyncIteration
        return item
