"""Credentials of Hermes: variables, its `.env`, its `auth.json`, its configuration. Measured with 0.19.0."""

import json
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from agent_mux.sdk.config import AgentPaths
from agent_mux.sdk.installation import AgentAuth, AuthMethod, FoundCredentials, SetupStep
from agent_mux_adapters._dialects.tolerant import mapping, rows, text
from agent_mux_adapters.hermes.paths import profile_directory

KEYS = (
    "OPENROUTER_API_KEY", "ANTHROPIC_API_KEY", "ANTHROPIC_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN", "OPENAI_API_KEY",
    "GOOGLE_API_KEY", "GEMINI_API_KEY", "XAI_API_KEY", "DEEPSEEK_API_KEY", "COPILOT_GITHUB_TOKEN", "GH_TOKEN",
    "GITHUB_TOKEN", "GLM_API_KEY", "ZAI_API_KEY", "Z_AI_API_KEY", "KIMI_API_KEY", "KIMI_CODING_API_KEY",
    "KIMI_CN_API_KEY", "STEPFUN_API_KEY", "ARCEEAI_API_KEY", "GMI_API_KEY", "MINIMAX_API_KEY", "MINIMAX_CN_API_KEY",
    "ALIBABA_CODING_PLAN_API_KEY", "DASHSCOPE_API_KEY", "NVIDIA_API_KEY", "OPENCODE_ZEN_API_KEY",
    "OPENCODE_GO_API_KEY", "KILOCODE_API_KEY", "HF_TOKEN", "XIAOMI_API_KEY", "TOKENHUB_API_KEY", "OLLAMA_API_KEY",
    "AZURE_FOUNDRY_API_KEY", "DEEPINFRA_API_KEY", "FIREWORKS_API_KEY", "NOVITA_API_KEY", "UPSTAGE_API_KEY",
    "LM_API_KEY",
)  # fmt: skip
"""Variables of its providers. Hermes uses GitHub's tokens for Copilot, whatever they were set for."""
_CONFIGURED_KEY = re.compile(r"""\bapi_key["']?\s*:\s*(?!["']{2})[^\s#,}]""")
_NEVER = float("inf")


def _login(place: AgentPaths) -> FoundCredentials | None:
    """Find a login of `hermes portal` or `hermes auth add --type oauth`."""
    return _in_store(place, is_key=False)


def _key(place: AgentPaths) -> FoundCredentials | None:
    """Find a key of `hermes config set NAME_API_KEY`, of `hermes auth add --type api-key`, or in the configuration."""
    return _in_dotenv(place) or _in_store(place, is_key=True) or _in_config(place)


def _in_dotenv(place: AgentPaths) -> FoundCredentials | None:
    path = profile_directory(place) / ".env"
    for line in _text_of(path).splitlines():
        name, _, value = line.strip().removeprefix("export ").partition("=")
        if name.strip() in KEYS and value.strip().strip("'\""):
            return FoundCredentials(where=f"{path} ({name.strip()})")
    return None


def _in_store(place: AgentPaths, *, is_key: bool) -> FoundCredentials | None:
    """Return the credential that expires last, of all providers."""
    path = profile_directory(place) / "auth.json"
    store = json.loads(_text_of(path) or "{}")
    found = [expires for found_key, expires in _stored(mapping(store)) if found_key == is_key]
    if not found:
        return None
    last = max(_NEVER if expires is None else expires for expires in found)
    return FoundCredentials(where=str(path), expires_at=None if last == _NEVER else int(last))


def _stored(store: Mapping[str, Any]) -> Iterator[tuple[bool, int | None]]:
    """Yield for each credential whether it is a key, and when it expires; None for a login that Hermes can renew."""
    for provider in mapping(store.get("providers")).values():
        state = {**mapping(provider), **mapping(mapping(provider).get("tokens"))}
        if text(state.get("access_token")) or text(state.get("refresh_token")):
            yield False, _expiry(state)
    for pool in mapping(store.get("credential_pool")).values():
        for entry in rows(pool):
            if text(entry.get("access_token")):
                is_key = entry.get("auth_type") == "api_key"
                yield is_key, None if is_key else _expiry(entry)


def _expiry(state: Mapping[str, Any]) -> int | None:
    expires_at = text(state.get("expires_at"))
    if text(state.get("refresh_token")) or not expires_at:
        return None
    at = datetime.fromisoformat(expires_at)
    return int((at if at.tzinfo is not None else at.replace(tzinfo=UTC)).timestamp() * 1000)


def _in_config(place: AgentPaths) -> FoundCredentials | None:
    """Find a key in `config.yaml`, which is parsed as YAML only when it seems to contain one."""
    path = profile_directory(place) / "config.yaml"
    content = _text_of(path)
    if not _CONFIGURED_KEY.search(content):
        return None
    from agent_mux.sdk.documents import open_document  # noqa: PLC0415  # it imports a YAML library

    data = open_document(content, "yaml").data()
    tables = [mapping(data.get("model")), *map(mapping, mapping(data.get("providers")).values())]
    has_key = any(text(table.get("api_key")) for table in (*tables, *rows(data.get("custom_providers"))))
    return FoundCredentials(where=f"{path} (api_key)") if has_key else None


def _text_of(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except FileNotFoundError:
        return ""


def _foreign_login(place: AgentPaths) -> str | None:
    """Return a description of another program's login that Hermes would use."""
    others = (place.home / ".claude" / ".credentials.json", place.home / ".qwen" / "oauth_creds.json")
    return next((f"the login of another agent ({path})" for path in others if path.is_file()), None)


AUTH = AgentAuth(
    methods=(
        AuthMethod(name="oauth", display_name="an account", find=_login),
        AuthMethod(name="api_key", display_name="an API key", variables=KEYS, find=_key),
    ),
    steps=(
        SetupStep(text="Choose a provider and a model, and log in where it needs that.", command=("model",)),
        SetupStep(text="Add an account or an API key of a provider.", command=("auth", "add")),
        SetupStep(text="Or set an API key of a provider.", variable="OPENROUTER_API_KEY"),
    ),
    elsewhere=_foreign_login,
)
