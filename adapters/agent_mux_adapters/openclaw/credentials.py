"""Credentials of OpenClaw: variables, its `.env`, its configuration, its database. Measured with 2026.9.6."""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from agent_mux.sdk.config import AgentPaths
from agent_mux.sdk.installation import AgentAuth, AuthMethod, FoundCredentials, SetupStep
from agent_mux_adapters._dialects.tolerant import mapping, optional_whole, text
from agent_mux_adapters.openclaw.configuration import state_directory, users_config

KEYS = (
    "ANTHROPIC_API_KEY", "OPENAI_API_KEY", "OPENROUTER_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY",
    "GOOGLE_CLOUD_API_KEY", "XAI_API_KEY", "AI_GATEWAY_API_KEY", "ARCEEAI_API_KEY", "AZURE_OPENAI_API_KEY",
    "BASETEN_API_KEY", "CEREBRAS_API_KEY", "CHUTES_API_KEY", "CLAWROUTER_API_KEY", "CLOUDFLARE_AI_GATEWAY_API_KEY",
    "COHERE_API_KEY", "DASHSCOPE_API_KEY", "DEEPINFRA_API_KEY", "DEEPSEEK_API_KEY", "FEATHERLESS_API_KEY",
    "FIREWORKS_API_KEY", "GMI_API_KEY", "GROQ_API_KEY", "HF_TOKEN", "HUGGINGFACE_HUB_TOKEN", "KILOCODE_API_KEY",
    "KIMICODE_API_KEY", "KIMI_API_KEY", "LITELLM_API_KEY", "LM_API_TOKEN", "LONGCAT_API_KEY", "MINIMAX_API_KEY",
    "MINIMAX_CODE_PLAN_KEY", "MINIMAX_CODING_API_KEY", "MISTRAL_API_KEY", "MODELSTUDIO_API_KEY", "MOONSHOT_API_KEY",
    "NOVITA_API_KEY", "NVIDIA_API_KEY", "OLLAMA_API_KEY", "OPENCODE_API_KEY", "OPENCODE_ZEN_API_KEY",
    "QIANFAN_API_KEY", "QWEN_API_KEY", "SGLANG_API_KEY", "STEPFUN_API_KEY", "SYNTHETIC_API_KEY", "TOGETHER_API_KEY",
    "TOKENHUB_API_KEY", "VENICE_API_KEY", "VLLM_API_KEY", "XIAOMI_API_KEY", "ZAI_API_KEY", "Z_AI_API_KEY",
)  # fmt: skip
"""Variables of model providers, from its documentation (help/environment) and the manifests of its plugins."""
TOKENS = ("ANTHROPIC_OAUTH_TOKEN", "CHUTES_OAUTH_TOKEN", "COPILOT_GITHUB_TOKEN", "MINIMAX_OAUTH_TOKEN")
_STORE = "SELECT value_json FROM config_machine_state WHERE state_key = 'authProfiles.store'"
_SECRET_FIELDS = {
    "api_key": ("key", "keyRef"),
    "token": ("token", "tokenRef"),
    "oauth": ("access", "refresh", "oauthRef"),
}
_NEVER = float("inf")
_DOTENV_LINE = re.compile(r"""\s*(?:export\s+)?([A-Za-z_]\w*)\s*=\s*["']?([^"'\s])""")


def directory(place: AgentPaths) -> Path:
    """Return the directory that holds everything OpenClaw stores."""
    return place.directory if place.directory is not None else state_directory(place.environ)


def config_file(place: AgentPaths) -> Path:
    """Return the path of its configuration, which a variable may move out of its directory."""
    return place.directory / "openclaw.json" if place.directory is not None else users_config(place.environ)


def _key(place: AgentPaths) -> FoundCredentials | None:
    return _in_dotenv(place, KEYS) or _in_config(place, KEYS) or _in_database(place, "api_key")


def _token(place: AgentPaths) -> FoundCredentials | None:
    return _in_dotenv(place, TOKENS) or _in_config(place, TOKENS) or _in_database(place, "token")


def _login(place: AgentPaths) -> FoundCredentials | None:
    return _in_database(place, "oauth")


