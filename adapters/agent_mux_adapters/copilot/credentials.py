"""Credentials of Copilot. Measured with 1.0.102."""

import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agent_mux.sdk import AgentMuxError
from agent_mux.sdk.config import AgentPaths, read_document
from agent_mux.sdk.installation import AgentAuth, AuthMethod, FoundCredentials, SetupStep
from agent_mux_adapters._dialects.tolerant import mapping, rows

TOKEN_VARIABLES = ("COPILOT_GITHUB_TOKEN", "GH_TOKEN", "GITHUB_TOKEN")
"""Variables with a token. Earlier ones take precedence, and all of them over stored credentials."""
_CLASSIC_PREFIX = "ghp_"
_STORED_TOKEN = re.compile(r"^\s*oauth_token:\s*\S", re.MULTILINE)


def directory(place: AgentPaths) -> Path:
    """Return the directory in which Copilot keeps everything."""
    return place.home_of("COPILOT_HOME", ".copilot")


def _state_file(place: AgentPaths) -> Path:
    """Return the file of Copilot's own state: accounts, tokens, trusted folders. It does not contain user settings."""
    return directory(place) / "config.json"


def _state(place: AgentPaths) -> Mapping[str, Any]:
    document = read_document(_state_file(place), "json")
    return {} if document is None else document.data()


def _find_token(place: AgentPaths) -> FoundCredentials | None:
    name = next((name for name in TOKEN_VARIABLES if place.environ.get(name)), None)
    if name is None:
        return None
    if place.environ[name].startswith(_CLASSIC_PREFIX):
        raise ValueError(f"{name} holds a classic token ({_CLASSIC_PREFIX}...), which Copilot refuses: unset it")
    return FoundCredentials(where=name)


def _find_login(place: AgentPaths) -> FoundCredentials | None:
    """Find a token in plain text, which Copilot stores on machines without a keyring."""
    state = _state(place)
    has_token = bool(mapping(state.get("authTokens")) or mapping(state.get("copilotTokens")))
    return FoundCredentials(where=str(_state_file(place))) if has_token else None


def _find_github_cli_token(place: AgentPaths) -> FoundCredentials | None:
    """Find the token of the GitHub CLI: without other credentials, Copilot runs `gh auth token`."""
    hosts = _hosts_file(place)
    if hosts is None or not _STORED_TOKEN.search(hosts.read_text("utf-8", "replace")):
        return None
    return FoundCredentials(where=str(hosts))


def _hosts_file(place: AgentPaths) -> Path | None:
    gh_directory, xdg_directory = place.environ.get("GH_CONFIG_DIR"), place.environ.get("XDG_CONFIG_HOME")
    config = (
        Path(gh_directory)
        if gh_directory
        else (Path(xdg_directory) if xdg_directory else place.home / ".config") / "gh"
    )
    exists = shutil.which("gh", path=place.environ.get("PATH", "")) and (config / "hosts.yml").is_file()
    return config / "hosts.yml" if exists else None


def _elsewhere(place: AgentPaths) -> str | None:
    """Name the place of credentials that no method can read; None when there are none."""
    try:
        state = _state(place)
    except AgentMuxError:
        return None  # the method that reads this file reports the same error
    if rows(state.get("loggedInUsers")):
        return "the system keyring"
    return "the keyring that the GitHub CLI uses" if _hosts_file(place) else None


AUTH = AgentAuth(
    methods=(
        AuthMethod(
            name="own-provider",
            display_name="your own model provider",
            variables=("COPILOT_PROVIDER_BASE_URL",),
        ),
        AuthMethod(name="github-token", display_name="a GitHub token", find=_find_token),
        AuthMethod(name="github-oauth", display_name="a GitHub account", find=_find_login),
        AuthMethod(name="github-cli", display_name="the GitHub CLI account", find=_find_github_cli_token),
    ),
    steps=(
        SetupStep(text="Log in with a GitHub account, in a browser or with a code.", command=("login",)),
        SetupStep(text="Or store a token, which is read from standard input.", command=("login", "--with-token")),
        SetupStep(text="Or set a token: fine-grained, not a classic one.", variable="COPILOT_GITHUB_TOKEN"),
        SetupStep(
            text="Or set the base URL of your own model provider, with its key and model: COPILOT_PROVIDER_API_KEY, "
            "COPILOT_MODEL.",
            variable="COPILOT_PROVIDER_BASE_URL",
        ),
    ),
    elsewhere=_elsewhere,
)
