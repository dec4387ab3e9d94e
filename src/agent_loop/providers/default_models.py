"""The model of a run that names none: the default model of the first provider whose API key is in the environment.

Without a key there is no model. A script is never the default, because its answers would look like a model's.
"""

from collections.abc import Mapping

from agent_loop.errors import MissingKeyError
from agent_loop.providers.access import CHAT_SERVICES, VARIABLES

DEFAULT_MODELS: Mapping[str, str] = {
    "anthropic": "claude-sonnet-5-5",
    "openai": "gpt-6-sol",
    "google": "gemini-3.8-flash",
}
"""The default model of each provider, in the order in which keys are looked for."""
WITHOUT_DEFAULT: Mapping[str, str] = {
    "azure": "DEPLOYMENT",
    "openai-compatible": "MODEL",
    "bedrock": "MODEL",
    **{name: "MODEL" for name, variables in CHAT_SERVICES.items() if variables.api_key},
}
"""Providers with a key whose models depend on the account or the vendor, and what to name for them."""
NEXT_STEP = (
    "or choose a model with --model provider:model; to try the agent without a model, --model scripted:PATH plays a "
    "script, and `amux demo` shows one"
)


def default_model(environ: Mapping[str, str]) -> str:
    """Return the model of a run that names none, as `provider:model`. Raises `MissingKeyError` without a key."""
    for provider, model in DEFAULT_MODELS.items():
        if key_variable(provider, environ) is not None:
            return f"{provider}:{model}"
    names = [" or ".join(VARIABLES[provider].api_key) for provider in DEFAULT_MODELS]
    raise MissingKeyError(f"no model is configured{_unusable_key(environ)}; set {', '.join(names)}, {NEXT_STEP}")


def key_variable(provider: str, environ: Mapping[str, str]) -> str | None:
    """Return the variable that contains the provider's API key, None if none is set."""
    return next((name for name in VARIABLES[provider].api_key if environ.get(name)), None)


def _unusable_key(environ: Mapping[str, str]) -> str:
    """Name a key that is set but selects no model, and the name that selects one."""
    for provider, noun in WITHOUT_DEFAULT.items():
        variable = key_variable(provider, environ)
        if variable is not None:
            return f", and {provider} has no default model: with {variable}, use --model {provider}:{noun}"
    return " and no API key is set"
