"""Where omp keeps its files: known from `pi-utils/src/dirs.ts`, 18.2.3, and tried with each variable."""

from pathlib import Path

from agent_mux.sdk.config import AgentPaths, ConfigFile


def root(place: AgentPaths) -> Path:
    """Return the directory for files that belong to no agent: `~/.omp`, or that of the chosen profile."""
    base = place.home / (place.environ.get("PI_CONFIG_DIR") or ".omp")
    profile = _profile(place)
    return base / "profiles" / profile if profile else base


def directory(place: AgentPaths) -> Path:
    """Return omp's agent directory; with a profile, `PI_CODING_AGENT_DIR` has no effect."""
    if place.directory is not None or not _profile(place):
        return place.home_of("PI_CODING_AGENT_DIR", str(root(place) / "agent"))
    return root(place) / "agent"


def data_directory(place: AgentPaths) -> Path:
    """Return the directory of databases and sessions: in `XDG_DATA_HOME` once `omp config init-xdg` created it."""
    data_home = place.environ.get("XDG_DATA_HOME")
    if data_home and place.directory is None and directory(place) == root(place) / "agent":
        profile = _profile(place)
        path = Path(data_home, "omp", "profiles", profile) if profile else Path(data_home, "omp")
        if path.is_dir():
            return path
    return directory(place)


def movable_directory(place: AgentPaths) -> Path | None:
    """Return omp's agent directory if `PI_CODING_AGENT_DIR` moves all of it: not with a profile or XDG directories."""
    return None if _profile(place) or data_directory(place) != directory(place) else directory(place)


def subagent_directory(place: AgentPaths) -> Path:
    """Return the directory of sub-agents, which `PI_CODING_AGENT_DIR` does not move."""
    return place.directory if place.directory is not None else root(place) / "agent"


def _profile(place: AgentPaths) -> str:
    """Return the chosen profile; empty for the default one. `PI_PROFILE` counts only without `OMP_PROFILE`."""
    chosen = place.environ.get("OMP_PROFILE", place.environ.get("PI_PROFILE", "")).strip()
    return "" if chosen == "default" or "/" in chosen or chosen.startswith(".") else chosen


def settings_file(place: AgentPaths) -> Path:
    """Return the settings file to write: config.yml, unless only config.yaml exists."""
    usual, other = (directory(place) / name for name in ("config.yml", "config.yaml"))
    return other if other.is_file() and not usual.exists() else usual


SETTINGS_FILES = (
    ConfigFile(scope="global", format="yaml", path=settings_file),
    ConfigFile(
        scope="project",
        format="json",
        path=lambda place: place.project_file(".omp", "settings.json"),
        is_optional=True,
    ),
    ConfigFile(scope="project", format="yaml", path=lambda place: place.project_file(".omp", "config.yml")),
)
