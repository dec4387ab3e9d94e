"""Credentials of Codex, which depend on its model provider and on `auth.json`. Measured with 0.169.0."""

import base64
import json
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from agent_mux.sdk.config import AgentPaths
from agent_mux.sdk.installation import AgentAuth, AuthMethod, FoundCredentials, SetupStep
from agent_mux_adapters._dialects.tolerant import mapping, optional_whole, text

EXEC_KEY = "CODEX_API_KEY"
"""`codex exec` prefers this variable to stored credentials; the app-server does not read it. Neither reads
OPENAI_API_KEY, although `codex doctor` mentions it."""
_KEYLESS_PROVIDERS = frozenset({"lmstudio", "ollama"})
_AWS_PROVIDER = "amazon-bedrock"
_KEYRING_STORES = frozenset({"keyring", "auto"})


def directory(place: AgentPaths) -> Path:
    """Return the directory in which Codex keeps everything."""
    return place.home_of("CODEX_HOME", ".codex")


def config_file(place: AgentPaths) -> Path:
    """Return the user's configuration file."""
    return directory(place) / "config.toml"


def _config(place: AgentPaths) -> dict[str, Any]:
    try:
        return tomllib.loads(config_file(place).read_text("utf-8"))
    except FileNotFoundError:
        return {}


def _stored(place: AgentPaths) -> dict[str, Any]:
    try:
        found = json.loads((directory(place) / "auth.json").read_bytes())
    except FileNotFoundError:
        return {}
    return found if isinstance(found, dict) else {}


def _own_provider(config: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]] | None:
    """Return the configured provider if it works without an OpenAI account; else None."""
    name = text(config.get("model_provider"))
    if name in _KEYLESS_PROVIDERS or name == _AWS_PROVIDER:
        return name, {}
    provider = mapping(mapping(config.get("model_providers")).get(name))
    return (name, provider) if provider and provider.get("requires_openai_auth") is not True else None


def _find_own_provider(place: AgentPaths) -> FoundCredentials | None:
    found = _own_provider(_config(place))
    if found is None or found[0] == _AWS_PROVIDER:
        return None
    name, provider = found
    variable = text(provider.get("env_key"))
    if variable:
        return FoundCredentials(where=variable) if place.environ.get(variable) else None
    return FoundCredentials(where=f"{config_file(place)} (model_providers.{name})")


def _if_openai(
    find: Callable[[AgentPaths], FoundCredentials | None],
) -> Callable[[AgentPaths], FoundCredentials | None]:
    """Restrict a search for credentials to configurations in which OpenAI is the provider."""
    return lambda place: None if _own_provider(_config(place)) else find(place)


def _find_token(place: AgentPaths) -> FoundCredentials | None:
    return FoundCredentials(where="CODEX_ACCESS_TOKEN") if place.environ.get("CODEX_ACCESS_TOKEN") else None


def _find_api_key(place: AgentPaths) -> FoundCredentials | None:
    stored = _stored(place)
    if text(stored.get("OPENAI_API_KEY")) and stored.get("auth_mode") != "chatgpt":
        return FoundCredentials(where=str(directory(place) / "auth.json"))
    return None


def _find_exec_key(place: AgentPaths) -> FoundCredentials | None:
    where = f"{EXEC_KEY}, used by one-shot runs only"
    return FoundCredentials(where=where) if place.environ.get(EXEC_KEY) else None


def _find_account(place: AgentPaths) -> FoundCredentials | None:
    tokens = mapping(_stored(place).get("tokens"))
    token = text(tokens.get("access_token"))
    if not token:
        return None
    is_renewable = bool(text(tokens.get("refresh_token")))
    return FoundCredentials(
        where=str(directory(place) / "auth.json"), expires_at=None if is_renewable else _expiry(token)
    )


def _expiry(token: str) -> int | None:
    """Return when a JSON Web Token expires, in milliseconds since the epoch; None when it has no expiry."""
    body = token.split(".")[1] if token.count(".") == 2 else ""
    try:
        claims = json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))
    except ValueError:
        return None
    seconds = optional_whole(mapping(claims).get("exp"))
    return None if seconds is None else seconds * 1000


def _elsewhere(place: AgentPaths) -> str | None:
    """Name the place of credentials that no method can read; None when there are none."""
    try:
        config = _config(place)
    except (OSError, ValueError):
        return None  # the methods above report the same error
    if text(config.get("model_provider")) == _AWS_PROVIDER:
        return "the AWS credentials"
    return "the system keyring" if text(config.get("cli_auth_credentials_store")) in _KEYRING_STORES else None


AUTH = AgentAuth(
    methods=(
        AuthMethod(name="own-provider", display_name="your own model provider", find=_find_own_provider),
        AuthMethod(name="access-token", display_name="an access token", find=_if_openai(_find_token)),
        AuthMethod(name="api-key", display_name="an API key", find=_if_openai(_find_api_key)),
        AuthMethod(name="chatgpt", display_name="a ChatGPT account", find=_if_openai(_find_account)),
        AuthMethod(name="exec-key", display_name="an API key for one-shot runs", find=_if_openai(_find_exec_key)),
    ),
    steps=(
        SetupStep(text="Log in with a ChatGPT account, in a browser.", command=("login",)),
        SetupStep(text="Or store an API key, which is read from standard input.", command=("login", "--with-api-key")),
        SetupStep(text="Or set an API key, which only one-shot runs use.", variable=EXEC_KEY),
    ),
    elsewhere=_elsewhere,
)
