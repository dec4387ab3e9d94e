"""Where Gemini CLI keeps its files, and how it authenticates.

Its variable `GEMINI_CLI_HOME` moves the user's home, not the directory `.gemini` itself. One setting selects the
authentication method; all others are ignored then.
"""

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from agent_mux.sdk import read_text
from agent_mux.sdk.config import AgentPaths
from agent_mux.sdk.documents import DocumentError, open_document
from agent_mux.sdk.documents.document import value_at
from agent_mux.sdk.installation import AgentAuth, AuthMethod, FoundCredentials, SetupStep
from agent_mux_adapters._dialects.tolerant import text


def user_home(place: AgentPaths) -> Path:
    """Return the directory that the CLI uses as the user's home."""
    moved = place.environ.get("GEMINI_CLI_HOME")
    return Path(os.path.expanduser(moved)) if moved else place.home


def gemini_directory(place: AgentPaths) -> Path:
    """Return the CLI's own directory, by default `~/.gemini`."""
    return place.directory if place.directory is not None else user_home(place) / ".gemini"


def project_file(place: AgentPaths, *names: str) -> Path | None:
    """Return a file of the project.

    None without a project, or when the project is the home directory, whose files are global.
    """
    return None if place.project == user_home(place) else place.project_file(*names)


# -- authentication

OAUTH, API_KEY, VERTEX, COMPUTE = "oauth-personal", "gemini-api-key", "vertex-ai", "compute-default-credentials"
AUTH_METHODS = (OAUTH, API_KEY, VERTEX, COMPUTE, "gateway", "cloud-shell")
"""The values of `security.auth.selectedType`."""
_GOOGLE_FILE = "GOOGLE_APPLICATION_CREDENTIALS"


def auth_method(place: AgentPaths) -> str | None:
    """Return the authentication method: that of the settings, or the one that variables select.

    Raises `ValueError` for broken settings.
    """
    selected = _selected(place)
    if selected:
        return COMPUTE if selected == "cloud-shell" and _is_compute(place) else selected
    values = variables(place)
    if values.get("GOOGLE_GENAI_USE_GCA") == "true":
        return OAUTH
    if values.get("GOOGLE_GENAI_USE_VERTEXAI") == "true":
        return VERTEX
    if values.get("GOOGLE_GEMINI_BASE_URL"):
        return "gateway"
    if values.get("GEMINI_API_KEY"):
        return API_KEY
    return COMPUTE if _is_compute(place) else None


def variables(place: AgentPaths) -> Mapping[str, str]:
    """Return the environment together with the variables of the `.env` file."""
    return {**_dotenv(_dotenv_file(place)), **place.environ}


def _selected(place: AgentPaths) -> str:
    path = gemini_directory(place) / "settings.json"
    settings = read_text(path)
    try:
        values = open_document(settings, "json").data() if settings is not None else {}
    except DocumentError as error:
        raise ValueError(f"{path}: {error}") from error
    return text(value_at(values, ("security", "auth", "selectedType"), ""))


def _is_compute(place: AgentPaths) -> bool:
    return "true" in {place.environ.get("CLOUD_SHELL"), place.environ.get("GEMINI_CLI_USE_COMPUTE_ADC")}


def _dotenv_file(place: AgentPaths) -> Path | None:
    """Return the only `.env` file that is read: the first from the working directory up, then in the home directory."""
    return next((path for path in _dotenv_files(place) if path.is_file()), None)


def _dotenv_files(place: AgentPaths) -> Iterator[Path]:
    up = () if place.project is None else (place.project, *place.project.parents)
    for above in (*up, user_home(place)):
        yield above / ".gemini" / ".env"
        yield above / ".env"


def _dotenv(path: Path | None) -> dict[str, str]:
    values = {}
    for line in "" if path is None else path.read_text("utf-8", "replace").splitlines():
        name, equals, value = line.strip().removeprefix("export ").partition("=")
        if equals and not name.startswith("#"):
            values[name.strip()] = value.strip().strip("\"'`")
    return values


