"""Where `amux-agent` keeps what it stores, and finds what is set. Source: the agent protocol, `AMUX_AGENT_HOME`."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from agent_loop.cli.fault import Fault

HOME = "AMUX_AGENT_HOME"
MODEL = "AMUX_AGENT_MODEL"
SIGN = "AMUX_AGENT"
"""Set for what the agent runs: whoever sees it is run by it."""


def agent_home(environ: Mapping[str, str]) -> Path:
    """`$AMUX_AGENT_HOME`, or our part of the user's data. Raises `Fault` where nobody says where that is."""
    told = environ.get(HOME)
    if told:
        return Path(told).expanduser()
    data = environ.get("XDG_DATA_HOME", "")
    if data.startswith("/"):  # relative ones are to be ignored, the XDG specification says
        return Path(data, "agent-mux", "native")
    try:
        return Path.home() / ".local" / "share" / "agent-mux" / "native"
    except RuntimeError:
        raise Fault(f"there is no home directory to store sessions in; set {HOME}, or give --no-session") from None


def sessions_directory(environ: Mapping[str, str]) -> Path:
    """One JSON file for each session."""
    return agent_home(environ) / "sessions"


def skills_directories(environ: Mapping[str, str], project: Path) -> list[Path]:
    """Where skills are looked for that nobody named: those of the project win. Only what is there."""
    homes = [agent_home(environ)] if _has_home(environ) else []
    places = [*(home / "skills" for home in homes), project / ".agents" / "skills"]
    return [place for place in places if place.is_dir()]


def settings_model(environ: Mapping[str, str]) -> str | None:
    """`model` of `settings.json`; None where nobody set one. Raises `Fault` for a file that cannot be read."""
    if not _has_home(environ):
        return None
    path = agent_home(environ) / "settings.json"
    try:
        settings: Any = msgspec.json.decode(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Fault(f"{path} cannot be read: {error}; correct it, or remove it") from None
    model = settings.get("model") if isinstance(settings, dict) else None
    if model is not None and not isinstance(model, str):
        raise Fault(f'{path} names a model that is no text; write "model": "provider:model"')
    return model or None


def _has_home(environ: Mapping[str, str]) -> bool:
    """Without one there is nothing in it; only who wants to store something has to be told."""
    try:
        agent_home(environ)
    except Fault:
        return False
    return True
