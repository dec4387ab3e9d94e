"""The vendors: the model class and client of each. Keys are passed in, never looked up."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from agent_loop.providers.access import Access
from agent_loop.providers.pydantic_ai import settings
from agent_loop.providers.pydantic_ai.provider import PydanticAIProvider

if TYPE_CHECKING:
    from pydantic_ai.models import Model

# Each vendor's client is imported where it is created, so that the others need not be installed.
# ruff: noqa: PLC0415


def provider_of(vendor: str, model: str, access: Access) -> PydanticAIProvider:
    """Return a provider for this model.

    Raises `ImportError` if the vendor's client is not installed, `KeyError` for an unknown vendor, and the client's own
    errors for an invalid access.
    """
    build, dialect = VENDORS[vendor]
    return PydanticAIProvider(vendor, lambda: build(model, access), dialect, secrets=access.all_secrets)


def _anthropic(model: str, access: Access) -> "Model":
    from pydantic_ai.models.anthropic import AnthropicModel
    from pydantic_ai.providers.anthropic import AnthropicProvider

    return AnthropicModel(model, provider=AnthropicProvider(api_key=access.api_key or "", base_url=access.base_url))


def _openai(model: str, access: Access) -> "Model":
    from pydantic_ai.models.openai import OpenAIResponsesModel
    from pydantic_ai.providers.openai import OpenAIProvider

    return OpenAIResponsesModel(model, provider=OpenAIProvider(base_url=access.base_url, api_key=access.api_key))


def _openai_chat(model: str, access: Access) -> "Model":
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.profiles.openai import OpenAIModelProfile
    from pydantic_ai.providers.openai import OpenAIProvider

    profile = OpenAIModelProfile(openai_chat_streaming_requires_finish_reason=True)
    provider = OpenAIProvider(base_url=access.base_url, api_key=access.api_key)
    return OpenAIChatModel(model, provider=provider, profile=profile)


def _openai_compatible(model: str, access: Access) -> "Model":
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.profiles.openai import OpenAIModelProfile
    from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider

    # Self-hosted servers often need no key, but the client requires a text.
    key = access.api_key or "none"
    provider = OpenAICompatibleProvider("openai-compatible", base_url=access.base_url or "", api_key=key)
    # All servers accept the name `max_tokens`. A stream that ends without a finish reason was truncated.
    profile = OpenAIModelProfile(
        openai_chat_supports_max_completion_tokens=False, openai_chat_streaming_requires_finish_reason=True
    )
    return OpenAIChatModel(model, provider=provider, profile=profile)


def _azure(model: str, access: Access) -> "Model":
    from pydantic_ai.models.openai import OpenAIResponsesModel
    from pydantic_ai.providers.azure import AzureProvider

    provider = AzureProvider(
        azure_endpoint=access.base_url, api_version=access.api_version, api_key=access.api_key
    )  # fmt: skip
    return OpenAIResponsesModel(model, provider=provider)


def _google(model: str, access: Access) -> "Model":
    from pydantic_ai.models.google import GoogleModel
    from pydantic_ai.providers.google import GoogleProvider

    return GoogleModel(model, provider=GoogleProvider(api_key=access.api_key, base_url=access.base_url))


def _vertex(model: str, access: Access) -> "Model":
    from pydantic_ai.models.google import GoogleModel
    from pydantic_ai.providers.google_cloud import GoogleCloudProvider

    provider = GoogleCloudProvider(
        api_key=access.api_key,
        credentials=access.credentials,
        project=access.project,
        location=access.region,
        base_url=access.base_url,
    )
    return GoogleModel(model, provider=provider)


def _bedrock(model: str, access: Access) -> "Model":
    from pydantic_ai.models.bedrock import BedrockConverseModel
    from pydantic_ai.providers.bedrock import BedrockProvider

    from agent_loop.providers.pydantic_ai.bedrock import bedrock_client

    return BedrockConverseModel(model, provider=BedrockProvider(bedrock_client=bedrock_client(access)))


VENDORS: Mapping[str, tuple[Callable[[str, Access], "Model"], settings.Dialect]] = {
    "anthropic": (_anthropic, settings.ANTHROPIC),
    "openai": (_openai, settings.OPENAI),
    "openai-chat": (_openai_chat, settings.OPENAI_CHAT),
    "openai-compatible": (_openai_compatible, settings.OPENAI_CHAT),
    "azure": (_azure, settings.OPENAI),
    "google": (_google, settings.GOOGLE),
    "vertex": (_vertex, settings.GOOGLE),
    "bedrock": (_bedrock, settings.BEDROCK),
}
