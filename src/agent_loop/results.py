"""The result of a run, and the stream of its events for one reader."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream

from agent_loop.events import LoopEvent, LoopLimit, LoopStatus
from agent_loop.messages import Message
from agent_loop.usage import Usage

EventCallback = Callable[[LoopEvent], Awaitable[None]]
"""A coroutine function that receives each event."""
BUFFERED = 64
"""Events that are buffered for a slow reader; beyond that, the run waits for the reader."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResult:
    """The outcome of a finished run."""

    text: str
    """The final answer; empty if the run has none."""
    output: Any
    """The structured answer, if a schema was given."""
    status: LoopStatus
    loop_id: str
    """The last loop of the run: that of the agent that gave the answer."""
    session_id: str
    usage: Usage
    turns: int
    messages: tuple[Message, ...]
    """All messages that the run added to the history."""
    limit: LoopLimit | None = None
    """The limit that ended a run with the status "limited"; "output": the answer was cut at `max_tokens`."""
    error: Exception | None = None
    """The reason of a failed or aborted run."""
    agent: str = ""
    """The name of the agent that had the conversation at the end, and gave the answer."""
    rejection: str | None = None
    """The reason of an input filter that rejected the prompt."""


class RunStream:
    """The events of an active run. `result` is set once the last event has been read."""

    def __init__(self, events: MemoryObjectReceiveStream[LoopEvent]) -> None:
        self._events = events
        self.result: RunResult | None = None

    def __aiter__(self) -> AsyncIterator[LoopEvent]:
        return self

    async def __anext__(self) -> LoopEvent:
        try:
            # Buffered events, `BUFFERED` at most, are returned without a checkpoint for each.
            return self._events.receive_nowait()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None
        except anyio.WouldBlock:
            return await anext(self._events)


@asynccontextmanager
async def open_stream(
    execute: Callable[[EventCallback], Awaitable[RunResult]], abort: Callable[[str], None]
) -> AsyncIterator[RunStream]:
    """Run `execute` concurrently with the block and yield its events; leaving the block aborts the run.

    Exceptions are raised without a surrounding `ExceptionGroup`.
    """
    send, receive = anyio.create_memory_object_stream[LoopEvent](BUFFERED)
    stream = RunStream(receive)
    failures: list[Exception] = []

    async def watch(event: LoopEvent) -> None:
        with suppress(anyio.BrokenResourceError):  # the reader has left the block
            try:
                send.send_nowait(event)
            except anyio.WouldBlock:
                with anyio.CancelScope(shield=True):  # an abort loses no event; a reader that leaves ends the wait
                    await send.send(event)

    async def work() -> None:
        async with send:
            try:
                stream.result = await execute(watch)
            except Exception as error:  # noqa: BLE001  # raised below, without an exception group
                failures.append(error)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(work)
        try:
            async with receive:
                yield stream
        except Exception as error:  # noqa: BLE001  # raised by the block; raised below, unchanged
            failures.insert(0, error)
        finally:
            abort("the reader of the event stream left")
    if failures:
        raise failures[0]
