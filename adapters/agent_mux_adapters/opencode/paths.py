"""Where OpenCode keeps its files: XDG directories, and the configuration files in order; later ones take precedence.

A scope may have several configuration files. We create the one that OpenCode would create, and use the others where
they exist. Not covered: values of its variables, settings of an organization or an administrator, and the directories
above the working directory up to the root of its repository. Measured with 1.18.33.
"""

from pathlib import Path

from agent_mux.sdk.config import AgentPaths, ConfigFile, Scope


def config_directory(place: AgentPaths) -> Path:
    """Return the user's directory of configuration, skills and agents."""
    return _below(place, "XDG_CONFIG_HOME", ".config")


def data_directory(place: AgentPaths) -> Path:
    """Return the directory of credentials and sessions."""
    return place.directory if place.directory is not None else _below(place, "XDG_DATA_HOME", ".local/share")


def extra_directory(place: AgentPaths) -> Path | None:
    """Return the directory of `$OPENCODE_CONFIG_DIR`, which takes precedence over all others; None if unset."""
    named = place.environ.get("OPENCODE_CONFIG_DIR")
    return place.home.joinpath(named) if named else None


def project_file(place: AgentPaths, *names: str) -> Path | None:
    """Return a file of the project; None without a project, or if project configuration is disabled."""
    is_left_out = place.environ.get("OPENCODE_DISABLE_PROJECT_CONFIG") in {"1", "true"}
    return None if is_left_out else place.project_file(*names)


def _below(place: AgentPaths, variable: str, default: str) -> Path:
    named = place.environ.get(variable)
    return (Path(named) if named else place.home / default) / "opencode"


def _global(name: str, *, is_optional: bool = True) -> ConfigFile:
    def path(place: AgentPaths) -> Path:
        return config_directory(place) / name

    return ConfigFile(scope="global", format="json", path=path, is_optional=is_optional)


def _project(*names: str, is_optional: bool = True) -> ConfigFile:
    def path(place: AgentPaths) -> Path | None:
        return project_file(place, *names)

    return ConfigFile(scope="project", format="json", path=path, is_optional=is_optional)


def _in_home(name: str) -> ConfigFile:
    def path(place: AgentPaths) -> Path:
        return place.home / ".opencode" / name

    return ConfigFile(scope="global", format="json", path=path, is_optional=True)


def _in_extra_directory(name: str) -> ConfigFile:
    def path(place: AgentPaths) -> Path | None:
        directory = extra_directory(place)
        return None if directory is None else directory / name

    return ConfigFile(scope="global", format="json", path=path, is_optional=True)


def _from_variable(place: AgentPaths) -> Path | None:
    named = place.environ.get("OPENCODE_CONFIG")
    return (place.project or place.home) / named if named else None


FILES = (
    _global("config.json"),
    _global("opencode.json"),
    _global("opencode.jsonc", is_optional=False),
    ConfigFile(scope="global", format="json", path=_from_variable, is_optional=True),
    _project("opencode.json", is_optional=False),
    _project("opencode.jsonc"),
    _project(".opencode", "opencode.json"),
    _project(".opencode", "opencode.jsonc"),
    _in_home("opencode.json"),
    _in_home("opencode.jsonc"),
    _in_extra_directory("opencode.json"),
    _in_extra_directory("opencode.jsonc"),
)


def files_with_table(name: str) -> tuple[ConfigFile, ...]:
    """Return the configuration files, reduced to one of their tables."""
    return tuple(_with_table(file, file.scope, name) for file in FILES)


def _with_table(file: ConfigFile, scope: Scope, name: str) -> ConfigFile:
    return ConfigFile(
        scope=scope, format=file.format, path=file.path, table=lambda _: (name,), is_optional=file.is_optional
    )
