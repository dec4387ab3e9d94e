"""Where OpenCode's credentials are: a key or a login for each provider; one provider is enough.

Without any, OpenCode still has the free models of its own provider. Organizations of its console, whose tokens are in
its database, are not covered.
"""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from agent_mux.sdk import read_text
from agent_mux.sdk.config import AgentPaths, effective_files
from agent_mux.sdk.documents import DocumentError, open_document
from agent_mux.sdk.installation import AgentAuth, AuthMethod, FoundCredentials, SetupStep
from agent_mux_adapters._dialects.tolerant import mapping, text
from agent_mux_adapters.opencode.paths import FILES, data_directory

KEYS = (
    "ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_GENERATIVE_AI_API_KEY",
    "OPENROUTER_API_KEY", "OPENCODE_API_KEY", "GROQ_API_KEY", "MISTRAL_API_KEY", "DEEPSEEK_API_KEY", "XAI_API_KEY",
    "CEREBRAS_API_KEY", "MOONSHOT_API_KEY", "ZHIPU_API_KEY", "AWS_BEARER_TOKEN_BEDROCK",
)  # fmt: skip
"""Variables of the most common providers; OpenCode reads those of many more."""
_VARIABLE = "OPENCODE_AUTH_CONTENT"
_PLACEHOLDER = re.compile(r"\{(env|file):([^}]+)\}")


def _stored(place: AgentPaths) -> tuple[str, Mapping[str, Any]]:
    """Return where the credentials are stored, and their content. Raises `OSError`, `ValueError`."""
    content = place.environ.get(_VARIABLE)
    if content:
        return _VARIABLE, mapping(json.loads(content))
    path = data_directory(place) / "auth.json"
    try:
        return str(path), mapping(json.loads(path.read_bytes()))
    except FileNotFoundError:
        return str(path), {}


def _entries_of_type(place: AgentPaths, kind: str, *fields: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    where, stored = _stored(place)
    for provider, entry in stored.items():
        if mapping(entry).get("type") == kind and any(text(mapping(entry).get(field)) for field in fields):
            yield f"{where} ({provider})", mapping(entry)


def _key(place: AgentPaths) -> FoundCredentials | None:
    found = next(_entries_of_type(place, "api", "key"), None)
    return FoundCredentials(where=found[0]) if found is not None else _configured_key(place)


def _login(place: AgentPaths) -> FoundCredentials | None:
    """Find the login that is valid longest; logins that renew themselves do not expire."""
    logins = [
        FoundCredentials(where=where, expires_at=None if entry.get("refresh") else _milliseconds(entry.get("expires")))
        for where, entry in _entries_of_type(place, "oauth", "access", "refresh")
    ]
    return max(logins, key=lambda login: (login.expires_at is None, login.expires_at or 0), default=None)


def _milliseconds(value: Any) -> int | None:
    return value if isinstance(value, int) and value > 0 else None


def _organization(place: AgentPaths) -> FoundCredentials | None:
    found = next(_entries_of_type(place, "wellknown", "token"), None)
    return FoundCredentials(where=found[0]) if found is not None else None


def _configured_key(place: AgentPaths) -> FoundCredentials | None:
    """Find a key in the configuration, literal or as a reference; the last file with one counts."""
    found = None
    for file, path in effective_files(FILES, place):
        content = read_text(path)
        try:
            providers = (
                mapping(open_document(content, file.format).data().get("provider")) if content is not None else {}
            )
        except DocumentError as error:
            raise ValueError(f"{path}: {error}") from error
        for name, provider in providers.items():
            key = text(mapping(mapping(provider).get("options")).get("apiKey"))
            if key and _is_available(place, path, key):
                found = FoundCredentials(where=f"{path} (provider.{name}.options.apiKey)")
    return found


def _is_available(place: AgentPaths, path: Path, key: str) -> bool:
    """Return whether the key is literal, or the variable or file that it refers to exists."""
    named = _PLACEHOLDER.fullmatch(key.strip())
    if named is None:
        return True
    kind, name = named.groups()
    return bool(place.environ.get(name)) if kind == "env" else (path.parent / _expand_home(place, name)).is_file()


def _expand_home(place: AgentPaths, name: str) -> Path:
    return place.home / name.removeprefix("~/") if name.startswith("~/") else Path(name)


AUTH = AgentAuth(
    methods=(
        AuthMethod(name="api_key", display_name="the API key of a provider", variables=KEYS, find=_key),
        AuthMethod(name="oauth", display_name="the account of a provider", find=_login),
        AuthMethod(name="organization", display_name="the token of an organization", find=_organization),
    ),
    steps=(
        SetupStep(text="Choose a provider, and log in or enter its API key.", command=("auth", "login")),
        SetupStep(text="Or set a provider's API key, for example Anthropic's.", variable="ANTHROPIC_API_KEY"),
        SetupStep(text="Or that of OpenCode Zen.", variable="OPENCODE_API_KEY"),
    ),
)
