"""What the clients have besides runs: one object for each thing that agents keep. Source: run API, section 1.

All of them block, and need no `async with`; each is imported when it is first asked for.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from agent_mux.agents.installations import InstallationResolver
from agent_mux.sdk.registry import AdapterRegistry

if TYPE_CHECKING:
    from agent_mux.agents.auth import Auth
    from agent_mux.agents.config.client import AgentConfigs
    from agent_mux.agents.definitions import Definitions
    from agent_mux.agents.hooks.client import Hooks
    from agent_mux.agents.mcp_servers import McpServers
    from agent_mux.agents.plugins import Plugins
    from agent_mux.models.registry import Models
    from agent_mux.sessions.client import Sessions
    from agent_mux.settings.profiles import Profiles
    from agent_mux.settings.resolver import OptionsResolver


class Namespaces:
    """The part of a client that starts nothing."""

    adapters: AdapterRegistry
    _config_dir: Path
    _project_config_dir: Path | None
    _defaults: "OptionsResolver"

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
        from agent_mux.agents.config.client import AgentConfigs  # noqa: PLC0415

        return AgentConfigs(self._homes)

    @property
    def auth(self) -> "Auth":
        """Whether agents have credentials."""
        from agent_mux.agents.auth import Auth  # noqa: PLC0415

        return Auth(self._homes)

    @property
    def mcp(self) -> "McpServers":
        """The MCP servers that agents keep."""
        from agent_mux.agents.mcp_servers import McpServers  # noqa: PLC0415

        return McpServers(self._homes)

    @property
    def skills(self) -> "Definitions":
        """The skills that agents find."""
        from agent_mux.agents.definitions import skills  # noqa: PLC0415

        return skills(self._homes)

    @property
    def subagents(self) -> "Definitions":
        """The sub-agents that agents find."""
        from agent_mux.agents.definitions import subagents  # noqa: PLC0415

        return subagents(self._homes)

    @property
    def plugins(self) -> "Plugins":
        """The plugins of agents, by their own commands."""
        from agent_mux.agents.plugins import Plugins  # noqa: PLC0415

        return Plugins(self._homes)

    @property
    def hooks(self) -> "Hooks":
        """What is to happen when an agent does something."""
        from agent_mux.agents.hooks.client import Hooks  # noqa: PLC0415

        return Hooks(self.adapters, own=self._config_dir, project=self._project_config_dir)

    @property
    def _homes(self) -> InstallationResolver:
        return InstallationResolver(self.adapters)
