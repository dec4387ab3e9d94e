"""Creation of providers by name: `anthropic:claude-x`, `openai:gpt-x`, `scripted:PATH`, `replay:PATH`.

| name                        | wire                                      |
|-----------------------------|-------------------------------------------|
| `anthropic:MODEL`           | Anthropic Messages                        |
| `openai:MODEL`              | OpenAI Responses                          |
| `openai-chat:MODEL`         | OpenAI chat completions                   |
| `openai-compatible:MODEL`   | the same API, any vendor; needs `base_url`|
| `azure:DEPLOYMENT`          | OpenAI Responses at Azure                 |
| `google:MODEL`              | Gemini                                    |
| `vertex:MODEL`              | Gemini at Google Cloud                    |
| `bedrock:MODEL`             | Bedrock ConverseStream                    |
| `scripted:PATH`             | no model: plays a script                  |
| `replay:PATH`               | no model: replays a stored session        |

Vendors' clients are imported when such a provider is first created.
"""

import os
from collections.abc import Mapping
from dataclasses import replace
from importlib import import_module
from typing import Any, cast

from agent_loop.errors import AgentLoopError, ConfigurationError
from agent_loop.providers.access import DEFAULT_API_VERSION, VARIABLES, Access, complete_access
from agent_loop.providers.provider import Provider

OFFLINE_PROVIDERS = {
    "scripted": ("agent_loop.providers.scripted_provider", "ScriptedProvider"),
    "replay": ("agent_loop.sessions.replay_provider", "ReplayProvider"),
}
PROVIDER_NAMES = (*VARIABLES, *OFFLINE_PROVIDERS)
"""Names that may precede the colon."""


def provider_named(  # noqa: PLR0913  # one argument for each access value
    name: str,
    *,
    base_url: str | None = None,
    api_key: str | None = None,
    api_version: str | None = None,
    project: str | None = None,
    region: str | None = None,
    credentials: Any = None,
    environ: Mapping[str, str] | None = None,
) -> Provider:
    """Return the provider of this name. Unset values come from the vendor's environment variables.

    Raises `ConfigurationError` for an unknown name, a missing key or address, and an extra that is not installed.
    """
    vendor, _, rest = name.partition(":")
    if vendor in OFFLINE_PROVIDERS:
        return _offline_provider(vendor, rest)
    if vendor not in VARIABLES:
        raise ConfigurationError(
            f"unknown provider {vendor!r}; use one of {', '.join(PROVIDER_NAMES)}, followed by a model"
        )
    if not rest:
        raise ConfigurationError(f"{name!r} lacks a model; use {vendor}:MODEL")
    access = Access(
        base_url=base_url,
        api_key=api_key,
        api_version=api_version,
        project=project,
        region=region,
        credentials=credentials,
    )
    return _vendor_provider(vendor, rest, complete_access(vendor, access, os.environ if environ is None else environ))


def _offline_provider(kind: str, rest: str) -> Provider:
    module, class_name = OFFLINE_PROVIDERS[kind]
    provider: Any = getattr(import_module(module), class_name)
    return cast("Provider", provider.from_name(rest))


def _vendor_provider(vendor: str, model: str, access: Access) -> Provider:
    if vendor == "azure" and access.api_version is None and not (access.base_url or "").rstrip("/").endswith("/v1"):
        access = replace(access, api_version=DEFAULT_API_VERSION)
    try:
        vendors = import_module("agent_loop.providers.pydantic_ai.vendors")
        return cast("Provider", vendors.provider_of(vendor, model, access))
    except ImportError as error:
        raise ConfigurationError(
            f"{vendor} needs packages that are not installed ({error.name}); pip install 'agent-mux[native]'"
        ) from error
    except AgentLoopError:
        raise
    except Exception as error:  # noqa: BLE001  # clients raise their own errors for invalid access
        raise ConfigurationError(f"{vendor}:{model} cannot be used: {_redact(str(error), access)}") from None


def _redact(text: str, access: Access) -> str:
    for secret in access.all_secrets():
        text = text.replace(secret, "(redacted)")
    return text
