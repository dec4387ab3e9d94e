"""A provider that calls a model through a model class of pydantic-ai."""

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import Any, cast
from urllib.parse import urlsplit, urlunsplit

from pydantic_ai.direct import model_request_stream
from pydantic_ai.messages import InstructionPart, ModelMessage
from pydantic_ai.messages import ModelResponse as NativeResponse
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.output import OutputObjectDefinition
from pydantic_ai.settings import ModelSettings as NativeSettings
from pydantic_ai.tools import ToolDefinition as NativeTool

from agent_loop.errors import ProviderError
from agent_loop.providers.access import ContextManagement
from agent_loop.providers.provider import Chunk, ContextEdit, ModelRequest, ModelResponse, OnChunk, ProviderCapabilities
from agent_loop.providers.pydantic_ai.failures import provider_error
from agent_loop.providers.pydantic_ai.incoming import Chunks, assistant_message
from agent_loop.providers.pydantic_ai.outgoing import native_messages
from agent_loop.providers.pydantic_ai.settings import Dialect, native_settings

WINDOWS = {"gemini-2.": 1_048_576}
"""Prefix of a model's name -> its context window in tokens, where pydantic-ai does not know it."""


class PydanticAIProvider:
    """Any model that pydantic-ai supports. `aclose()` closes its connections."""

    def __init__(  # noqa: PLR0913  # keyword arguments, each documented below
        self,
        provider_id: str,
        build: Callable[[], Model],
        dialect: Dialect,
        *,
        secrets: Callable[[], Iterable[str]] = tuple,
        headers: Mapping[str, str] | None = None,
        context_management: ContextManagement | None = None,
    ) -> None:
        """`build` creates the model with its own connections; `secrets` returns texts to redact from errors.

        `headers` are sent with every request; `context_management` are edits that Anthropic's API applies to each one.
        """
        self._build = build
        self._model = build()
        self._is_closed = False
        self.id = provider_id
        self.model = self._model.model_name
        self._dialect = dialect
        self._secrets = secrets
        self._headers = dict(headers or {})
        self._context_management = context_management
        self.api = dialect.api
        self.base_url = _public_address(self._model.base_url)

    @cached_property
    def capabilities(self) -> ProviderCapabilities:
        """The features of the model according to pydantic-ai's profile."""
        profile: Any = self._model.profile
        return ProviderCapabilities(
            vision=profile.get("supports_image_input", True),
            image_in_tool_result=profile.get("supports_image_input", True),
            thinking=profile.get("supports_thinking", False),
            structured_output=profile.get("supports_json_schema_output", False),
            structured_output_with_tools=profile.get("google_supports_tool_combination", True),
            context_window=self._model.context_window or known_window(self.model),
        )

    async def respond(self, request: ModelRequest, on_chunk: OnChunk) -> ModelResponse:
        """Call the model once. Raises `ProviderError`; exceptions of `on_chunk` pass unchanged."""
        forwarder = _ChunkForwarder(on_chunk)
        try:
            answer, edits = await self._ask(request, forwarder)
            message = assistant_message(answer, provider=self.id, model=self.model)
        except Exception as error:  # any exception of a client is a failed call
            if error is forwarder.failure:
                raise
            raise self._to_provider_error(error) from None
        return ModelResponse((message,), message.usage, edits)

    async def aclose(self) -> None:
        """Close the connections. The provider can be used again and opens new ones."""
        self._is_closed = True
        async with self._model:
            pass

    async def _ask(
        self, request: ModelRequest, forwarder: "_ChunkForwarder"
    ) -> tuple[NativeResponse, tuple[ContextEdit, ...]]:
        if self._is_closed:
            self._model, self._is_closed = self._build(), False
        parameters = self._parameters(request)
        messages = self._model.prepare_messages(native_messages(request.messages, self.id), parameters)
        settings = native_settings(request, self._model, self._dialect)
        if self._headers:
            settings["extra_headers"] = self._headers
        if self._context_management is None:
            return await self._stream(messages, settings, parameters, forwarder), ()
        from agent_loop.providers.pydantic_ai import context_edits  # noqa: PLC0415  # it imports Anthropic's client

        settings = cast("NativeSettings", {**settings, **context_edits.request_fields(self._context_management)})
        with context_edits.collected_edits() as edits:
            answer = await self._stream(messages, settings, parameters, forwarder)
        return answer, tuple(edits)

    async def _stream(
        self,
        messages: list[ModelMessage],
        settings: NativeSettings,
        parameters: ModelRequestParameters,
        forwarder: "_ChunkForwarder",
    ) -> NativeResponse:
        chunks = Chunks()
        async with model_request_stream(
            self._model, messages, model_settings=settings, model_request_parameters=parameters, instrument=False
        ) as stream:
            async for event in stream:
                if (chunk := chunks.of(event)) is not None:
                    await forwarder.forward(chunk)
            return _check_complete(stream.get())

    def _parameters(self, request: ModelRequest) -> ModelRequestParameters:
        schema = request.output_schema if self.capabilities.structured_output else None
        return ModelRequestParameters(
            function_tools=[
                NativeTool(name=tool.name, description=tool.description, parameters_json_schema=tool.parameters)
                for tool in request.tools
            ],
            instruction_parts=[InstructionPart(content=request.system)] if request.system else None,
            output_mode="text" if schema is None else "native",
            output_object=None if schema is None else OutputObjectDefinition(json_schema=schema, name="output"),
        )

    def _to_provider_error(self, error: Exception) -> ProviderError:
        return error if isinstance(error, ProviderError) else provider_error(error, self.id, self._secrets())


def _public_address(base_url: str | None) -> str | None:
    """Return an address without user, password and query."""
    if not base_url:
        return None
    parts = urlsplit(base_url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def known_window(model: str) -> int | None:
    """Return the context window of a model in tokens, None if it is unknown."""
    return next((tokens for prefix, tokens in WINDOWS.items() if model.startswith(prefix)), None)


def _check_complete(answer: NativeResponse) -> NativeResponse:
    """Return the answer if the provider has ended it. Clients accept a stream that just stops as complete."""
    if answer.finish_reason is None and not (answer.provider_details or {}).get("finish_reason"):
        raise ConnectionError("the stream stopped before the answer was over")
    return answer


class _ChunkForwarder:
    """Forwards chunks and remembers a failure of the consumer, which does not count as a failed call."""

    def __init__(self, on_chunk: OnChunk) -> None:
        self._on_chunk = on_chunk
        self.failure: Exception | None = None

    async def forward(self, chunk: Chunk) -> None:
        try:
            await self._on_chunk(chunk)
        except Exception as error:
            self.failure = error
            raise
