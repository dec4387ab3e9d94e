"""Where the embedded agent keeps its files."""

from pathlib import Path

from agent_mux.place import Place


def directory(place: Place) -> Path:
    """`$AMUX_AGENT_HOME`, or the place for data of the user."""
    named = place.environ.get("AMUX_AGENT_HOME")
    if named:
        return Path(named)
    data = place.environ.get("XDG_DATA_HOME")
    return (Path(data) if data else place.home / ".local/share") / "agent-mux" / "native"
