"""The installation contract: what an agent keeps on a machine besides its sessions.

This includes configuration, credentials, MCP servers, skills, sub-agents, plugins and hooks. An adapter declares it in
`installation.py` as data and pure functions; the module is imported on first use. A part that an agent does not have is
None, and using it raises CAPABILITY_ERROR.
"""

from collections.abc import Callable, Mapping
from dataclasses import field
from pathlib import Path
from typing import Any, Literal

from agent_mux._util.frozen_dataclasses import dataclass
from agent_mux.sdk.config import AgentConfig, AgentPaths, ConfigFile, Scope
from agent_mux.sdk.declarations import Declaration
from agent_mux.sdk.documents.formats import HeaderFormat
from agent_mux.sdk.hooks import NativeHooks
from agent_mux.sdk.options import McpServer
from agent_mux.sdk.session_changes import SessionCommands


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundCredentials:
    """The location of credentials that were found, never the credentials themselves."""

    where: str
    """Path of the file, or name of the environment variable."""
    expires_at: int | None = None
    """Milliseconds since the epoch; None: unknown, or the agent renews them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthMethod(Declaration):
    """One way in which the agent can be authenticated."""

    name: str
    """Identifier, one of `AgentCapabilities.auth_methods`."""
    display_name: str
    variables: tuple[str, ...] = ()
    """Environment variables; any one that is not empty is sufficient."""
    find: Callable[[AgentPaths], FoundCredentials | None] | None = None
    """Looks for credentials in a few small files, without network or keyring. May raise `OSError`, `ValueError`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SetupStep(Declaration):
    """One way in which a person can authenticate the agent; any one step is sufficient."""

    text: str
    """Instruction, one sentence."""
    command: tuple[str, ...] = ()
    """Arguments of the agent's program that log in, if it has such a command. A live test checks its `--help`."""
    variable: str | None = None
    """Environment variable to set instead."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentAuth(Declaration):
    """How an agent is authenticated, and how a person can do that."""

    methods: tuple[AuthMethod, ...]
    """Methods in the agent's order of precedence."""
    steps: tuple[SetupStep, ...]
    elsewhere: Callable[[AgentPaths], str | None] = lambda _: None
    """Returns a place of credentials that is not examined, such as the system's keyring; None if there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class McpFiles(Declaration):
    """How an agent's configuration lists MCP servers."""

    files: tuple[ConfigFile, ...]
    """Files whose `table` contains the servers by name. Later files override earlier ones.

    Changes go to the last file of a scope.
    """
    read: Callable[[str, Mapping[str, Any]], McpServer | None]
    """Parses a server entry; None if it cannot be understood."""
    write: Callable[[McpServer], dict[str, Any]]
    """Formats a server entry. Raises `ValueError` with a phrase for a server that the agent cannot use."""
    is_enabled: Callable[[Mapping[str, Any]], bool] = lambda _: True
    is_switched_off: Callable[[AgentPaths, str], bool] = lambda _paths, _name: False
    """Returns whether the server of this name is disabled elsewhere than in its entry."""
    objection: Callable[[AgentPaths, ConfigFile], str | None] = lambda _paths, _file: None
    """Returns why the agent uses no server of this file; None: it does. May raise `OSError`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DefinitionFolder(Declaration):
    """A folder in which the agent looks for definitions."""

    scope: Scope
    """Whether the folder belongs to the user (`global`), the project, or the project's local settings."""
    path: Callable[[AgentPaths], Path | None]
    """Returns the path, which need not exist; None without a project."""
    is_shared: bool = False
    """Whether other agents look there too (`.agents/skills`): it is listed, and written only on request."""
    objection: Callable[[AgentPaths, Path, str], str | None] = lambda _paths, _path, _name: None
    """Returns why the agent ignores a valid definition in this folder, given its main file and name; None: it does not.

    May raise `OSError`.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class DefinitionFolders(Declaration):
    """The folders and the format of an agent's skills or sub-agents."""

    folders: tuple[DefinitionFolder, ...]
    layout: Literal["folder", "file"]
    """`folder`: a definition is a folder with a main file (`<name>/SKILL.md`); `file`: one file (`<name>.md`)."""
    file: str
    """Name of the main file (`SKILL.md`), or suffix of the file (`.md`)."""
    header: HeaderFormat = "yaml"
    """Format of name and description: YAML between lines of three hyphens, or the whole file is TOML or YAML."""
    required: tuple[str, ...] = ("name", "description")
    """Fields of the header without which the agent ignores the definition."""
    depth: int = 1
    """Number of folder levels that the agent searches, 2 for `<group>/<name>/SKILL.md`."""
    other_suffixes: tuple[str, ...] = ()
    """Further suffixes of the files that the agent reads (layout `file`); new files get that of `file`."""

    def suffix_of(self, name: str) -> str | None:
        """Return the suffix by which a file name is one of these definitions (layout `file`), None if it is none."""
        return next((suffix for suffix in (self.file, *self.other_suffixes) if name.endswith(suffix)), None)


