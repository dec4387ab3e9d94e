"""How Copilot is authenticated. Measured with 1.0.102."""

import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agent_mux.auth.methods import AgentAuth, AuthMethod, Evidence, SetupStep
from agent_mux.config.editing import read_document
from agent_mux.errors import AgentMuxError
from agent_mux.place import Place
from agent_mux_adapters._dialects.tolerant import mapping, rows

TOKENS = ("COPILOT_GITHUB_TOKEN", "GH_TOKEN", "GITHUB_TOKEN")
"""In the order in which they count; all of them before anything stored."""
_CLASSIC = "ghp_"
_IN_FILE = re.compile(r"^\s*oauth_token:\s*\S", re.MULTILINE)


def directory(place: Place) -> Path:
    """Where Copilot keeps everything."""
    return place.home_of("COPILOT_HOME", ".copilot")


def _state_file(place: Place) -> Path:
    """What Copilot itself remembers: accounts, tokens, trusted folders. Not the user's settings."""
    return directory(place) / "config.json"


def _state(place: Place) -> Mapping[str, Any]:
    document = read_document(_state_file(place), "json")
    return {} if document is None else document.data()


def _token(place: Place) -> Evidence | None:
    name = next((name for name in TOKENS if place.environ.get(name)), None)
    if name is None:
        return None
    if place.environ[name].startswith(_CLASSIC):
        raise ValueError(f"{name} holds a classic token ({_CLASSIC}...), which Copilot refuses: unset it")
    return Evidence(where=name)


def _login(place: Place) -> Evidence | None:
    """A token in plain text: that is where it goes on machines without a keyring."""
    state = _state(place)
    has_token = bool(mapping(state.get("authTokens")) or mapping(state.get("copilotTokens")))
    return Evidence(where=str(_state_file(place))) if has_token else None


def _of_github_cli(place: Place) -> Evidence | None:
    """`gh auth token` is asked when nothing else is there."""
    hosts = _hosts_file(place)
    if hosts is None or not _IN_FILE.search(hosts.read_text("utf-8", "replace")):
        return None
    return Evidence(where=str(hosts))


def _hosts_file(place: Place) -> Path | None:
    named, base = place.environ.get("GH_CONFIG_DIR"), place.environ.get("XDG_CONFIG_HOME")
    config = Path(named) if named else (Path(base) if base else place.home / ".config") / "gh"
    is_there = shutil.which("gh", path=place.environ.get("PATH", "")) and (config / "hosts.yml").is_file()
    return config / "hosts.yml" if is_there else None


def _elsewhere(place: Place) -> str | None:
    try:
        state = _state(place)
    except AgentMuxError:
        return None  # the method that looks there has said so already
    if rows(state.get("loggedInUsers")):
        return "the keyring of the system"
    return "the keyring that the GitHub CLI uses" if _hosts_file(place) else None


AUTH = AgentAuth(
    methods=(
        AuthMethod(
            name="own-provider",
            display_name="a model provider of one's own",
            variables=("COPILOT_PROVIDER_BASE_URL",),
        ),
        AuthMethod(name="github-token", display_name="a token of GitHub", find=_token),
        AuthMethod(name="github-oauth", display_name="a GitHub account", find=_login),
        AuthMethod(name="github-cli", display_name="the account of the GitHub CLI", find=_of_github_cli),
    ),
    steps=(
        SetupStep(text="Log in with a GitHub account, in a browser or with a code.", command=("login",)),
        SetupStep(text="Or store a token, which is read from standard input.", command=("login", "--with-token")),
        SetupStep(text="Or set a token: fine-grained, not a classic one.", variable="COPILOT_GITHUB_TOKEN"),
        SetupStep(
            text="Or set the address of a model provider of your own, and its key and model: COPILOT_PROVIDER_API_KEY, "
            "COPILOT_MODEL.",
            variable="COPILOT_PROVIDER_BASE_URL",
        ),
    ),
    elsewhere=_elsewhere,
)
