"""Helpers to call a provider in tests."""

from collections.abc import Sequence
from typing import Any

import anyio

from agent_loop.messages import AssistantMessage, Message, Text, ToolCall, ToolMessage, user
from agent_loop.providers import Chunk, ModelRequest, ModelResponse, Provider, ToolDefinition

PATIENCE = 60.0
"""Seconds after which a test has failed."""


class Listener:
    """Records the chunks that it receives."""

    def __init__(self) -> None:
        self.chunks: list[Chunk] = []

    async def __call__(self, chunk: Chunk) -> None:
        self.chunks.append(chunk)


async def ask(provider: Provider, *messages: Message | str, **known: Any) -> ModelResponse:
    """Return one answer."""
    with anyio.fail_after(PATIENCE):
        return await provider.respond(request(*messages, **known), Listener())


def request(*messages: Message | str, **known: Any) -> ModelRequest:
    return ModelRequest(messages=[user(each) if isinstance(each, str) else each for each in messages], **known)


def called(name: str, call_id: str = "call_1", **arguments: Any) -> AssistantMessage:
    return AssistantMessage(content=(ToolCall(call_id, name, arguments),), stop_reason="tool_use")


def result(text: str, name: str = "shell", call_id: str = "call_1") -> ToolMessage:
    return ToolMessage(tool_call_id=call_id, name=name, content=(Text(text),))


def tools(*names: str) -> tuple[ToolDefinition, ...]:
    return tuple(ToolDefinition(name, "", {"type": "object"}) for name in names)


async def converse(provider: Provider, task: str, results: Sequence[str]) -> list[AssistantMessage]:
    """Run a minimal loop that gives each tool call the next result; return the model's answers."""
    history: list[Message] = [user(task)]
    left = list(results)
    with anyio.fail_after(PATIENCE):
        while True:
            response = await provider.respond(ModelRequest(messages=history), Listener())
            history += response.messages
            if not response.tool_calls:
                return [message for message in history if isinstance(message, AssistantMessage)]
            history += [result(left.pop(0), call.name, call.id) for call in response.tool_calls]
