"""Publication of the events of runs to any number of subscribers.

Nothing is queued for a subscriber: it has a position in one bounded buffer that all subscribers share. So a run never
waits for a subscriber, and a stalled subscriber costs no memory. One that falls behind the buffer gets a `Gap`.
"""

from collections.abc import Awaitable, Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from threading import Lock
from types import TracebackType
from typing import Protocol, Self
from uuid import uuid4
from weakref import WeakSet

import anyio.lowlevel

from agent_loop.errors import ConfigurationError, ToolError
from agent_loop.publishing.published import (
    EVENT_TYPES,
    AnyEvent,
    Gap,
    PublishedEvent,
    QuestionAsked,
    QuestionClosed,
    type_of,
)
from agent_loop.publishing.redaction import EventRedactor
from agent_loop.publishing.waiters import CallSoon, Waiter, call_soon_here

BUFFERED = 4096
"""Events that a bus keeps by default."""
BURST = 64
"""Available events that a subscription returns without a checkpoint; one for each would make readers too slow."""
AskUser = Callable[[str, tuple[str, ...]], Awaitable[str]]
NO_ANSWER = "no user can answer: the event bus is closed; continue without the answer"


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


@dataclass(slots=True)
class _PendingQuestion:
    session_id: str
    waiter: Waiter
    answer: str | None = None


class EventBus:
    """Publishes the events of agents that were created with `Agent(event_bus=bus)`. Thread-safe."""

    def __init__(self, *, buffer: int = BUFFERED, secrets: Collection[str] = (), answers: bool = False) -> None:
        """Create a bus.

        Args:
            buffer: Number of events of all sessions that are kept for late and slow subscribers.
            secrets: Texts that are replaced in the published events, for example the API keys of tools. One that is
                split over several deltas is not found in these. Keys of models are not in events.
            answers: Whether subscribers answer the questions of agents without `ask`, by `answer` or over HTTP. A
                question waits until it is answered, its run ends, or the bus is closed.

        Raises `ConfigurationError` for a buffer of less than one event.
        """
        if buffer < 1:
            raise ConfigurationError("the buffer of an event bus must have at least 1 event")
        self.bus_id = uuid4().hex[:12]
        """Distinguishes the numbers of this bus from those of another one, such as that of a restarted program."""
        self._buffer = buffer
        self._redactor = EventRedactor(secrets)
        self._events: dict[int, PublishedEvent] = {}
        self._next = 0
        self._is_closed = False
        self._waiters: dict[Waiter, None] = {}
        self._agents: WeakSet[PublishingAgent] = WeakSet()
        self._runs: dict[str, tuple[PublishingAgent, CallSoon]] = {}
        self._answers = answers
        self._questions: dict[str, _PendingQuestion] = {}
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

    def take(self, subscription: "Subscription") -> "PublishedEvent | Gap | Waiter | None":
        """Return what is next for a subscription: an item, a waiter until there is one, or None at the end."""
        with self._lock:
            if subscription.is_closed:
                return None
            start = subscription.position
            if start < self._oldest:
                subscription.position = self._oldest
                return Gap(first=start, last=self._oldest - 1)
            for number in range(start, self._next):
                subscription.position = number + 1
                if subscription.matches(self._events[number]):
                    return self._events[number]
            if self._is_closed:
                return None
            waiter = Waiter()
            self._waiters[waiter] = None
            return waiter

    def forget(self, waiter: Waiter) -> None:
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
        self._runs[session_id] = agent, call_soon_here()
        try:
            yield
        finally:
            if self.active_agent(session_id) is agent:
                del self._runs[session_id]

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

    # -- questions --------------------------------------------------------------------------------------------------

    def asker(self, session_id: str, loop_id: str) -> AskUser | None:
        """Return the function by which the tools of a run ask subscribers; None: they cannot."""
        return partial(self.ask, session_id, loop_id) if self._answers else None

    async def ask(self, session_id: str, loop_id: str, question: str, options: tuple[str, ...]) -> str:
        """Publish a question and return its answer. Raises `ToolError` if the bus is closed."""
        question_id, pending = uuid4().hex, _PendingQuestion(session_id, Waiter())
        with self._lock:
            if self._is_closed:
                raise ToolError(NO_ANSWER)
            self._questions[question_id] = pending
        asked = QuestionAsked(loop_id=loop_id, question_id=question_id, question=question, options=options)
        self.publish(session_id, asked)
        try:
            await pending.waiter.wait()
        finally:
            with self._lock:
                self._questions.pop(question_id, None)
            is_answered = pending.answer is not None
            self.publish(session_id, QuestionClosed(loop_id=loop_id, question_id=question_id, is_answered=is_answered))
        if pending.answer is None:
            raise ToolError(NO_ANSWER)
        return pending.answer

    def answer(self, session_id: str, question_id: str, answer: str) -> bool:
        """Answer a question of a session, from any thread. Return whether it was still waiting."""
        with self._lock:
            pending = self._questions.get(question_id)
            if pending is None or pending.session_id != session_id:
                return False
            del self._questions[question_id]
            pending.answer = answer
        pending.waiter.wake()
        return True

    # -- events -----------------------------------------------------------------------------------------------------

    def publish(self, session_id: str, event: AnyEvent) -> None:
        """Append an event of a session and wake the subscribers. After `close`, do nothing. Does not raise."""
        redacted = self._redactor.redacted(event)
        with self._lock:
            if self._is_closed:
                return
            self._events[self._next] = PublishedEvent(number=self._next, session_id=session_id, event=redacted)
            self._next += 1
            self._events.pop(self._next - 1 - self._buffer, None)
        self.wake_all()

    def close(self) -> None:
        """End all questions, and all subscriptions once they have their events of the buffer.

        Runs continue, and their events are not published any more.
        """
        with self._lock:
            self._is_closed = True
            questions, self._questions = self._questions, {}
        for question in questions.values():
            question.waiter.wake()
        self.wake_all()


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
        self._returned = 0
        """Number of the items that were returned."""

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
        self._returned += 1
        if self._returned % BURST == 0:
            await anyio.lowlevel.checkpoint()  # so that a reader of a full buffer can be cancelled
        while isinstance(item := self._bus.take(self), Waiter):
            try:
                await item.wait()
            finally:
                self._bus.forget(item)
        if item is None:
            raise StopAsyncIteration
        return item
