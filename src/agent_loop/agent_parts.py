"""The parts of an agent besides its settings, and how the optional ones are created.

Most agents have no MCP servers, skills or handoffs, so that their modules are imported only when they are used.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agent_loop.context.compaction import CompactionStrategy
from agent_loop.gates import DedupMemory
from agent_loop.hooks.registry import Hooks
from agent_loop.loop.run import AskUser, Surroundings
from agent_loop.state import AgentState
from agent_loop.tools.toolset import ToolLike, Toolset

if TYPE_CHECKING:
    from agent_loop.handoffs import HandoffLike, Roster
    from agent_loop.mcp.client import Connector
    from agent_loop.mcp.host import McpHost
    from agent_loop.mcp.servers import McpServer
    from agent_loop.publishing.bus import EventBus
    from agent_loop.skills.host import SkillHost
    from agent_loop.skills.settings import SkillDirectories, SkillSettings

Scopes = tuple[Hooks, ...]


@dataclass(slots=True, kw_only=True)
class AgentParts:
    """The parts of one agent."""

    middleware_hooks: Hooks
    """Handlers and tools of the middleware; separate, as the agent's own may be shared with other agents."""
    aliases: Mapping[str, str]
    config_id: str | None
    ask: AskUser | None
    compaction: CompactionStrategy | None
    event_bus: "EventBus | None"
    mcp: "McpHost | None"
    skills: "SkillHost | None"
    roster: "Roster | None"
    """The agents that can have the conversation; None without handoffs."""
    dedup_memory: DedupMemory

    def toolset(self, tools: Sequence[ToolLike]) -> Toolset:
        """Return the tools under the names that the model sees. Raises `ConfigurationError` for invalid names."""
        return Toolset(tools, aliases=self.aliases)


def make_mcp_host(
    servers: "Sequence[McpServer]", connector: "Connector | None", scopes: Scopes, surroundings: Surroundings
) -> "McpHost | None":
    """Return the host of the servers, None without any. Raises `ConfigurationError` for invalid servers."""
    if not servers:
        return None
    from agent_loop.mcp.host import McpHost  # noqa: PLC0415  # see the docstring of the module

    return McpHost(servers, connector=connector, monotonic=surroundings.monotonic, idle_scopes=scopes)


def make_skill_host(
    skills: "SkillSettings | SkillDirectories | None", scopes: Scopes, state: Callable[[], AgentState]
) -> "SkillHost | None":
    """Return the host of the skills, whose activation `state` has; None without settings."""
    if skills is None:
        return None
    from agent_loop.skills.host import SkillHost  # noqa: PLC0415  # see the docstring of the module
    from agent_loop.skills.settings import as_settings  # noqa: PLC0415

    return SkillHost(as_settings(skills), scopes, state)


def make_roster(name: str, handoffs: "Sequence[HandoffLike]") -> "Roster | None":
    """Return the agents that can have the conversation of `name`. Raises `ConfigurationError`."""
    if not handoffs:
        return None
    from agent_loop.handoffs import Roster  # noqa: PLC0415  # see the docstring of the module

    return Roster(name, handoffs)
