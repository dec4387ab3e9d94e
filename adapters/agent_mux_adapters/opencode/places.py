"""Where OpenCode keeps its files: below the XDG directories."""

from pathlib import Path

from agent_mux.place import Place


def config_dir(place: Place) -> Path:
    """Configuration, skills and agents of the user."""
    return _below(place, "XDG_CONFIG_HOME", ".config")


def data_directory(place: Place) -> Path:
    """Credentials and sessions."""
    return place.directory if place.directory is not None else _below(place, "XDG_DATA_HOME", ".local/share")


def further_directory(place: Place) -> Path | None:
    """A directory that counts after all others, if there is one."""
    named = place.environ.get("OPENCODE_CONFIG_DIR")
    return place.home.joinpath(named) if named else None


def project_file(place: Place, *names: str) -> Path | None:
    """A file of the project; None where no project is meant, or its files are told not to count."""
    is_left_out = place.environ.get("OPENCODE_DISABLE_PROJECT_CONFIG") in {"1", "true"}
    return None if is_left_out else place.project_file(*names)


def _below(place: Place, variable: str, default: str) -> Path:
    named = place.environ.get(variable)
    return (Path(named) if named else place.home / default) / "opencode"
