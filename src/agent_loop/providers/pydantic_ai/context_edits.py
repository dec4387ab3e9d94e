"""Edits of the context by Anthropic's API: sent with each request, and read from its answers.

pydantic-ai drops the applied edits of an answer, so they are read from the stream on its way through the HTTP client.
"""

import json
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import TracebackType
from typing import Any

import httpx2
from anthropic import DefaultAsyncHttpxClient
from pydantic_ai.providers.anthropic import AnthropicProvider

from agent_loop.providers.access import Access, ContextManagement
from agent_loop.providers.provider import ContextEdit

_MAX_LINE = 1 << 20
"""Bytes of a line of the stream that are kept to look for edits."""
_applied: ContextVar[list[ContextEdit] | None] = ContextVar("agent_loop_applied_edits", default=None)
"""Where the edits of the current request are collected."""


@contextmanager
def collected_edits() -> Iterator[list[ContextEdit]]:
    """Yield a list that gets the edits which are applied to requests in this block."""
    edits: list[ContextEdit] = []
    token = _applied.set(edits)
    try:
        yield edits
    finally:
        _applied.reset(token)


def request_fields(management: ContextManagement) -> dict[str, Any]:
    """Return the settings of a request that ask for the edits."""
    edits = [dict(edit) for edit in management.edits]
    return {"extra_body": {"context_management": {"edits": edits}}, "anthropic_betas": list(management.betas)}


class ObservedAnthropicProvider(AnthropicProvider):
    """Anthropic's API with a client that reads the applied edits; it is closed with the provider."""

    def __init__(self, access: Access) -> None:
        # Uncompressed, because the stream is read before the client decodes it.
        self._observed = DefaultAsyncHttpxClient(
            headers={"accept-encoding": "identity"}, event_hooks={"response": [_observe]}
        )
        super().__init__(api_key=access.api_key or "", base_url=access.base_url, http_client=self._observed)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        """Close the client, too."""
        try:
            return await super().__aexit__(kind, error, trace)
        finally:
            await self._observed.aclose()


async def _observe(response: httpx2.Response) -> None:
    edits = _applied.get()
    if edits is not None and isinstance(response.stream, httpx2.AsyncByteStream):
        response.stream = _ObservedStream(response.stream, edits)


class _ObservedStream(httpx2.AsyncByteStream):
    """Passes a stream of server-sent events on unchanged and collects its edits."""

    def __init__(self, stream: httpx2.AsyncByteStream, edits: list[ContextEdit]) -> None:
        self._stream = stream
        self._edits = edits
        self._line = bytearray()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self._stream:
            *lines, rest = chunk.split(b"\n")
            for line in lines:
                self._edits += _edits_of(bytes(self._line + line))
                self._line.clear()
            if len(self._line) + len(rest) <= _MAX_LINE:
                self._line += rest
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()


def _edits_of(line: bytes) -> list[ContextEdit]:
    """Return the applied edits in a line of the stream."""
    if not line.startswith(b"data:") or b'"applied_edits"' not in line:
        return []
    try:
        applied = json.loads(line[5:])["context_management"]["applied_edits"]
        return [
            ContextEdit(
                str(edit["type"]),
                int(edit.get("cleared_input_tokens") or 0),
                int(edit.get("cleared_tool_uses") or 0),
                int(edit.get("cleared_thinking_turns") or 0),
            )
            for edit in applied
        ]
    except (ValueError, TypeError, KeyError, AttributeError):  # the text of a model, or another form of the API
        return []
