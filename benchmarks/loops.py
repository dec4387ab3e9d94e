"""The cost of our agent loop per turn and per tool call, compared with no loop, pydantic-ai's and openai-agents' loops.

All contestants do the same work: a model in memory calls one tool, in a given number of turns. Each model answers at
once, with the same text and calls as values of its framework, and counts no tokens. The tool is one coroutine function.
The difference is the cost of the loop.
"""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import agents as openai_agents
from agents.models.interface import Model as OpenAIModel
from openai.types import responses as wire
from pydantic_ai import Agent as PydanticAgent
from pydantic_ai import UsageLimits
from pydantic_ai import messages as pydantic_messages
from pydantic_ai.models.function import DeltaToolCall, FunctionModel
from pydantic_ai.usage import RequestUsage

from agent_loop.agent import Agent
from agent_loop.behavior import NO_LIMITS, Behavior
from agent_loop.messages import ToolCall, assistant
from agent_loop.providers import (
    ModelRequest,
    ModelResponse,
    OnChunk,
    ProviderCapabilities,
    TextChunk,
    ToolCallChunk,
)
from agent_loop.tools.function import function_tool
from benchmarks.measure import Rounds, interleaved, report, verdict

PIECES = ("Let ", "me ", "add ", "the ", "next ", "two ", "numbers, ", "then ", "see.")
TEXT = "".join(PIECES)
PROMPT = "Add the numbers."
DONE = "done"
ENOUGH = 1_000_000


added: Counter[str] = Counter()
"""Number of tool calls, to verify that all contestants do the same work."""


async def add(a: int, b: int) -> str:
    """Add two numbers."""
    added["calls"] += 1
    return str(a + b)


@dataclass(frozen=True)
class Work:
    """A number of turns with a number of tool calls each, and one last turn without calls."""

    turns: int
    calls: int

    def numbers(self, turn: int) -> Iterator[int]:
        """Return a number for each call of a turn."""
        return iter(range(turn * self.calls, (turn + 1) * self.calls))


# -- no loop ----------------------------------------------------------------------------------------------------------


async def bare(work: Work) -> None:
    """Await the model and the tools, and store their results: the minimum of any loop."""
    history: list[Any] = [PROMPT]

    async def model(turn: int) -> list[tuple[str, dict[str, int]]]:
        return [(f"c{each}", {"a": each, "b": 1}) for each in work.numbers(turn)]

    for turn in range(work.turns):
        calls = await model(turn)
        history.append((TEXT, calls))
        history += [(call_id, await add(**arguments)) for call_id, arguments in calls]
    history.append(DONE)


# -- ours -------------------------------------------------------------------------------------------------------------


class InMemoryProvider:
    """Our provider."""

    id = "memory"
    model = "memory"
    capabilities = ProviderCapabilities()

    def __init__(self, work: Work) -> None:
        self._work = work
        self._turn = -1

    async def respond(self, _request: ModelRequest, on_chunk: OnChunk) -> ModelResponse:
        self._turn += 1
        if self._turn >= self._work.turns:
            await on_chunk(TextChunk(DONE))
            return ModelResponse((assistant(DONE),))
        calls = [ToolCall(f"c{each}", "add", {"a": each, "b": 1}) for each in self._work.numbers(self._turn)]
        for piece in PIECES:
            await on_chunk(TextChunk(piece))
        for call in calls:
            await on_chunk(ToolCallChunk(call.id, call.name, f'{{"a":{call.arguments["a"]},"b":1}}'))
        return ModelResponse((assistant(TEXT, *calls),))


BEHAVIOR = Behavior(limits=NO_LIMITS, max_iterations=ENOUGH)
TOOL = function_tool(add)


async def ours(work: Work, **known: Any) -> None:
    await Agent(InMemoryProvider(work), tools=[TOOL], behavior=BEHAVIOR, **known).run(PROMPT)


async def ours_streamed(work: Work, **known: Any) -> None:
    async with Agent(InMemoryProvider(work), tools=[TOOL], behavior=BEHAVIOR, **known).run_stream(PROMPT) as events:
        async for _ in events:
            pass


# -- pydantic-ai ------------------------------------------------------------------------------------------------------

MEASURED = RequestUsage(input_tokens=1, output_tokens=1)
"""Given explicitly, so that pydantic-ai does not estimate it: no other contestant counts tokens."""
UNLIMITED = UsageLimits(request_limit=None)


def _ignore() -> None:
    """Do nothing: the default of `on_request`."""


def pydantic_agent(work: Work, on_request: Callable[[], None] = _ignore) -> PydanticAgent[None, str]:
    """Return a pydantic-ai agent for this work; each model call calls `on_request`."""
    turns = iter(range(ENOUGH))

    async def answer(_messages: Any, _info: Any) -> pydantic_messages.ModelResponse:
        on_request()
        turn = next(turns)
        if turn >= work.turns:
            return pydantic_messages.ModelResponse([pydantic_messages.TextPart(DONE)], usage=MEASURED)
        calls = [pydantic_messages.ToolCallPart("add", {"a": each, "b": 1}, f"c{each}") for each in work.numbers(turn)]
        return pydantic_messages.ModelResponse([pydantic_messages.TextPart(TEXT), *calls], usage=MEASURED)

    async def pieces(_messages: Any, _info: Any) -> AsyncIterator[str | dict[int, DeltaToolCall]]:
        turn = next(turns)
        if turn >= work.turns:
            yield DONE
            return
        for piece in PIECES:
            yield piece
        for index, each in enumerate(work.numbers(turn)):
            yield {index: DeltaToolCall("add", f'{{"a":{each},"b":1}}', tool_call_id=f"c{each}")}

    agent = PydanticAgent(FunctionModel(answer, stream_function=pieces))
    agent.tool_plain(add)
    return agent


