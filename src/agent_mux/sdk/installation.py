"""What an agent keeps on a machine besides its sessions: settings, credentials, MCP servers, skills, hooks.

An adapter declares it in `installation.py` as data and pure functions; the module is imported on first use. A part that
an agent does not have is None: asking for it raises CAPABILITY_ERROR.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from agent_mux.sdk.config import AgentConfig, AgentPaths, ConfigFile, Scope
from agent_mux.sdk.hooks import NativeHooks
from agent_mux.sdk.options import McpServer


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """Credentials were found. Never the credentials themselves."""

    where: str
    """A path, or the name of a variable."""
    expires_at: int | None = None
    """Milliseconds since the epoch; None: it does not say, or they are renewed by themselves."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthMethod:
    """One way to be authenticated."""

    name: str
    """One of `AgentCapabilities.auth_methods`."""
    display_name: str
    variables: tuple[str, ...] = ()
    """Any of these, set and not empty, is enough."""
    find: Callable[[AgentPaths], Evidence | None] | None = None
    """Looks into files: a few small ones; no network, no keyring, no writing. May raise `OSError`, `ValueError`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SetupStep:
    """What a person can do to be authenticated: one of these is enough."""

    text: str
    """A sentence."""
    command: tuple[str, ...] = ()
    """Words behind the agent's program, where it has a command for that; its `--help` is checked by a live test."""
    variable: str | None = None
    """Or an environment variable to set."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentAuth:
    """How an agent is authenticated."""

    methods: tuple[AuthMethod, ...]
    """In the order in which the agent prefers them."""
    steps: tuple[SetupStep, ...]
    elsewhere: Callable[[AgentPaths], str | None] = lambda _: None
    """Where credentials may be that nobody looks for here, such as the keyring of the system; None: nowhere."""


@dataclass(frozen=True, slots=True, kw_only=True)
class McpFiles:
    """The MCP servers of an agent."""

    files: tuple[ConfigFile, ...]
    """Their `table` holds the servers, by name. The later ones win; of a scope, the last one is written."""
    read: Callable[[str, Mapping[str, Any]], McpServer | None]
    """A server as the agent wrote it; None where it is none that can be understood."""
    write: Callable[[McpServer], dict[str, Any]]
    """A server as the agent wants it. Raises `ValueError`, half a sentence, for one that it cannot use."""
    is_enabled: Callable[[Mapping[str, Any]], bool] = lambda _: True
    is_switched_off: Callable[[AgentPaths, str], bool] = lambda _place, _name: False
    """By its name, in another place than where it is written down."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Folder:
    """One place that the agent looks into."""

    scope: Scope
    path: Callable[[AgentPaths], Path | None]
    """Whether it is there or not. None: no project is meant."""
    is_shared: bool = False
    """Other agents look there, too (`.agents/skills`): it is listed, and written only when asked for."""
    objection: Callable[[AgentPaths, Path, str], str | None] = lambda _place, _path, _name: None
    """Why the agent does not take a definition there (its main file and name), which is as it should be. None: it does.
    May raise `OSError`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DefinitionFolders:
    """Skills, or sub-agents, of an agent."""

    folders: tuple[Folder, ...]
    layout: Literal["folder", "file"]
    """A folder of its own with one main file (`<name>/SKILL.md`), or one file (`<name>.md`)."""
    file: str
    """The main file of the folder, or the ending of the file: `SKILL.md`, `.md`."""
    header: Literal["yaml", "toml"] = "yaml"
    """How name and description are told: YAML between lines of three hyphens, or the file is TOML."""
    required: tuple[str, ...] = ("name", "description")
    """What the header has to say for the agent to take it."""
    depth: int = 1
    """Where there may be folders of folders (`<group>/<name>/SKILL.md`): how deep the agent looks."""


Words = tuple[str, ...]
"""Behind the agent's program. Values are bound to their flags, or stand behind `--` where the agent allows that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plugin:
    """A plugin, as the agent lists it."""

    name: str
    version: str | None = None
    enabled: bool | None = None
    """None: it does not say."""
    source: str | None = None
    """Where it came from."""
    description: str | None = None
    extra: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginCommands:
    """What the agent can be told. None: it cannot do that."""

    word: str = "plugin"
    """What the agent calls them."""
    list: Words | None = None
    parse: Callable[[str], tuple[Plugin, ...]] | None = None
    """What `list` printed. Raises `ValueError`, half a sentence, for what it cannot read."""
    is_on_stderr: bool = False
    """The lists are printed on standard error, perhaps among other lines; else on standard output."""
    install: Callable[[str], Words] | None = None
    uninstall: Callable[[str], Words] | None = None
    update: Callable[[str | None], Words] | None = None
    """One of them, or (None) all; raises `ValueError` where only the other is possible."""
    search: Callable[[str], Words] | None = None
    parse_search: Callable[[str], tuple[Plugin, ...]] | None = None
    """As `parse`, for `search`."""
    search_lists_all: bool = False
    """It lists all there are; which of them are meant is found out here."""
    environment: dict[str, str] = field(default_factory=dict)
    """Set for these commands, so that they ask nothing and colour nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentInstallation:
    """Everything around the runs of an agent."""

    config: AgentConfig | None = None
    auth: AgentAuth | None = None
    mcp: McpFiles | None = None
    skills: DefinitionFolders | None = None
    subagents: DefinitionFolders | None = None
    plugins: PluginCommands | None = None
    hooks: NativeHooks | None = None
    host_variables: tuple[str, ...] = ()
    """Set in the environment of what the agent runs: whoever sees one of them is run by it."""
    imitates: tuple[str, ...] = ()
    """Variables of other agents that it sets there, too: they are no sign of those."""
    update: tuple[str, ...] | None = None
    """Words behind the program with which it updates itself; None: by the way it was installed."""
