"""Where Hermes has credentials: variables, its `.env`, its `auth.json`, its configuration. Measured with 0.19.0."""

import json
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from agent_mux.auth.methods import AgentAuth, AuthMethod, Evidence, SetupStep
from agent_mux.place import Place
from agent_mux_adapters._dialects.tolerant import mapping, rows, text
from agent_mux_adapters.hermes.profiles import directory

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
"""Of its providers. It takes GitHub's tokens for Copilot, whatever they were set for."""
_SOMETHING = re.compile(r"""\bapi_key["']?\s*:\s*(?!["']{2})[^\s#,}]""")
_NEVER = float("inf")


def _login(place: Place) -> Evidence | None:
    """`hermes portal`, `hermes auth add --type oauth`."""
    return _in_store(place, is_key=False)


def _key(place: Place) -> Evidence | None:
    """`hermes config set NAME_API_KEY`, `hermes auth add --type api-key`, or the configuration."""
    return _in_dotenv(place) or _in_store(place, is_key=True) or _in_config(place)


def _in_dotenv(place: Place) -> Evidence | None:
    path = directory(place) / ".env"
    for line in _text_of(path).splitlines():
        name, _, value = line.strip().removeprefix("export ").partition("=")
        if name.strip() in KEYS and value.strip().strip("'\""):
            return Evidence(where=f"{path} ({name.strip()})")
    return None


def _in_store(place: Place, *, is_key: bool) -> Evidence | None:
    """The one that lasts longest, of all providers."""
    path = directory(place) / "auth.json"
    store = json.loads(_text_of(path) or "{}")
    found = [expires for one_is_key, expires in _stored(mapping(store)) if one_is_key == is_key]
    if not found:
        return None
    last = max(_NEVER if expires is None else expires for expires in found)
    return Evidence(where=str(path), expires_at=None if last == _NEVER else int(last))


def _stored(store: Mapping[str, Any]) -> Iterator[tuple[bool, int | None]]:
    """Whether each is a key, and when it expires. A login that can be renewed does not."""
    for provider in mapping(store.get("providers")).values():
        state = {**mapping(provider), **mapping(mapping(provider).get("tokens"))}
        if text(state.get("access_token")) or text(state.get("refresh_token")):
            yield False, _expiry(state)
    for pool in mapping(store.get("credential_pool")).values():
        for one in rows(pool):
            if text(one.get("access_token")):
                is_key = one.get("auth_type") == "api_key"
                yield is_key, None if is_key else _expiry(one)


def _expiry(state: Mapping[str, Any]) -> int | None:
    said = text(state.get("expires_at"))
    if text(state.get("refresh_token")) or not said:
        return None
    at = datetime.fromisoformat(said)
    return int((at if at.tzinfo is not None else at.replace(tzinfo=UTC)).timestamp() * 1000)


def _in_config(place: Place) -> Evidence | None:
    """A key in `config.yaml`. It is opened as YAML only where there may be one."""
    path = directory(place) / "config.yaml"
    said = _text_of(path)
    if not _SOMETHING.search(said):
        return None
    from agent_mux.documents import open_document  # noqa: PLC0415  # it brings a library for YAML

    data = open_document(said, "yaml").data()
    tables = [mapping(data.get("model")), *map(mapping, mapping(data.get("providers")).values())]
    has_key = any(text(one.get("api_key")) for one in (*tables, *rows(data.get("custom_providers"))))
    return Evidence(where=f"{path} (api_key)") if has_key else None


def _text_of(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except FileNotFoundError:
        return ""


def _elsewhere(place: Place) -> str | None:
    """It takes the logins of other programs, too."""
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
    elsewhere=_elsewhere,
)
