"""Models: what they are asked, what they answer, and the ones there are."""

from agent_loop.providers.provider import OnChunk, Provider, ProviderCapabilities
from agent_loop.providers.request import (
    NO_CACHE,
    CacheSettings,
    ModelRequest,
    ModelSettings,
    ThinkingLevel,
    ToolDefinition,
)
from agent_loop.providers.response import Chunk, ModelResponse, TextChunk, ThinkingChunk, ToolCallChunk

__all__ = [
    "NO_CACHE",
    "CacheSettings",
    "Chunk",
    "ModelRequest",
    "ModelResponse",
    "ModelSettings",
    "OnChunk",
    "Provider",
    "ProviderCapabilities",
    "TextChunk",
    "ThinkingChunk",
    "ThinkingLevel",
    "ToolCallChunk",
    "ToolDefinition",
]
