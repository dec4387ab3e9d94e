"""The cost of a turn after a history of 10 to 10,000 messages: at most linear in the size of the request."""

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
from benchmarks.loops import (
    BEHAVIOR,
    MEASURED,
    PROMPT,
    TOOL,
    InMemoryProvider,
    Work,
    pydantic_agent,
    run_pydantic_ai,
)
from benchmarks.measure import report, verdict

LENGTHS = (10, 100, 1_000, 10_000)
TURNS = 20
OUTPUT = "A line of tool output with the usual length of lines.\n" * 8
MOST = 1.15
"""Upper limit for the growth of the time divided by the growth of the size, with a margin for noise."""
ROOMY = replace(BEHAVIOR, context=ContextSettings(max_context_tokens=100_000_000))
"""Settings with which nothing is removed from requests."""


class Turn(NamedTuple):
    """The medians over the turns of a run."""

    cpu: float
    """CPU seconds of this process, all threads."""
    wall: float
    size: int
    """Size of the last request, in bytes."""


class TimedProvider(InMemoryProvider):
    """A provider that records the time of each request. Two consecutive requests delimit a turn."""

    def __init__(self, work: Work) -> None:
        super().__init__(work)
        self.asked: list[tuple[float, float]] = []
        self.sent: Sequence[Message] = ()

    async def respond(self, request: ModelRequest, on_chunk: OnChunk) -> ModelResponse:
        self.asked.append((time.process_time(), time.perf_counter()))
        self.sent = request.messages
        return await super().respond(request, on_chunk)


def history(length: int) -> list[Message]:
    """Return alternating prompts, calls, results and answers."""
    messages: list[Message] = []
    for number in range(0, length, 4):
        call = ToolCall(f"old{number}", "add", {"a": number, "b": 1})
        messages += [user(f"Add {number} and one."), assistant("I add them.", call)]
        messages += [tool_message(call.id, "add", OUTPUT), assistant(f"It is {number + 1}.")]
    return messages[: length - length % 4]


def _session(length: int) -> Session:
    loop = LoopRecord(loop_id="s.earlier.1", status="completed", messages=history(length))
    return Session(session_id="s", agent_id="a", loops=[loop])


def _agent(provider: TimedProvider, length: int, **known: Any) -> Agent:
    return Agent(provider, tools=[TOOL], behavior=ROOMY, session=_session(length), **known)


async def plain(provider: TimedProvider, length: int, _: Path) -> None:
    """Execute a run without a store."""
    await _agent(provider, length).run(PROMPT)


async def stored(provider: TimedProvider, length: int, scratch: Path) -> None:
    """Execute a run that stores its session after each turn."""
    await _agent(provider, length, store=FileSessionStore(scratch)).run(PROMPT)


async def watched(provider: TimedProvider, length: int, _: Path) -> None:
    """Execute a run with all events read, a handler for each hook, and wrappers around model and tool calls."""
    hooks = Hooks(dict.fromkeys(HOOKS, _ignore))
    hooks.wrap_model_call(_pass_through)
    hooks.wrap_tool_call(_pass_through)
    async with _agent(provider, length, hooks=hooks).run_stream(PROMPT) as events:
        async for _event in events:
            pass


def _ignore(_context: Any) -> None:
    """Do nothing: a hook handler."""


async def _pass_through(subject: Any, inner: Callable[[Any], Awaitable[Any]]) -> Any:
    return await inner(subject)


MODES = {"plain": plain, "stored": stored, "watched": watched}


def ours(mode: Callable[[TimedProvider, int, Path], Awaitable[None]], length: int, scratch: Path) -> Turn:
    """Measure the turns of our loop after a history of this length."""
    provider = TimedProvider(Work(TURNS, 1))
    asyncio.run(mode(provider, length, scratch))
    assert len(provider.sent) >= length
    return Turn(*_between(provider.asked), len(save_messages(provider.sent)))


def pydantic_ai_turn(length: int) -> Turn:
    """Measure the turns of pydantic-ai, without a store and without handlers."""
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
    """Print the cost of a turn by length and mode, and its growth compared with that of the request."""
    lines = []
    for name, mode in MODES.items():
        turns = [ours(mode, length, scratch / f"{name}{length}") for length in LENGTHS]
        lines += [_row(name, length, turn) for length, turn in zip(LENGTHS, turns, strict=True)]
        lines.append(_growth(name, turns[-2], turns[-1]))
    for length in LENGTHS:
        theirs_one, one = pydantic_ai_turn(length), ours(plain, length, scratch)
        share = one.cpu / theirs_one.cpu
        lines.append(
            f"pydantic-ai {length:6,} messages: {theirs_one.cpu * 1e3:8.2f} ms CPU; "
            f"agent_loop takes {share:4.2f} of this {verdict(share, most=1)}"
        )
    report(f"A turn after a history, median of {TURNS}", lines)


def _row(name: str, length: int, turn: Turn) -> str:
    share = turn.cpu * 1e9 / turn.size
    return (
        f"{name:<8}{length:7,} messages, {turn.size / 1024:8,.0f} KiB sent: {turn.cpu * 1e3:8.2f} ms CPU, "
        f"{turn.wall * 1e3:8.2f} ms wall; {share:7.2f} ns/byte"
    )


def _growth(name: str, small: Turn, large: Turn) -> str:
    ratio = (large.cpu / small.cpu) / (large.size / small.size)
    judged = verdict(ratio, most=MOST)
    return f"{name:<8}growth of the time divided by growth of the request, last two rows: {ratio:4.2f} {judged}"
