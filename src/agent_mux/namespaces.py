"""What the clients have besides runs: one object for each thing that agents keep. Source: run API, section 1.

All of them block, and need no `async with`; each is imported when it is first asked for.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from agent_mux.homes import Homes
from agent_mux.registry import AdapterRegistry

if TYPE_CHECKING:
    from agent_mux.auth.client import Auth
    from agent_mux.config.client import AgentConfigs
    from agent_mux.definitions.client import Definitions
    from agent_mux.hooks.client import Hooks
    from agent_mux.mcp.client import McpServers
    from agent_mux.models.registry import Models
    from agent_mux.plugins.client import Plugins
    from agent_mux.preferences.settling import Defaults
    from agent_mux.profiles import Profiles
    from agent_mux.sessions.client import Sessions


class Namespaces:
    """The part of a client that starts nothing."""

    adapters: AdapterRegistry
    _config_dir: Path
    _project_config_dir: Path | None
    _defaults: "Defaults"

    @property
    def sessions(self) -> "Sessions":
        """What the agents stored of their sessions."""
        from agent_mux.sessions.cache import SUMMARIES  # noqa: PLC0415  # a run does without, here and below
        from agent_mux.sessions.client import Sessions  # noqa: PLC0415
        from agent_mux.sessions.tags import SessionTags  # noqa: PLC0415

        tags = SessionTags(self._config_dir, self._project_config_dir)
        return Sessions(self.adapters, cache=self._config_dir / SUMMARIES, tags=tags)

    @property
    def profiles(self) -> "Profiles":
        """Options of runs under a name: those of the current directory's project and the global ones."""
        return self._defaults.profiles()

    @property
    def models(self) -> "Models":
        """What is known of the agents' models: names, sizes, prices."""
        from agent_mux.models.registry import Models  # noqa: PLC0415

        return Models(self.adapters, directory=self._config_dir, defaults=self._defaults)

    @property
    def config(self) -> "AgentConfigs":
        """The agents' own configuration."""
        from agent_mux.config.client import AgentConfigs  # noqa: PLC0415

        return AgentConfigs(self._homes)

    @property
    def auth(self) -> "Auth":
        """Whether agents have credentials."""
        from agent_mux.auth.client import Auth  # noqa: PLC0415

        return Auth(self._homes)

    @property
    def mcp(self) -> "McpServers":
        """The MCP servers that agents keep."""
        from agent_mux.mcp.client import McpServers  # noqa: PLC0415

        return McpServers(self._homes)

    @property
    def skills(self) -> "Definitions":
        """The skills that agents find."""
        from agent_mux.definitions.client import skills  # noqa: PLC0415

        return skills(self._homes)

    @property
    def subagents(self) -> "Definitions":
        """The sub-agents that agents find."""
        from agent_mux.definitions.client import subagents  # noqa: PLC0415

        return subagents(self._homes)

    @property
    def plugins(self) -> "Plugins":
        """The plugins of agents, by their own commands."""
        from agent_mux.plugins.client import Plugins  # noqa: PLC0415

        return Plugins(self._homes)

    @property
    def hooks(self) -> "Hooks":
        """What is to happen when an agent does something."""
        from agent_mux.hooks.client import Hooks  # noqa: PLC0415

        return Hooks(self.adapters, own=self._config_dir, project=self._project_config_dir)

    @property
    def _homes(self) -> Homes:
        return Homes(self.adapters)
