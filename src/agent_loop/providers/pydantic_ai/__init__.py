"""Providers of many vendors through the model classes of pydantic-ai. Requires the extra `native`.

The import takes about a second: `agent_loop.providers.registry` defers it until such a model is requested.
"""

from agent_loop.providers.pydantic_ai.provider import PydanticAIProvider

__all__ = ["PydanticAIProvider"]
