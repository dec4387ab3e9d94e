"""Model providers: their interface, and the providers that ship with the agent."""

from agent_loop.providers.provider import (
    NO_CACHE,
    CacheSettings,
    Chunk,
    ContextEdit,
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
    "ContextEdit",
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
