"""Where omp's credentials are: variables, `.env` files, its list of providers, its database. Measured with 18.2.3."""

import re
from pathlib import Path
from typing import Literal

from agent_mux.sdk.config import AgentPaths
from agent_mux.sdk.installation import AgentAuth, AuthMethod, FoundCredentials, SetupStep
from agent_mux_adapters._dialects.pi.installation import CLOUD_VARIABLES, KEY_VARIABLES, aws_keys, provider_key
from agent_mux_adapters.omp.paths import data_directory, directory, root

LOGIN_VARIABLES = ("ANTHROPIC_OAUTH_TOKEN", "OPENAI_CODEX_OAUTH_TOKEN", "XAI_OAUTH_TOKEN", "QWEN_OAUTH_TOKEN")
API_KEYS = (
    *KEY_VARIABLES,
    "ABLITERATION_API_KEY",
    "AIAND_API_KEY",
    "AIMLAPI_API_KEY",
    "ALIBABA_CODING_PLAN_API_KEY",
    "ALIBABA_TOKEN_PLAN_API_KEY",
    "CHARM_HYPER_API_KEY",
    "CLINE_API_KEY",
    "CLOUDFLARE_AI_GATEWAY_API_KEY",
    "COMMAND_CODE_API_KEY",
    "COREWEAVE_API_KEY",
    "CURSOR_ACCESS_TOKEN",
    "DEEPINFRA_API_KEY",
    "DEVIN_API_KEY",
    "FIREPASS_API_KEY",
    "GITLAB_TOKEN",
    "GMI_API_KEY",
    "KILO_API_KEY",
    "LITELLM_API_KEY",
    "MINIMAX_CODE_API_KEY",
    "MINIMAX_CODE_CN_API_KEY",
    "NANO_GPT_API_KEY",
    "NOVITA_API_KEY",
    "OLLAMA_CLOUD_API_KEY",
    "QIANFAN_API_KEY",
    "SILICONFLOW_API_KEY",
    "SILICONFLOW_CN_API_KEY",
    "SYNTHETIC_API_KEY",
    "UMANS_AI_CODING_PLAN_API_KEY",
    "VENICE_API_KEY",
    "WAFER_SERVERLESS_API_KEY",
    "YOLO_AUTO_API_KEY",
    "ZENMUX_API_KEY",
    "ZHIPU_API_KEY",
)
_SET = re.compile(
    r"""^[ \t]*(?:export[ \t]+)?(?P<name>[A-Za-z_]\w*)[ \t]*=[ \t]*(?!''|"")[^\s#]""", re.ASCII | re.MULTILINE
)
"""A line that assigns a value to a variable; empty values do not count."""
MODELS = ("models.yml", "models.yaml", "models.json")
# The query reads the dates of credentials only, never the secrets.
_STORED = """
    SELECT provider, json_extract(data, '$.expires') AS expires,
           coalesce(json_extract(data, '$.refresh'), '') <> '' AS renews
    FROM auth_credentials WHERE credential_type = ? AND disabled_cause IS NULL
    ORDER BY renews DESC, expires IS NULL DESC, expires DESC LIMIT 1
"""
"""Selects the credential that is valid longest."""
MAX_ENV_FILE = 1 << 16  # bytes to read of a `.env` file


def _stored(place: AgentPaths, kind: str) -> FoundCredentials | None:
    """Find a credential of this kind in omp's database. Raises `ValueError` if the database cannot be read."""
    path = data_directory(place) / "agent.db"
    if not path.is_file():
        return None
    from agent_mux.sdk.session_databases import open_database  # noqa: PLC0415  # most machines do not need it
    from agent_mux.sdk.sessions import UnreadableSessionError  # noqa: PLC0415

    try:
        with open_database(path) as database:
            row = database.execute(_STORED, (kind,)).fetchone()
    except UnreadableSessionError as error:
        raise ValueError(f"{path}: {error}") from error
    if row is None:
        return None
    expires_at = int(row["expires"]) if isinstance(row["expires"], int | float) and not row["renews"] else None
    return FoundCredentials(where=f"{path} ({row['provider']})", expires_at=expires_at)


def _in_files(place: AgentPaths, names: tuple[str, ...]) -> FoundCredentials | None:
    """Find a variable in the `.env` files that omp loads: of the project, its own directories, and the home."""
    project = place.project_file(".env")
    for path in (*([project] if project else []), directory(place) / ".env", root(place) / ".env", place.home / ".env"):
        if not path.is_file():  # a directory of this name is a Python environment
            continue
        with path.open("rb") as file:
            content = file.read(MAX_ENV_FILE).decode("utf-8", "replace")
        found = {match["name"] for match in _SET.finditer(content)}
        named = next((name for name in names if name in found), None)
        if named is not None:
            return FoundCredentials(where=f"{path} ({named})")
    return None


def _login(place: AgentPaths) -> FoundCredentials | None:
    return _stored(place, "oauth") or _in_files(place, LOGIN_VARIABLES)


def _key(place: AgentPaths) -> FoundCredentials | None:
    path = next((one for name in MODELS if (one := directory(place) / name).is_file()), None)
    listed = None if path is None else provider_key(path, _format(path), {})
    return listed or _in_files(place, API_KEYS) or _stored(place, "api_key")


def _format(path: Path) -> Literal["json", "yaml"]:
    return "json" if path.suffix == ".json" else "yaml"


AUTH = AgentAuth(
    methods=(
        AuthMethod(name="oauth", display_name="an account of a provider", variables=LOGIN_VARIABLES, find=_login),
        AuthMethod(name="api_key", display_name="the API key of a provider", variables=API_KEYS, find=_key),
        AuthMethod(name="cloud", display_name="a cloud provider", variables=CLOUD_VARIABLES, find=aws_keys),
    ),
    steps=(
        SetupStep(text="Log in with a provider's account in a browser.", command=("auth-broker", "login")),
        SetupStep(text="Or run omp without arguments and log in with /login (account or API key)."),
        SetupStep(text="Or set a provider's API key, for example Anthropic's.", variable="ANTHROPIC_API_KEY"),
        SetupStep(text="Or that of another provider.", variable="OPENAI_API_KEY"),
    ),
    elsewhere=lambda place: "omp's auth broker" if place.environ.get("OMP_AUTH_BROKER_URL") else None,
)
