"""How Codex is authenticated: who its model's provider is, and what `auth.json` holds. Measured with 0.169.0."""

import base64
import json
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from agent_mux.auth.methods import AgentAuth, AuthMethod, Evidence, SetupStep
from agent_mux.place import Place
from agent_mux_adapters._dialects.tolerant import mapping, optional_whole, text

KEY_OF_ONE_SHOTS = "CODEX_API_KEY"
"""`codex exec` takes it before anything stored; the app-server does not look at it. Nobody looks at OPENAI_API_KEY,
whatever `codex doctor` says."""
_NEED_NO_KEY = frozenset({"lmstudio", "ollama"})
_OF_AWS = "amazon-bedrock"
_IN_KEYRING = frozenset({"keyring", "auto"})


def directory(place: Place) -> Path:
    """Where Codex keeps everything."""
    return place.home_of("CODEX_HOME", ".codex")


def config_file(place: Place) -> Path:
    """Of all of a user's work."""
    return directory(place) / "config.toml"


def _config(place: Place) -> dict[str, Any]:
    try:
        return tomllib.loads(config_file(place).read_text("utf-8"))
    except FileNotFoundError:
        return {}


def _stored(place: Place) -> dict[str, Any]:
    try:
        found = json.loads((directory(place) / "auth.json").read_bytes())
    except FileNotFoundError:
        return {}
    return found if isinstance(found, dict) else {}


def _own_provider(config: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]] | None:
    """The provider that the configuration names, where it does without an account of OpenAI."""
    name = text(config.get("model_provider"))
    if name in _NEED_NO_KEY or name == _OF_AWS:
        return name, {}
    provider = mapping(mapping(config.get("model_providers")).get(name))
    return (name, provider) if provider and provider.get("requires_openai_auth") is not True else None


def _provider(place: Place) -> Evidence | None:
    found = _own_provider(_config(place))
    if found is None or found[0] == _OF_AWS:
        return None
    name, provider = found
    variable = text(provider.get("env_key"))
    if variable:
        return Evidence(where=variable) if place.environ.get(variable) else None
    return Evidence(where=f"{config_file(place)} (model_providers.{name})")


def _of_openai(find: Callable[[Place], Evidence | None]) -> Callable[[Place], Evidence | None]:
    """Credentials that count only where the model is OpenAI's."""
    return lambda place: None if _own_provider(_config(place)) else find(place)


def _token(place: Place) -> Evidence | None:
    return Evidence(where="CODEX_ACCESS_TOKEN") if place.environ.get("CODEX_ACCESS_TOKEN") else None


def _key(place: Place) -> Evidence | None:
    stored = _stored(place)
    if text(stored.get("OPENAI_API_KEY")) and stored.get("auth_mode") != "chatgpt":
        return Evidence(where=str(directory(place) / "auth.json"))
    return None


def _key_of_one_shots(place: Place) -> Evidence | None:
    named = f"{KEY_OF_ONE_SHOTS}, which counts in one-shot runs only"
    return Evidence(where=named) if place.environ.get(KEY_OF_ONE_SHOTS) else None


def _account(place: Place) -> Evidence | None:
    tokens = mapping(_stored(place).get("tokens"))
    token = text(tokens.get("access_token"))
    if not token:
        return None
    renews = bool(text(tokens.get("refresh_token")))
    return Evidence(where=str(directory(place) / "auth.json"), expires_at=None if renews else _expiry(token))


def _expiry(token: str) -> int | None:
    """When a JSON Web Token expires, in milliseconds; None where it does not say."""
    body = token.split(".")[1] if token.count(".") == 2 else ""
    try:
        claims = json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))
    except ValueError:
        return None
    seconds = optional_whole(mapping(claims).get("exp"))
    return None if seconds is None else seconds * 1000


def _elsewhere(place: Place) -> str | None:
    try:
        config = _config(place)
    except (OSError, ValueError):
        return None  # the methods have said so already
    if text(config.get("model_provider")) == _OF_AWS:
        return "the credentials of AWS"
    return "the keyring of the system" if config.get("cli_auth_credentials_store") in _IN_KEYRING else None


AUTH = AgentAuth(
    methods=(
        AuthMethod(name="own-provider", display_name="a model provider of one's own", find=_provider),
        AuthMethod(name="access-token", display_name="an access token", find=_of_openai(_token)),
        AuthMethod(name="api-key", display_name="an API key", find=_of_openai(_key)),
        AuthMethod(name="chatgpt", display_name="a ChatGPT account", find=_of_openai(_account)),
        AuthMethod(name="exec-key", display_name="an API key of one-shot runs", find=_of_openai(_key_of_one_shots)),
    ),
    steps=(
        SetupStep(text="Log in with a ChatGPT account, in a browser.", command=("login",)),
        SetupStep(text="Or store an API key, which is read from standard input.", command=("login", "--with-api-key")),
        SetupStep(text="Or set an API key; only one-shot runs look at it.", variable=KEY_OF_ONE_SHOTS),
    ),
    elsewhere=_elsewhere,
)
