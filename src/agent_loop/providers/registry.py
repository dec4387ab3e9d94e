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
| `openrouter:MODEL`, ...     | chat completions; see `CHAT_SERVICES`     |
| `scripted:PATH`             | no model: plays a script                  |
| `replay:PATH`               | no model: replays a stored session        |

Vendors' clients are imported when such a provider is first created. `register_provider` adds names, and so do packages
with an entry point in the group `agent_loop.providers`.
"""

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from importlib import import_module
from typing import Any, cast

from agent_loop.errors import AgentLoopError, ConfigurationError, redact
from agent_loop.providers.access import (
    DEFAULT_API_VERSION,
    VARIABLES,
    Access,
    Compat,
    ContextManagement,
    complete_access,
)
from agent_loop.providers.provider import Provider

OFFLINE_PROVIDERS = {
    "scripted": ("agent_loop.providers.scripted_provider", "ScriptedProvider"),
    "replay": ("agent_loop.sessions.replay_provider", "ReplayProvider"),
}
PROVIDER_NAMES = (*VARIABLES, *OFFLINE_PROVIDERS)
"""Built-in names that may precede the colon."""
ENTRY_POINTS = "agent_loop.providers"
"""The group of entry points by which packages add providers."""
ProviderFactory = Callable[[str, Access], Provider]
"""Returns a provider for a model and the access that the caller passed, without values of the environment."""
_registered: dict[str, ProviderFactory] = {}


def register_provider(name: str, factory: ProviderFactory) -> None:
    """Add a provider, or replace one: `name:MODEL` then calls `factory(model, access)`.

    Raises `ConfigurationError` for a name with a colon, or an empty one.
    """
    if not name or ":" in name:
        raise ConfigurationError(f"{name!r} is not a valid name of a provider; use a word without a colon")
    _registered[name] = factory


MANAGING = "anthropic"
"""The vendor whose API edits the context."""


def provider_named(  # noqa: PLR0913  # one argument for each access value
    name: str,
    *,
    base_url: str | None = None,
    api_key: str | None = None,
    api_version: str | None = None,
    project: str | None = None,
    region: str | None = None,
    credentials: Any = None,
    headers: Mapping[str, str] | None = None,
    compat: Compat | None = None,
    context_management: ContextManagement | None = None,
    environ: Mapping[str, str] | None = None,
) -> Provider:
    """Return the provider of this name. Unset values come from the vendor's environment variables.

    `headers` are sent with every request; `compat` describes a server of the chat-completions API.
    `context_management` are edits that Anthropic's API applies to requests.

    Raises `ConfigurationError` for an unknown name, a missing key or address, and an extra that is not installed.
    """
    vendor, _, rest = name.partition(":")
    access = Access(
        base_url=base_url,
        api_key=api_key,
        api_version=api_version,
        project=project,
        region=region,
        credentials=credentials,
        headers=dict(headers or {}),
        compat=compat or Compat(),
        context_management=context_management,
    )
    if context_management is not None and vendor not in {MANAGING, *_registered}:
        raise ConfigurationError(f"{vendor or name!r} has no context_management; it is of Anthropic's API")
    factory = _registered.get(vendor)
    if factory is None and vendor in OFFLINE_PROVIDERS:
        return _offline_provider(vendor, rest)
    if factory is None and vendor not in VARIABLES:
        factory = _installed_factory(vendor, name)
    if not rest:
        raise ConfigurationError(f"{name!r} lacks a model; use {vendor}:MODEL")
    if factory is not None:
        return to_provider(factory(rest, access))
    return _vendor_provider(vendor, rest, complete_access(vendor, access, os.environ if environ is None else environ))


def _installed_factory(name: str, model: str) -> ProviderFactory:
    """Return the factory that an installed package provides. Raises `ConfigurationError` for `model` if none does."""
    from importlib.metadata import entry_points  # noqa: PLC0415  # slow to import, and rarely needed

    for found in entry_points(group=ENTRY_POINTS, name=name):
        try:
            return cast("ProviderFactory", found.load())
        except Exception as error:  # foreign code
            raise ConfigurationError(f"provider {name!r} of the package cannot be loaded: {error}") from error
    known = ", ".join((*PROVIDER_NAMES, *_registered))
    if ":" not in model:
        raise ConfigurationError(f"the model {model!r} names no provider; use PROVIDER:{model} with one of {known}")
    raise ConfigurationError(f"unknown provider {name!r}; use one of {known}, followed by a model")


def to_provider(candidate: Provider | str) -> Provider:
    """Return a provider, or the one of this name. Raises `ConfigurationError` for anything else."""
    if isinstance(candidate, str):
        return provider_named(candidate)
    # Not isinstance(), which evaluates `capabilities`: that takes long and is not needed before the first run.
    if not callable(getattr(candidate, "respond", None)) or isinstance(candidate, type):
        raise ConfigurationError(
            f"{candidate!r} is not a provider; pass a name such as 'anthropic:MODEL', or an object with the methods of "
            "Provider"
        )
    return candidate


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
        raise ConfigurationError(
            f"{vendor}:{model} cannot be used: {redact(str(error), access.all_secrets())}"
        ) from None
