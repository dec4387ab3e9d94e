"""The same work for our loop, two others and none: a model in memory that calls one tool, so often, in so many turns.

Each model answers at once, with the same text and the same calls, as the values that its framework takes; none counts
tokens. The tool is one coroutine function. What is left is what the loop around them costs.
"""

from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from dataclasses import dataclass
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

PIECES = ("Let ", "me ", "add ", "the ", "next ", "two ", "numbers, ", "then ", "see.")
TEXT = "".join(PIECES)
PROMPT = "Add the numbers."
DONE = "done"
ENOUGH = 1_000_000


added: Counter[str] = Counter()
"""How often the tool was called: the proof that all do the same."""


async def add(a: int, b: int) -> str:
    """Add two numbers."""
    added["calls"] += 1
    return str(a + b)


@dataclass(frozen=True)
class Work:
    """So many turns that call tools, each so many; then one more, which ends it."""

    turns: int
    calls: int

    def numbers(self, turn: int) -> Iterator[int]:
        """One for each call of a turn."""
        return iter(range(turn * self.calls, (turn + 1) * self.calls))


# -- no loop ----------------------------------------------------------------------------------------------------------


async def bare(work: Work) -> None:
    """The least: await the model, await the tools, keep what they said."""
    history: list[Any] = [PROMPT]

    async def model(turn: int) -> list[tuple[str, dict[str, int]]]:
        return [(f"c{each}", {"a": each, "b": 1}) for each in work.numbers(turn)]

    for turn in range(work.turns):
        calls = await model(turn)
        history.append((TEXT, calls))
        history += [(call_id, await add(**arguments)) for call_id, arguments in calls]
    history.append(DONE)


# -- ours -------------------------------------------------------------------------------------------------------------


class InMemory:
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
    await Agent(InMemory(work), tools=[TOOL], behavior=BEHAVIOR, **known).run(PROMPT)


async def ours_streamed(work: Work, **known: Any) -> None:
    async with Agent(InMemory(work), tools=[TOOL], behavior=BEHAVIOR, **known).run_stream(PROMPT) as events:
        async for _ in events:
            pass


# -- pydantic-ai ------------------------------------------------------------------------------------------------------

MEASURED = RequestUsage(input_tokens=1, output_tokens=1)
"""Said, so that it is not estimated: nobody else here counts tokens for the model."""
UNLIMITED = UsageLimits(request_limit=None)


def _nothing() -> None:
    """Nobody wants to know."""


def pydantic_agent(work: Work, on_request: Callable[[], None] = _nothing) -> PydanticAgent[None, str]:
    """Its agent; `on_request` is called whenever its model is asked."""
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
    """One run of it behind this history."""
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
            return [_said(DONE)]
        calls = [
            wire.ResponseFunctionToolCall(
                arguments=f'{{"a":{each},"b":1}}', call_id=f"c{each}", name="add", type="function_call"
            )
            for each in self._work.numbers(self._turn)
        ]
        return [_said(TEXT), *calls]

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


def _said(text: str) -> wire.ResponseOutputMessage:
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
