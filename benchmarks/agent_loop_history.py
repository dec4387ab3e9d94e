"""What a turn costs after a history of 10 to 10,000 messages: no worse than linear in what is sent."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from pydantic_ai import messages as theirs

from agent_loop.agent import Agent
from agent_loop.behavior import ContextSettings
from agent_loop.hooks import Hooks
from agent_loop.hooks.contexts import HOOKS
from agent_loop.messages import AssistantMessage, Message, ToolCall, ToolMessage, assistant, tool_message, user
from agent_loop.messages.chain import save_messages
from agent_loop.providers import ModelRequest, ModelResponse, OnChunk
from agent_loop.sessions.file_store import FileSessionStore
from agent_loop.sessions.session import LoopRecord, Session
from benchmarks.loop_contestants import (
    BEHAVIOR,
    MEASURED,
    PROMPT,
    TOOL,
    InMemory,
    Work,
    pydantic_agent,
    run_pydantic_ai,
)
from benchmarks.measure import report, verdict

LENGTHS = (10, 100, 1_000, 10_000)
TURNS = 20
OUTPUT = "A line of what the tool said, as long as lines are.\n" * 8
MOST = 1.15
"""A turn may take ten times as long for ten times as much, and what a measurement may err."""
ROOMY = replace(BEHAVIOR, context=ContextSettings(max_context_tokens=100_000_000))
"""Nothing is left out of what is sent."""


class Turn(NamedTuple):
    """The median of the turns of a run."""

    cpu: float
    """Seconds of this process, all threads."""
    wall: float
    size: int
    """Bytes of the messages that were sent last."""


class Timed(InMemory):
    """Looks at the clocks whenever it is asked: from one time to the next is a turn."""

    def __init__(self, work: Work) -> None:
        super().__init__(work)
        self.asked: list[tuple[float, float]] = []
        self.sent: Sequence[Message] = ()

    async def respond(self, request: ModelRequest, on_chunk: OnChunk) -> ModelResponse:
        self.asked.append((time.process_time(), time.perf_counter()))
        self.sent = request.messages
        return await super().respond(request, on_chunk)


def history(length: int) -> list[Message]:
    """Requests, calls, results and answers in turn."""
    said: list[Message] = []
    for number in range(0, length, 4):
        call = ToolCall(f"old{number}", "add", {"a": number, "b": 1})
        said += [user(f"Add {number} and one."), assistant("I add them.", call)]
        said += [tool_message(call.id, "add", OUTPUT), assistant(f"It is {number + 1}.")]
    return said[: length - length % 4]


def _session(length: int) -> Session:
    loop = LoopRecord(loop_id="s.earlier.1", status="completed", messages=history(length))
    return Session(session_id="s", agent_id="a", loops=[loop])


def _agent(provider: Timed, length: int, **known: Any) -> Agent:
    return Agent(provider, tools=[TOOL], behavior=ROOMY, session=_session(length), **known)


async def plain(provider: Timed, length: int, _: Path) -> None:
    """`run`, and nothing is kept."""
    await _agent(provider, length).run(PROMPT)


async def stored(provider: Timed, length: int, scratch: Path) -> None:
    """The session is in its file after each turn."""
    await _agent(provider, length, store=FileSessionStore(scratch)).run(PROMPT)


async def watched(provider: Timed, length: int, _: Path) -> None:
    """All events are read, each hook has a handler, and there is a wrapper around each model and tool call."""
    hooks = Hooks(dict.fromkeys(HOOKS, _nothing))
    hooks.wrap_model_call(_through)
    hooks.wrap_tool_call(_through)
    async with _agent(provider, length, hooks=hooks).run_stream(PROMPT) as events:
        async for _event in events:
            pass


def _nothing(_context: Any) -> None:
    """A handler."""


async def _through(subject: Any, inner: Callable[[Any], Awaitable[Any]]) -> Any:
    return await inner(subject)


WAYS = {"plain": plain, "stored": stored, "watched": watched}


def ours(way: Callable[[Timed, int, Path], Awaitable[None]], length: int, scratch: Path) -> Turn:
    """Turns behind a history of this length."""
    provider = Timed(Work(TURNS, 1))
    asyncio.run(way(provider, length, scratch))
    assert len(provider.sent) >= length
    return Turn(*_between(provider.asked), len(save_messages(provider.sent)))


def pydantic_ai_turn(length: int) -> Turn:
    """The same of pydantic-ai, where nothing is kept or watched."""
    asked: list[tuple[float, float]] = []
    agent = pydantic_agent(Work(TURNS, 1), on_request=lambda: asked.append((time.process_time(), time.perf_counter())))
    asyncio.run(run_pydantic_ai(agent, [_theirs(each) for each in history(length)]))
    return Turn(*_between(asked), 0)


def _theirs(message: Message) -> theirs.ModelMessage:
    match message:
        case AssistantMessage():
            calls = [theirs.ToolCallPart(call.name, dict(call.arguments), call.id) for call in message.tool_calls]
            return theirs.ModelResponse([theirs.TextPart(message.text), *calls], usage=MEASURED)
        case ToolMessage():
            return theirs.ModelRequest([theirs.ToolReturnPart(message.name, message.text, message.tool_call_id)])
        case _:
            return theirs.ModelRequest([theirs.UserPromptPart(message.text)])


def _between(asked: list[tuple[float, float]]) -> tuple[float, float]:
    cpu, wall = (median(later - sooner for sooner, later in pairwise(clock)) for clock in zip(*asked, strict=True))
    return cpu, wall


def main(scratch: Path) -> None:
    """Print what a turn costs, by length and way, and how that grows against what is sent."""
    lines = []
    for name, way in WAYS.items():
        turns = [ours(way, length, scratch / f"{name}{length}") for length in LENGTHS]
        lines += [_row(name, length, turn) for length, turn in zip(LENGTHS, turns, strict=True)]
        lines.append(_growth(name, turns[-2], turns[-1]))
    for length in LENGTHS:
        theirs_one, one = pydantic_ai_turn(length), ours(plain, length, scratch)
        share = one.cpu / theirs_one.cpu
        lines.append(
            f"pydantic-ai {length:6,} messages: {theirs_one.cpu * 1e3:8.2f} ms of processor; "
            f"agent_loop takes {share:4.2f} of it {verdict(share, most=1)}"
        )
    report(f"A turn behind a history, median of {TURNS}", lines)


def _row(name: str, length: int, turn: Turn) -> str:
    share = turn.cpu * 1e9 / turn.size
    return (
        f"{name:<8}{length:7,} messages, {turn.size / 1024:8,.0f} KiB sent: {turn.cpu * 1e3:8.2f} ms of processor, "
        f"{turn.wall * 1e3:8.2f} ms by the clock; {share:7.2f} ns a byte"
    )


def _growth(name: str, small: Turn, large: Turn) -> str:
    ratio = (large.cpu / small.cpu) / (large.size / small.size)
    judged = verdict(ratio, most=MOST)
    return f"{name:<8}growth of the time over that of what is sent, last two rows: {ratio:4.2f} {judged}"
