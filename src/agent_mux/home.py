"""The contract: what an agent keeps on a machine besides its sessions, and how it is asked about it.

An adapter says it in `home.py`, as data and pure functions; it is imported when somebody wants to know. What an agent
does not have is None: asking for it is a CAPABILITY_ERROR.
"""

from dataclasses import dataclass

from agent_mux.auth.methods import AgentAuth
from agent_mux.config.files import AgentConfig
from agent_mux.definitions.folders import DefinitionFolders
from agent_mux.hooks.native import NativeHooks
from agent_mux.mcp.files import McpFiles
from agent_mux.plugins.commands import PluginCommands


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentHome:
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