def _evidence(place: AgentPaths, name: str) -> FoundCredentials | None:
    """Return where a variable is set; None when it is not set."""
    if place.environ.get(name):
        return FoundCredentials(where=name)
    return FoundCredentials(where=f"{_dotenv_file(place)} ({name})") if variables(place).get(name) else None


def _key(place: AgentPaths) -> FoundCredentials | None:
    return _evidence(place, "GEMINI_API_KEY") if auth_method(place) == API_KEY else None


def _login(place: AgentPaths) -> FoundCredentials | None:
    if auth_method(place) != OAUTH:
        return None
    if variables(place).get("GOOGLE_GENAI_USE_GCA") and variables(place).get("GOOGLE_CLOUD_ACCESS_TOKEN"):
        return _evidence(place, "GOOGLE_CLOUD_ACCESS_TOKEN")
    if variables(place).get("GEMINI_FORCE_ENCRYPTED_FILE_STORAGE") == "true":
        return _google_file(place)
    path = gemini_directory(place) / "oauth_creds.json"
    tokens = _read(path)
    if not (tokens.get("access_token") or tokens.get("refresh_token")):
        return _google_file(place)
    expires = tokens.get("expiry_date")
    renews = bool(tokens.get("refresh_token"))
    return FoundCredentials(where=str(path), expires_at=expires if isinstance(expires, int) and not renews else None)


def _vertex(place: AgentPaths) -> FoundCredentials | None:
    if auth_method(place) != VERTEX:
        return None
    values = variables(place)
    if values.get("GOOGLE_API_KEY"):
        return _evidence(place, "GOOGLE_API_KEY")
    has_project = values.get("GOOGLE_CLOUD_PROJECT") and values.get("GOOGLE_CLOUD_LOCATION")
    return (_google_file(place) or _gcloud(place)) if has_project else None


def _google_file(place: AgentPaths) -> FoundCredentials | None:
    named = variables(place).get(_GOOGLE_FILE)
    return FoundCredentials(where=named) if named and Path(named).is_file() else None


def _gcloud(place: AgentPaths) -> FoundCredentials | None:
    """Return the file of `gcloud auth application-default login`; None when it does not exist."""
    moved = place.environ.get("CLOUDSDK_CONFIG")
    path = (Path(moved) if moved else place.home / ".config" / "gcloud") / "application_default_credentials.json"
    return FoundCredentials(where=str(path)) if path.is_file() else None


def _read(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_bytes())
    except FileNotFoundError:
        return {}
    return found if isinstance(found, dict) else {}


def _elsewhere(place: AgentPaths) -> str | None:
    try:
        method = auth_method(place)
    except ValueError:  # the methods report broken settings
        return None
    if method == API_KEY:
        return "the keyring of the system, or an encrypted file of Gemini CLI"
    if method == OAUTH and variables(place).get("GEMINI_FORCE_ENCRYPTED_FILE_STORAGE") == "true":
        return "the keyring of the system, or an encrypted file of Gemini CLI"
    if method == COMPUTE or (method == VERTEX and variables(place).get("GOOGLE_CLOUD_PROJECT")):
        return "the metadata server of the cloud"
    return None


AUTH = AgentAuth(
    methods=(
        AuthMethod(name="api_key", display_name="an API key of Gemini", find=_key),
        AuthMethod(name="oauth", display_name="a Google account", find=_login),
        AuthMethod(name="vertex_ai", display_name="Vertex AI", find=_vertex),
    ),
    steps=(
        SetupStep(text="Set an API key of Gemini.", variable="GEMINI_API_KEY"),
        SetupStep(text="Or run `gemini` in a terminal and log in with a Google account; /auth asks again."),
        SetupStep(
            text="Or use Vertex AI: set this to true, and GOOGLE_API_KEY, or GOOGLE_CLOUD_PROJECT and "
            "GOOGLE_CLOUD_LOCATION after `gcloud auth application-default login`.",
            variable="GOOGLE_GENAI_USE_VERTEXAI",
        ),
    ),
    elsewhere=_elsewhere,
)
