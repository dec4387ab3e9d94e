"""A provider for tests that returns given answers in order and records its requests, and a fake tool."""

from collections.abc import Callable, Sequence
from typing import Any

import anyio

from agent_loop.messages import AssistantMessage, Block, Text, Thinking, ToolCall
from agent_loop.providers import (
    ModelRequest,
    ModelResponse,
    OnChunk,
    ProviderCapabilities,
    TextChunk,
    ThinkingChunk,
    ToolCallChunk,
)
from agent_loop.usage import Usage

Answer = ModelResponse | Exception | Callable[[ModelRequest], "Answer"]


class FakeProvider:
    """Returns the answers in order; repeats the last one if `repeat`."""

    id = "answering"
    model = "made-up"

    def __init__(self, *answers: Answer, repeat: bool = False, **able: Any) -> None:
        self.answers = list(answers)
        self.repeat = repeat
        self.requests: list[ModelRequest] = []
        self.capabilities = ProviderCapabilities(**able)

    async def respond(self, request: ModelRequest, on_chunk: OnChunk) -> ModelResponse:
        self.requests.append(request)
        await anyio.lowlevel.checkpoint()
        answer: Any = self.answers[0] if self.repeat and len(self.answers) == 1 else self.answers.pop(0)
        while callable(answer) and not isinstance(answer, type):
            answer = answer(request)
        if isinstance(answer, Exception):
            raise answer
        for message in answer.messages:
            for block in message.content:
                await _emit_chunks(block, on_chunk)
        return answer


async def _emit_chunks(block: Block, on_chunk: OnChunk) -> None:
    match block:
        case Text(text):
            await on_chunk(TextChunk(text))
        case Thinking(text=text):
            await on_chunk(ThinkingChunk(text))
        case ToolCall(id=id, name=name, raw_arguments=raw):
            await on_chunk(ToolCallChunk(id, name, raw or "{}"))


def reply(
    text: str = "", *calls: ToolCall, thinking: str = "", usage: Usage | None = None, **known: Any
) -> ModelResponse:
    """Return an answer with this text and these calls."""
    content: list[Block] = [Thinking(thinking)] if thinking else []
    content += [Text(text)] if text else []
    content += calls
    stop = "tool_use" if calls else "stop"
    message = AssistantMessage(content=tuple(content), **{"stop_reason": stop, "provider": "answering", **known})
    return ModelResponse((message,), usage or Usage(input_tokens=10, output_tokens=5))


def calls(name: str, call_id: str = "1", **arguments: Any) -> ToolCall:
    """Return a tool call."""
    return ToolCall(call_id, name, arguments)


class FakeTool:
    """A tool with this name that applies the function to the arguments."""

    description = "Made up."
    kind = "other"

    def __init__(
        self, name: str, does: Callable[..., Any] = lambda **_: "ok", required: Sequence[str] = (), **known: Any
    ) -> None:
        self.name = name
        self._does = does
        self.parameters = {"type": "object", "properties": {}, "required": list(required)}
        self.seen: list[dict[str, Any]] = []
        for key, value in known.items():
            setattr(self, key, value)

    async def execute(self, arguments: dict[str, Any], context: Any) -> Any:
        self.seen.append(arguments)
        outcome = self._does(**arguments)
        return await outcome if hasattr(outcome, "__await__") else outcome
