"""The vendors' APIs, a local model server for them, and helpers to call it."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import anyio

from agent_loop.messages import Message, user
from agent_loop.providers.provider import Chunk, ModelRequest, ModelResponse, Provider, ToolDefinition
from agent_loop.providers.registry import provider_named
from agent_mux_testing.model_server import ScriptedModelServer

KEY = "key-made-up-0123456789"
PATIENCE = 60.0  # seconds; only a bug needs them
ECHO = ToolDefinition("echo", "Says it again.", {"type": "object", "properties": {"text": {"type": "string"}}})


def google_credentials() -> Any:
    from google.oauth2.credentials import Credentials as OAuth

    return OAuth(token=KEY)


@dataclass(frozen=True, eq=False)
class Wire:
    """One vendor API."""

    name: str
    path: str
    """Behind the address of the server."""
    route: str
    """Where requests must arrive."""
    known: Mapping[str, Any] = field(default_factory=lambda: {"api_key": KEY})
    credentials: bool = False

    def provider(self, url: str, model: str | None = None) -> Provider:
        known = {"credentials": google_credentials()} if self.credentials else {}
        name = f"{self.name.partition(':')[0]}:{model}" if model else self.name
        return provider_named(name, base_url=url + self.path, environ={}, **self.known, **known)


ANTHROPIC = Wire("anthropic:claude-haiku-4-5", "", "/v1/messages")
OPENAI = Wire("openai:gpt-5", "/v1", "/v1/responses")
CHAT = Wire("openai-chat:gpt-5", "/v1", "/v1/chat/completions")
COMPATIBLE = Wire("openai-compatible:local-model", "/v1", "/v1/chat/completions")
AZURE = Wire("azure:gpt-5", "", "/openai/responses?api-version=2025-04-01-preview")
GOOGLE = Wire("google:gemini-2.5-flash", "", "/v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse")
VERTEX = Wire(
    "vertex:gemini-2.5-pro",
    "",
    "/v1beta1/projects/made-up/locations/us-central1/publishers/google/models/gemini-2.5-pro:streamGenerateContent"
    "?alt=sse",
    {"project": "made-up", "region": "us-central1"},
    credentials=True,
)
BEDROCK = Wire(
    "bedrock:anthropic.claude-sonnet-4-5-20250929-v1:0",
    "",
    "/model/anthropic.claude-sonnet-4-5-20250929-v1%3A0/converse-stream",
    {"credentials": {"aws_access_key_id": "made-up-id", "aws_secret_access_key": KEY}, "region": "us-east-1"},
)
WIRES = (ANTHROPIC, OPENAI, CHAT, COMPATIBLE, AZURE, GOOGLE, VERTEX, BEDROCK)
BACKENDS = ("asyncio", "trio")


@contextmanager
def served(*steps: Mapping[str, Any]) -> Iterator[ScriptedModelServer]:
    """Serve this script on a separate event loop, because the test may use the other backend."""
    started, stop = threading.Event(), threading.Event()
    box: list[ScriptedModelServer] = []

    async def serve() -> None:
        async with ScriptedModelServer({"steps": list(steps)}) as server:
            box.append(server)
            started.set()
            await asyncio.to_thread(stop.wait)

    thread = threading.Thread(target=asyncio.run, args=(serve(),))
    thread.start()
    try:
        assert started.wait(PATIENCE)
        yield box[0]
    finally:
        stop.set()
        thread.join(PATIENCE)


def text(words: str, **more: Any) -> dict[str, Any]:
    """Return a step with this text, for any API."""
    return {"blocks": [{"type": "text", "text": words}], "items": [{"type": "message", "text": words}], **more}


def call(arguments: dict[str, Any] | str, **more: Any) -> dict[str, Any]:
    """Return a step that calls `echo`; arguments given as text are sent unchanged."""
    given = {"input": arguments} if isinstance(arguments, dict) else {"raw_input": arguments}
    block = {"type": "tool_use", "name": "echo", "id": "call_1", **given}
    item = {"type": "function_call", "name": "echo", "call_id": "call_1", "arguments": arguments}
    return {"blocks": [block], "items": [item], **more}


def request(*messages: Message, **more: Any) -> ModelRequest:
    """Return a request with one tool."""
    return ModelRequest(messages=messages or (user("Hello"),), tools=(ECHO,), **more)


@dataclass
class ChunkRecorder:
    """Records the chunks that it receives."""

    chunks: list[Chunk] = field(default_factory=list)

    async def __call__(self, chunk: Chunk) -> None:
        self.chunks.append(chunk)

    def of(self, kind: type[Any]) -> list[Any]:
        return [chunk for chunk in self.chunks if isinstance(chunk, kind)]


def run(work: Callable[[], Awaitable[Any]], backend: str = "asyncio") -> Any:
    """Run the function on this event loop, in bounded time."""

    async def bounded() -> Any:
        with anyio.fail_after(PATIENCE):
            return await work()

    return anyio.run(bounded, backend=backend)


def ask(
    provider: Any, asked: ModelRequest, heard: ChunkRecorder | None = None, backend: str = "asyncio"
) -> ModelResponse:
    """Return one answer and close the connections."""

    async def once() -> ModelResponse:
        try:
            response: ModelResponse = await provider.respond(asked, heard or ChunkRecorder())
            return response
        finally:
            await provider.aclose()

    answer: ModelResponse = run(once, backend)
    return answer
