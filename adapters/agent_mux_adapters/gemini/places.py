"""Where Gemini CLI keeps its files. Its variable moves the user's home, not the directory itself."""

from pathlib import Path

from agent_mux.place import Place


def user_home(place: Place) -> Path:
    """What it takes for the user's home directory."""
    moved = place.environ.get("GEMINI_CLI_HOME")
    return Path(moved).expanduser() if moved else place.home


def directory(place: Place) -> Path:
    """Its own directory: `~/.gemini`."""
    return place.directory if place.directory is not None else user_home(place) / ".gemini"


def project_file(place: Place, *names: str) -> Path | None:
    """A file of the project; None where no project is meant, or the home directory, whose files are everybody's."""
    return None if place.project == user_home(place) else place.project_file(*names)
