"""Where pi keeps its files."""

from pathlib import Path

from agent_mux.place import Place


def directory(place: Place) -> Path:
    """The directory that pi calls its own."""
    return place.home_of("PI_CODING_AGENT_DIR", ".pi/agent")
