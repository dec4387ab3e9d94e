"""The parts of a client that start no runs: one object for each kind of thing that agents keep on a machine.

See docs/spec/run-api.md, section 1. All of them block and work outside of `async with`. Each is imported on first use.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from agent_mux.sdk.registry import AdapterRegistry

if TYPE_CHECKING:
    from agent_mux.agents.auth import Auth
    from agent_mux.agents.config.client import AgentConfigs
    from agent_mux.agents.definitions import Definitions
    from agent_mux.agents.hooks.client import Hooks
    from agent_mux.agents.installations import InstallationResolver
    from agent_mux.agents.installer import Installer
    from agent_mux.agents.mcp_servers import McpServers
    from agent_mux.agents.plugins import Plugins
    from agent_mux.client.local_runs import LocalRuns
    from agent_mux.compare.store import Comparisons
    from agent_mux.models.registry import Models
    from agent_mux.sessions.client import Sessions
    from agent_mux.sessions.quota import Quotas
    from agent_mux.settings.profiles import Profiles
    from agent_mux.settings.resolver import OptionsResolver
    from agent_mux.worktrees.kept import KeptWorktrees


class Namespaces:
    """The properties of `AgentMux` and `BlockingAgentMux` that manage agents instead of starting runs."""

    adapters: AdapterRegistry
    _config_dir: Path
    _project_config_dir: Path | None
    _defaults: "OptionsResolver"

    @property
    def sessions(self) -> "Sessions":
        """The sessions that the agents have stored: list, search, read, export, watch."""
        from agent_mux.sessions.cache import SUMMARIES  # noqa: PLC0415  # a run does without, here and below
        from agent_mux.sessions.client import Sessions  # noqa: PLC0415
        from agent_mux.sessions.tags import SessionTags  # noqa: PLC0415

        tags = SessionTags(self._config_dir, self._project_config_dir)
        return Sessions(self.adapters, cache=self._config_dir / SUMMARIES, tags=tags)

    @property
    def runs(self) -> "LocalRuns":
        """The runs of this machine, in whatever process they work: list, find, control, prune."""
        from agent_mux.client.local_runs import LocalRuns  # noqa: PLC0415

        return LocalRuns(self._config_dir, self.adapters)

    @property
    def quota(self) -> "Quotas":
        """What is known about the quotas of the agents' accounts, from earlier runs and sessions."""
        from agent_mux.sessions.quota import Quotas  # noqa: PLC0415

        return Quotas(self.adapters, self._config_dir / "runs")

    @property
    def profiles(self) -> "Profiles":
        """The named sets of run options: the global ones and those of the current directory's project."""
        return self._defaults.profiles()

    @property
    def worktrees(self) -> "KeptWorktrees":
        """The worktrees that runs with `isolation="worktree"` left behind: list, patch, apply, clean."""
        from agent_mux.worktrees.kept import KeptWorktrees  # noqa: PLC0415

        return KeptWorktrees(self._config_dir)

    @property
    def comparisons(self) -> "Comparisons":
        """The stored comparisons (`compare`): list, read, patches, remove."""
        from agent_mux.compare.store import Comparisons  # noqa: PLC0415

        return Comparisons(self._config_dir)

    @property
    def models(self) -> "Models":
        """The model registry: names, context sizes, capabilities and prices of the agents' models."""
        from agent_mux.models.registry import Models  # noqa: PLC0415

        return Models(self.adapters, directory=self._config_dir, defaults=self._defaults)

    @property
    def config(self) -> "AgentConfigs":
        """The agents' own configuration files: read, change, validate."""
        from agent_mux.agents.config.client import AgentConfigs  # noqa: PLC0415

        return AgentConfigs(self._homes)

    @property
    def auth(self) -> "Auth":
        """The state of the agents' credentials."""
        from agent_mux.agents.auth import Auth  # noqa: PLC0415

        return Auth(self._homes)

    @property
    def installer(self) -> "Installer":
        """The agents' programs: install, update, uninstall."""
        from agent_mux.agents.installer import Installer  # noqa: PLC0415

        return Installer(self._homes)

    @property
    def mcp(self) -> "McpServers":
        """The MCP servers that are configured for the agents."""
        from agent_mux.agents.mcp_servers import McpServers  # noqa: PLC0415

        return McpServers(self._homes)

    @property
    def skills(self) -> "Definitions":
        """The skills that are installed for the agents."""
        from agent_mux.agents.definitions import skills  # noqa: PLC0415

        return skills(self._homes)

    @property
    def subagents(self) -> "Definitions":
        """The sub-agents that are defined for the agents."""
        from agent_mux.agents.definitions import subagents  # noqa: PLC0415

        return subagents(self._homes)

    @property
    def plugins(self) -> "Plugins":
        """The agents' plugins, managed by the agents' own commands."""
        from agent_mux.agents.plugins import Plugins  # noqa: PLC0415

        return Plugins(self._homes)

    @property
    def hooks(self) -> "Hooks":
        """The registered hooks: functions and programs that are called when an agent does something."""
        from agent_mux.agents.hooks.client import Hooks  # noqa: PLC0415

        return Hooks(self.adapters, own=self._config_dir, project=self._project_config_dir)

    @property
    def _homes(self) -> "InstallationResolver":
        from agent_mux.agents.installations import InstallationResolver  # noqa: PLC0415

        return InstallationResolver(self.adapters)
