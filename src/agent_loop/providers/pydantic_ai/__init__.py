"""Models of many vendors, through the model classes of pydantic-ai. Needs the extra `native`.

Heavy to import (a second): `agent_loop.providers.registry` does it when such a model is first asked for.
"""

from agent_loop.providers.pydantic_ai.provider import PydanticAIProvider

__all__ = ["PydanticAIProvider"]
