"""The user's own model provider (`copilot help providers`), as the headless protocol wants it.

`copilot -p` reads `COPILOT_PROVIDER_*`; the headless runtime does not: its client says which provider to use, and what
the client says is recorded. So the key stays where it is, in the environment: the runtime is told a command that reads
it. What no command can tell (other headers, a bearer token that is no API key) cannot be said.
"""

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

_KEY = "COPILOT_PROVIDER_API_KEY"
_KEY_COMMAND = "COPILOT_PROVIDER_API_KEY_COMMAND"
_TOKEN = "COPILOT_PROVIDER_BEARER_TOKEN"  # noqa: S105  # the name of a variable
_URL = "COPILOT_PROVIDER_BASE_URL"
_HEADERS = "COPILOT_PROVIDER_HEADERS"
_OPENAI = "openai"
_TEXTS = {
    "wireApi": "COPILOT_PROVIDER_WIRE_API",
    "transport": "COPILOT_PROVIDER_TRANSPORT",
    "modelId": "COPILOT_PROVIDER_MODEL_ID",
    "wireModel": "COPILOT_PROVIDER_WIRE_MODEL",
}
_NUMBERS = {
    "maxPromptTokens": "COPILOT_PROVIDER_MAX_PROMPT_TOKENS",
    "maxOutputTokens": "COPILOT_PROVIDER_MAX_OUTPUT_TOKENS",
}
_AZURE_VERSION = "COPILOT_PROVIDER_AZURE_API_VERSION"


def provider_of(environ: Mapping[str, str]) -> dict[str, Any] | None:
    """The provider without its secrets; None when the user has none."""
    if not environ.get(_URL):
        return None
    provider: dict[str, Any] = {"type": _type_of(environ), "baseUrl": environ[_URL]}
    provider |= {name: environ[variable] for name, variable in _TEXTS.items() if environ.get(variable)}
    provider |= {name: int(environ[v]) for name, v in _NUMBERS.items() if environ.get(v, "").isdecimal()}
    if environ.get(_AZURE_VERSION):
        provider["azure"] = {"apiVersion": environ[_AZURE_VERSION]}
    command = _key_command(environ)
    return provider if command is None else {**provider, "apiKeyCommand": command}


def unspeakable(environ: Mapping[str, str]) -> tuple[str, ...]:
    """The variables whose values are secret and cannot be said without being recorded."""
    if not environ.get(_URL):
        return ()
    found = [_HEADERS] if environ.get(_HEADERS) else []
    if environ.get(_TOKEN) and _type_of(environ) != _OPENAI:
        found.append(_TOKEN)
    if urlsplit(environ[_URL]).password is not None:
        found.append(_URL)
    return tuple(found)


def model_of(environ: Mapping[str, str]) -> str | None:
    """The model that the environment names. The headless runtime does not read that either."""
    return environ.get("COPILOT_MODEL") or environ.get("COPILOT_PROVIDER_MODEL_ID") or None


def _type_of(environ: Mapping[str, str]) -> str:
    return environ.get("COPILOT_PROVIDER_TYPE") or _OPENAI


def _key_command(environ: Mapping[str, str]) -> str | None:
    """A shell command that prints the key. The first one that is set counts, as for `copilot -p`."""
    if environ.get(_TOKEN) and _type_of(environ) == _OPENAI:
        return f"printenv {_TOKEN}"  # there, a key is sent as a bearer token
    if environ.get(_KEY_COMMAND):
        return f'sh -c "${_KEY_COMMAND}"'
    return f"printenv {_KEY}" if environ.get(_KEY) else None
