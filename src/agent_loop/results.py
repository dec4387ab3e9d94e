"""What came of a run. Source: loop spec, section 3.2; zidane, `AgentStats`."""
# DOC: """The events of a run while it goes, for one reader."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream

from agent_loop.events import LoopEvent, LoopStatus
from agent_loop.messages import Message
from agent_loop.usage import Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResult:
    """The end of a run."""

    text: str
    """The final answer; empty where there is none."""
    output: Any
    """The structured answer, where a schema was asked for."""
    status: LoopStatus
    loop_id: str
    session_id: str
    usage: Usage
    turns: int
    messages: tuple[Message, ...]
    """All that was added to the history."""
    error: Exception | None = None
    """Why it failed or was aborted."""
    rejection: str | None = None
    """Why an input filter refused it."""


EventCallback = Callable[[LoopEvent], Awaitable[None]]
"""Is told each event."""
BUFFERED = 64
"""Events that may wait for a slow reader; then the run waits for the reader."""


class RunStream:
    """The events of a run that goes on. After the last one, `result` says what came of it."""

    def __init__(self, events: MemoryObjectReceiveStream[LoopEvent]) -> None:
        self._events = events
        self.result: RunResult | None = None

    def __aiter__(self) -> AsyncIterator[LoopEvent]:
        return self

    async def __anext__(self) -> LoopEvent:
        try:
            # Those that wait are given out without a turn of the event loop for each: there are `BUFFERED` at most.
            return self._events.receive_nowait()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None
        except anyio.WouldBlock:
            return await anext(self._events)


@asynccontextmanager
async def open_stream(
    execute: Callable[[EventCallback], Awaitable[RunResult]], abort: Callable[[str], None]
) -> AsyncIterator[RunStream]:
    """Run it beside the block; leaving the block aborts what still runs. No `ExceptionGroup` comes out of it."""
    send, receive = anyio.create_memory_object_stream[LoopEvent](BUFFERED)
    stream = RunStream(receive)
    failures: list[Exception] = []

    async def watch(event: LoopEvent) -> None:
        with suppress(anyio.BrokenResourceError):  # the reader has left
            try:
                send.send_nowait(event)
            except anyio.WouldBlock:
                with anyio.CancelScope(shield=True):  # an abort takes no event away; a reader who leaves breaks it
                    await send.send(event)

    async def work() -> None:
        async with send:
            try:
                stream.result = await execute(watch)
            except Exception as error:  # noqa: BLE001  # told to the caller below, without a group around it
                failures.append(error)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(work)
        try:
            async with receive:
                yield stream
        except Exception as error:  # noqa: BLE001  # of the caller: comes out again as it was
            failures.insert(0, error)
        finally:
            abort("the reader of the events has left")
    if failures:
        raise failures[0]
