"""Models: what they are asked, what they answer, and the ones there are."""

from agent_loop.providers.provider import (
    NO_CACHE,
    CacheSettings,
    Chunk,
    ModelRequest,
    ModelResponse,
    ModelSettings,
    OnChunk,
    Provider,
    ProviderCapabilities,
    TextChunk,
    ThinkingChunk,
    ThinkingLevel,
    ToolCallChunk,
    ToolDefinition,
)

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
