"""Where omp keeps its files. Source: `pi-utils/src/dirs.ts`, 18.2.3; tried with each variable."""

from pathlib import Path

from agent_mux.place import Place


def root(place: Place) -> Path:
    """`~/.omp`, or that of the profile that is chosen: for what is no agent's."""
    base = place.home / (place.environ.get("PI_CONFIG_DIR") or ".omp")
    profile = _profile(place)
    return base / "profiles" / profile if profile else base


def directory(place: Place) -> Path:
    """The directory that omp calls its own. A profile makes it, whatever `PI_CODING_AGENT_DIR` says."""
    if place.directory is not None or not _profile(place):
        return place.home_of("PI_CODING_AGENT_DIR", str(root(place) / "agent"))
    return root(place) / "agent"


def data_directory(place: Place) -> Path:
    """The directory of databases and sessions: moved by `XDG_DATA_HOME`, once `omp config init-xdg` made it there."""
    data_home = place.environ.get("XDG_DATA_HOME")
    if data_home and place.directory is None and directory(place) == root(place) / "agent":
        profile = _profile(place)
        path = Path(data_home, "omp", "profiles", profile) if profile else Path(data_home, "omp")
        if path.is_dir():
            return path
    return directory(place)


def subagent_directory(place: Place) -> Path:
    """Where sub-agents are: `PI_CODING_AGENT_DIR` does not move them."""
    return place.directory if place.directory is not None else root(place) / "agent"


def _profile(place: Place) -> str:
    """Empty: the default one. The older variable counts only where the newer one is not there."""
    chosen = place.environ.get("OMP_PROFILE", place.environ.get("PI_PROFILE", "")).strip()
    return "" if chosen == "default" or "/" in chosen or chosen.startswith(".") else chosen


def settings_file(place: Place) -> Path:
    """The one that is written; the other name is read where only that is there."""
    usual, other = (directory(place) / name for name in ("config.yml", "config.yaml"))
    return other if other.is_file() and not usual.exists() else usual
