"""The vendors: the model class and client of each. Keys are passed in, never looked up."""

from collections.abc import Callable, Mapping
from functools import reduce
from importlib import import_module
from typing import TYPE_CHECKING, Any

from agent_loop.providers.access import CHAT_SERVICES, Access, Compat
from agent_loop.providers.pydantic_ai import settings
from agent_loop.providers.pydantic_ai.provider import PydanticAIProvider

if TYPE_CHECKING:
    from pydantic_ai.models import Model

OPENROUTER = "openrouter"
"""The service of chat completions that passes cache breakpoints on to the vendors behind it."""

# Each vendor's client is imported where it is created, so that the others need not be installed.
# ruff: noqa: PLC0415


def provider_of(vendor: str, model: str, access: Access) -> PydanticAIProvider:
    """Return a provider for this model.

    Raises `ImportError` if the vendor's client is not installed, `KeyError` for an unknown vendor, and the client's own
    errors for an invalid access.
    """
    if vendor in PROFILES:
        dialect = settings.OPENROUTER if vendor == OPENROUTER else settings.OPENAI_CHAT

        def build() -> "Model":
            return _chat_service(vendor, model, access)
    else:
        make, dialect = VENDORS[vendor]

        def build() -> "Model":
            return make(model, access)

    return PydanticAIProvider(
        vendor,
        build,
        dialect,
        secrets=access.all_secrets,
        headers=access.headers,
        context_management=access.context_management,
    )


def _chat_profile(compat: Compat, **known: Any) -> Any:
    """Return pydantic-ai's profile of a server of the chat-completions API, with the differences of this server."""
    role = None if compat.developer_role is None else "developer" if compat.developer_role else "system"
    field = compat.max_tokens_field
    found = {
        "openai_chat_supports_max_completion_tokens": None if field is None else field == "max_completion_tokens",
        "openai_system_prompt_role": role,
        "supports_thinking": compat.reasoning_effort,
        "openai_supports_reasoning": compat.reasoning_effort,
        "openai_supports_strict_tool_definition": compat.strict_tools,
        "supports_forced_tool_choice": compat.forced_tool_choice,
        "supports_json_schema_output": compat.json_schema,
        "supports_image_input": compat.images,
        "context_window": compat.context_window,
    }
    different = {name: value for name, value in found.items() if value is not None}
    # A stream that ends without a finish reason was truncated.
    return {"openai_chat_streaming_requires_finish_reason": True, **known, **different}


def _anthropic(model: str, access: Access) -> "Model":
    from pydantic_ai.models.anthropic import AnthropicModel
    from pydantic_ai.providers.anthropic import AnthropicProvider

    if access.context_management is not None:
        from agent_loop.providers.pydantic_ai.context_edits import ObservedAnthropicProvider

        return AnthropicModel(model, provider=ObservedAnthropicProvider(access))
    return AnthropicModel(model, provider=AnthropicProvider(api_key=access.api_key or "", base_url=access.base_url))


def _openai(model: str, access: Access) -> "Model":
    from pydantic_ai.models.openai import OpenAIResponsesModel
    from pydantic_ai.providers.openai import OpenAIProvider

    return OpenAIResponsesModel(model, provider=OpenAIProvider(base_url=access.base_url, api_key=access.api_key))


def _openai_chat(model: str, access: Access) -> "Model":
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    profile = _chat_profile(access.compat)
    provider = OpenAIProvider(base_url=access.base_url, api_key=access.api_key)
    return OpenAIChatModel(model, provider=provider, profile=profile)


def _openai_compatible(model: str, access: Access) -> "Model":
    return _chat_service("openai-compatible", model, access)


def _chat_service(name: str, model: str, access: Access) -> "Model":
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider

    # Self-hosted servers often need no key, but the client requires a text.
    key = access.api_key or "none"
    provider = OpenAICompatibleProvider(
        name, base_url=access.base_url or "", api_key=key, profile=_profile_function(PROFILES.get(name))
    )
    # All servers accept the name `max_tokens`.
    profile = _chat_profile(access.compat, openai_chat_supports_max_completion_tokens=False)
    if name == OPENROUTER:
        from pydantic_ai.models.openrouter import OpenRouterModel

        return OpenRouterModel(model, provider=provider, profile=profile)
    return OpenAIChatModel(model, provider=provider, profile=profile)


def _profile_function(path: str | None) -> Any:
    """Return pydantic-ai's function of a service from a model's name to its profile, None if it has none."""
    if path is None:
        return None
    module, _, attributes = path.partition(":")
    return reduce(getattr, attributes.split("."), import_module(module))


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
"""How the model of each vendor is built, and its settings."""
PROFILES: Mapping[str, str | None] = {
    **dict.fromkeys(CHAT_SERVICES),
    "openrouter": "pydantic_ai.providers.openrouter:OpenRouterProvider.model_profile",
    "xai": "pydantic_ai.profiles.grok:grok_model_profile",
    "deepseek": "pydantic_ai.providers.deepseek:DeepSeekProvider.model_profile",
    "mistral": "pydantic_ai.profiles.mistral:mistral_model_profile",
    "together": "pydantic_ai.providers.together:TogetherProvider.model_profile",
    "fireworks": "pydantic_ai.providers.fireworks:FireworksProvider.model_profile",
    "cerebras": "pydantic_ai.providers.cerebras:CerebrasProvider.model_profile",
    "moonshotai": "pydantic_ai.providers.moonshotai:MoonshotAIProvider.model_profile",
    "zai": "pydantic_ai.providers.zai:ZaiProvider.model_profile",
    "alibaba": "pydantic_ai.providers.alibaba:AlibabaProvider.model_profile",
    "nebius": "pydantic_ai.providers.nebius:NebiusProvider.model_profile",
    "sambanova": "pydantic_ai.providers.sambanova:SambaNovaProvider.model_profile",
    "ollama": "pydantic_ai.providers.ollama:OllamaProvider.model_profile",
    "vercel": "pydantic_ai.providers.vercel:VercelProvider.model_profile",
    "vllm": "pydantic_ai.providers.vllm:VLLMProvider.model_profile",
}
"""Services with the chat-completions API, with pydantic-ai's knowledge of their models."""
