"""What each agent keeps where, as its adapter says it: a section of the support matrix."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from agent_mux.adapter import Adapter
from agent_mux.config.files import ConfigFile
from agent_mux.definitions.folders import DefinitionFolders
from agent_mux.documents import field_name
from agent_mux.home import AgentHome
from agent_mux.place import Place

PLACE = Place(environ={"HOME": "/HOME"}, project=Path("/PROJECT"))
HOMES = """## Homes

What each agent keeps where, as far as `amux config`, `mcp`, `skill`, `agent`, `plugin`, `hooks` and `auth` know it.
Files that come later win. The scenarios named `home_...` below have put it to the real CLIs.
"""


def homes_section(adapters: Iterable[Adapter]) -> str:
    """Each agent that keeps anything, in a list."""
    return "\n".join([HOMES, *(_home(adapter) for adapter in adapters if adapter.home() != AgentHome())])


def _home(adapter: Adapter) -> str:
    lines = "\n".join(f"- {what}: {told}" for what, told in _told(adapter.home()) if told)
    return f"### {adapter.display_name}\n\n{lines}\n"


def _told(home: AgentHome) -> Iterator[tuple[str, str]]:
    if home.config is not None:
        yield "settings", _files(home.config.files)
    if home.mcp is not None:
        yield "MCP servers", _files(home.mcp.files)
    yield "skills", _folders(home.skills)
    yield "sub-agents", _folders(home.subagents)
    if home.plugins is not None:
        verbs = ("list", "search", "install", "uninstall", "update")
        yield f"plugins (`{home.plugins.word}`)", ", ".join(verb for verb in verbs if getattr(home.plugins, verb))
    if home.hooks is not None:
        yield "hooks", f"{_files(home.hooks.files)}: {', '.join(f'`{name}`' for name in home.hooks.types.values())}"
    if home.auth is not None:
        yield "credentials", "; ".join(_method(method.display_name, method.variables) for method in home.auth.methods)
    yield "what it runs can see", ", ".join(f"`{name}`" for name in home.host_variables)


def _files(files: Iterable[ConfigFile]) -> str:
    """All that have a place without a variable that names one."""
    placed = [(file, file.path(PLACE)) for file in files]
    return "; ".join(_file(file, path) for file, path in placed if path is not None)


def _file(file: ConfigFile, path: Path) -> str:
    table = field_name(file.table(PLACE))
    part = f" (`{_neutral(table)}`)" if table else ""
    return f"{file.scope} `{_neutral(str(path))}`{part}{_kind(file)}"


def _kind(file: ConfigFile) -> str:
    return ", where it is there" if file.is_optional else " (shared)" if file.is_shared else ""


def _folders(known: DefinitionFolders | None) -> str:
    if known is None:
        return ""
    name = f"/<name>/{known.file}" if known.layout == "folder" else f"/<name>{known.file}"
    placed = [(folder, folder.path(PLACE)) for folder in known.folders]
    return "; ".join(
        f"{folder.scope} `{_neutral(str(path))}{name}`{' (shared)' if folder.is_shared else ''}"
        for folder, path in placed
        if path is not None
    )


def _method(display_name: str, variables: tuple[str, ...]) -> str:
    return f"{display_name} ({', '.join(f'`{name}`' for name in variables)})" if variables else display_name


def _neutral(path: str) -> str:
    return path.replace("/HOME", "~").replace("/PROJECT", "<project>")
