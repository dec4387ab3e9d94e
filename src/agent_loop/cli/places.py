"""Where `amux-agent` keeps what it stores. Source: the agent protocol, `AMUX_AGENT_HOME`."""

from collections.abc import Mapping
from pathlib import Path

from agent_loop.cli.fault import Fault

HOME = "AMUX_AGENT_HOME"
MODEL = "AMUX_AGENT_MODEL"


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