def _in_dotenv(place: AgentPaths, names: tuple[str, ...]) -> FoundCredentials | None:
    path = directory(place) / ".env"
    found = (_DOTENV_LINE.match(line) for line in _text_of(path).splitlines())
    name = next((line[1] for line in found if line is not None and line[1] in names), None)
    return None if name is None else FoundCredentials(where=f"{path} ({name})")


def _in_config(place: AgentPaths, names: tuple[str, ...]) -> FoundCredentials | None:
    path = config_file(place)
    config = _config(path)
    env = mapping(config.get("env"))
    variables = {**env, **mapping(env.get("vars"))}
    name = next((name for name in names if text(variables.get(name))), None)
    if name is not None:
        return FoundCredentials(where=f"{path} (env.{name})")
    providers = mapping(mapping(config.get("models")).get("providers"))
    keyed = next((name for name, provider in providers.items() if mapping(provider).get("apiKey")), None)
    return FoundCredentials(where=f"{path} (models.providers.{keyed}.apiKey)") if keyed and names is KEYS else None


def _in_database(place: AgentPaths, kind: str) -> FoundCredentials | None:
    """Find a credential in its database, which is opened only when the configuration names one of this kind."""
    path = directory(place) / "state" / "openclaw.sqlite"
    if not any(mapping(profile).get("mode") == kind for profile in _configured_profiles(place)) or not path.is_file():
        return None
    expiries = [_NEVER if expires is None else expires for expires in _stored_expiries(path, kind)]
    if not expiries:
        return None
    return FoundCredentials(where=str(path), expires_at=None if max(expiries) == _NEVER else int(max(expiries)))


def _configured_profiles(place: AgentPaths) -> list[Any]:
    """Return the credentials that the configuration names: their kinds, without the secrets."""
    return list(mapping(mapping(_config(config_file(place)).get("auth")).get("profiles")).values())


def _agent_databases(place: AgentPaths) -> str | None:
    """Describe the databases of single agents, which may hold further credentials and are not opened."""
    try:
        has_profiles = bool(_configured_profiles(place))
    except (OSError, ValueError):  # already reported by the methods
        return None
    return f"the databases of its agents ({directory(place) / 'agents'})" if has_profiles else None


def _stored_expiries(path: Path, kind: str) -> Iterator[int | None]:
    """Yield when each credential expires; None for a login that OpenClaw can renew."""
    from agent_mux.sdk.session_databases import open_database  # noqa: PLC0415  # imported only when needed
    from agent_mux.sdk.sessions import UnreadableSessionError  # noqa: PLC0415

    try:
        with open_database(path) as database:
            row = database.execute(_STORE).fetchone()
    except UnreadableSessionError as error:
        raise OSError(f"{path}: {error}") from error
    store = json.loads(row[0]) if row is not None else {}
    for profile in map(mapping, mapping(mapping(store).get("profiles")).values()):
        if profile.get("type") == kind and any(profile.get(name) for name in _SECRET_FIELDS[kind]):
            yield None if profile.get("refresh") else optional_whole(profile.get("expires"))


def _config(path: Path) -> Mapping[str, Any]:
    content = _text_of(path)
    try:
        return mapping(json.loads(content or "{}"))
    except ValueError:
        from agent_mux.sdk.documents import open_document  # noqa: PLC0415  # only for JSON5 that a person wrote

        return open_document(content, "json").data()


def _text_of(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except FileNotFoundError:
        return ""


AUTH = AgentAuth(
    methods=(
        AuthMethod(name="oauth", display_name="an account", find=_login),
        AuthMethod(name="token", display_name="a token", variables=TOKENS, find=_token),
        AuthMethod(name="api_key", display_name="an API key", variables=KEYS, find=_key),
    ),
    steps=(
        SetupStep(text="Log in with a provider.", command=("models", "auth", "login")),
        SetupStep(text="Save an API key of a provider.", command=("models", "auth", "paste-api-key")),
        SetupStep(text="Or set an API key of a provider.", variable="ANTHROPIC_API_KEY"),
    ),
    elsewhere=_agent_databases,
)