CommandArguments = tuple[str, ...]
"""Arguments of the agent's program. Values are bound to their flags, or follow `--` if the agent supports that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plugin:
    """An entry of the agent's list of plugins."""

    name: str
    """Name of the plugin."""
    version: str | None = None
    """Version; None if the agent does not report it."""
    enabled: bool | None = None
    """None: the agent does not report it."""
    source: str | None = None
    """Where it was installed from, as the agent reports it."""
    description: str | None = None
    """What it is for; None if the agent does not report it."""
    extra: dict[str, Any] = field(default_factory=dict)
    """Further fields of the agent's list."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginCommands(Declaration):
    """The agent's commands for plugins. None: the agent has no such command."""

    word: str = "plugin"
    """The agent's word for a plugin, in the singular."""
    list: CommandArguments | None = None
    parse: Callable[[str], tuple[Plugin, ...]] | None = None
    """Parses the output of `list`. Raises `ValueError` with a phrase for output that it cannot parse."""
    is_on_stderr: bool = False
    """Whether lists are printed on standard error, possibly among other lines, instead of standard output."""
    install: Callable[[str], CommandArguments] | None = None
    uninstall: Callable[[str], CommandArguments] | None = None
    update: Callable[[str | None], CommandArguments] | None = None
    """Returns the command for one plugin, or (None) all. Raises `ValueError` if the agent supports only the other."""
    search: Callable[[str], CommandArguments] | None = None
    parse_search: Callable[[str], tuple[Plugin, ...]] | None = None
    """Parses the output of `search`; raises `ValueError` like `parse`."""
    search_lists_all: bool = False
    """Whether `search` lists all available plugins, so that agent-mux selects the matching ones."""
    environment: dict[str, str] = field(default_factory=dict)
    """Variables that keep these commands from prompting and from coloring their output."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigDirectory(Declaration):
    """The configuration directory that the agent uses instead of its usual one when a variable names it."""

    variable: str
    path: Callable[[AgentPaths], Path | None]
    """Returns the directory that is in use now, which need not exist; None: the variable would have no effect."""
    credentials: tuple[str, ...] = ()
    """Files with credentials, relative to the directory; a separate directory has links to them."""
    settings: tuple[str, ...] = ()
    """Files with settings that runs need; a separate directory has copies of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentInstallation(Declaration):
    """Everything that an agent keeps on a machine. None: the agent does not have that part."""

    config: AgentConfig | None = None
    auth: AgentAuth | None = None
    mcp: McpFiles | None = None
    skills: DefinitionFolders | None = None
    subagents: DefinitionFolders | None = None
    plugins: PluginCommands | None = None
    hooks: NativeHooks | None = None
    sessions: SessionCommands | None = None
    host_variables: tuple[str, ...] = ()
    """Variables that the agent sets for the programs it runs, by which these detect it."""
    imitates: tuple[str, ...] = ()
    """Variables of other agents that the agent also sets; they do not indicate those agents."""
    update: tuple[str, ...] | None = None
    """Arguments with which the program updates itself; None: the method of its installation updates it."""
    config_directory: ConfigDirectory | None = None
    """None: no variable gives the agent a configuration directory of its own."""
    uninstall: tuple[str, ...] | None = None
    """Arguments with which the program removes itself without a question, when no package manager installed it."""