async def run_pydantic_ai(agent: PydanticAgent[None, str], history: Sequence[Any] = ()) -> None:
    """Execute one run after this history."""
    await agent.run(PROMPT, usage_limits=UNLIMITED, message_history=list(history) or None)


async def pydantic_ai(work: Work) -> None:
    await run_pydantic_ai(pydantic_agent(work))


async def pydantic_ai_streamed(work: Work) -> None:
    async with pydantic_agent(work).run_stream_events(PROMPT, usage_limits=UNLIMITED) as events:
        async for _ in events:
            pass


# -- openai-agents ----------------------------------------------------------------------------------------------------


class _OpenAIInMemory(OpenAIModel):
    def __init__(self, work: Work) -> None:
        self._work = work
        self._turn = -1

    def _output(self) -> list[Any]:
        self._turn += 1
        if self._turn >= self._work.turns:
            return [_message(DONE)]
        calls = [
            wire.ResponseFunctionToolCall(
                arguments=f'{{"a":{each},"b":1}}', call_id=f"c{each}", name="add", type="function_call"
            )
            for each in self._work.numbers(self._turn)
        ]
        return [_message(TEXT), *calls]

    async def get_response(self, *_: Any, **__: Any) -> openai_agents.ModelResponse:
        return openai_agents.ModelResponse(output=self._output(), usage=openai_agents.Usage(), response_id=None)

    async def stream_response(self, *_: Any, **__: Any) -> AsyncIterator[Any]:
        output = self._output()
        for number, piece in enumerate(PIECES if len(output) > 1 else (DONE,)):
            yield wire.ResponseTextDeltaEvent(
                content_index=0, delta=piece, item_id="m", logprobs=[], output_index=0, sequence_number=number,
                type="response.output_text.delta",
            )  # fmt: skip
        for number, call in enumerate(output[1:]):
            yield wire.ResponseFunctionCallArgumentsDeltaEvent(
                delta=call.arguments, item_id=call.call_id, output_index=number, sequence_number=number,
                type="response.function_call_arguments.delta",
            )  # fmt: skip
        whole = wire.Response(
            id="r", created_at=0, model="memory", object="response", output=output, parallel_tool_calls=True,
            tool_choice="auto", tools=[],
        )  # fmt: skip
        yield wire.ResponseCompletedEvent(response=whole, sequence_number=0, type="response.completed")


def _message(text: str) -> wire.ResponseOutputMessage:
    part = wire.ResponseOutputText(annotations=[], text=text, type="output_text")
    return wire.ResponseOutputMessage(id="m", content=[part], role="assistant", status="completed", type="message")


UNTRACED = openai_agents.RunConfig(tracing_disabled=True)


def _openai_agent(work: Work) -> openai_agents.Agent[None]:
    return openai_agents.Agent("bench", model=_OpenAIInMemory(work), tools=[openai_agents.function_tool(add)])


async def openai(work: Work) -> None:
    await openai_agents.Runner.run(_openai_agent(work), PROMPT, max_turns=ENOUGH, run_config=UNTRACED)


async def openai_streamed(work: Work) -> None:
    run = openai_agents.Runner.run_streamed(_openai_agent(work), PROMPT, max_turns=ENOUGH, run_config=UNTRACED)
    async for _ in run.stream_events():
        pass


Contestant = Callable[[Work], Coroutine[Any, Any, None]]
WHOLE: dict[str, Contestant] = {"bare": bare, "agent_loop": ours, "pydantic-ai": pydantic_ai, "openai-agents": openai}
STREAMED: dict[str, Contestant] = {
    "agent_loop": ours_streamed,
    "pydantic-ai": pydantic_ai_streamed,
    "openai-agents": openai_streamed,
}


# -- measurement -------------------------------------------------------------------------------------------------------

ROUNDS = 5
TURNS = Work(turns=50, calls=1)
CALLS = Work(turns=1, calls=200)
BETTER = 1.0
"""Upper limit for our time divided by that of any other loop."""


def rounds(contestants: dict[str, Contestant], work: Work) -> Rounds:
    """Return the CPU time of each contestant for this work, in seconds."""
    runs = {name: partial(_run, contestant, work) for name, contestant in contestants.items()}
    for name, run in runs.items():
        added.clear()
        run()  # warm-up: imports and caches are not measured
        assert added["calls"] == work.turns * work.calls, (name, added)
    return interleaved(runs, ROUNDS, time.process_time)


def _run(contestant: Contestant, work: Work) -> None:
    asyncio.run(contestant(work))


def main(_: Path) -> None:
    """Print the time of each contestant per turn and per tool call, compared with ours."""
    for title, work, count in (
        (f"A turn with one tool call, of {TURNS.turns}", TURNS, TURNS.turns),
        (f"A tool call, of {CALLS.calls} in one turn", CALLS, CALLS.calls),
    ):
        for mode, contestants in (("whole", WHOLE), ("streamed", STREAMED)):
            report(f"{title}, {mode}", _rows(rounds(contestants, work), count))


def _rows(seconds: Rounds, count: int) -> list[str]:
    rows = []
    for name in seconds:
        row = f"{name:<14}{seconds.typical(name) / count * 1e6:9.1f} us"
        if name not in {"agent_loop", "bare"}:
            share = seconds.ratio("agent_loop", name)
            row += f"   agent_loop takes {share:4.2f} of this {verdict(share, most=BETTER)}"
        rows.append(row)
    return rows
