"""Access to the installations of all agents on this machine."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

from agent_mux.errors import CapabilityError
from agent_mux.sdk.adapter import Adapter
from agent_mux.sdk.config import AgentPaths
from agent_mux.sdk.installation import AgentInstallation
from agent_mux.sdk.registry import AdapterRegistry

_Part = TypeVar("_Part")


class InstallationResolver:
    """Resolves parts of an agent's installation (settings, credentials, ...) and the paths where they are stored."""

    def __init__(
        self,
        adapters: AdapterRegistry | None = None,
        *,
        environ: Mapping[str, str] | None = None,
        project: str | os.PathLike[str] | None = None,
    ) -> None:
        """Create a resolver.

        Args:
            adapters: Default: those of the entry points.
            environ: Environment that determines where the agents keep their files; default: that of this process.
            project: Directory whose files belong to the scope `project`; default: the current one.
        """
        self.adapters = adapters if adapters is not None else AdapterRegistry()
        self.environ = os.environ if environ is None else environ
        self._project = project

    def paths(self) -> AgentPaths:
        """Return the environment and the directories in which agents look for files."""
        project = Path.cwd() if self._project is None else Path(self._project).absolute()
        return AgentPaths(environ=self.environ, project=project)

    def find(self, agent: str, part: Callable[[AgentInstallation], _Part | None], what: str) -> tuple[Adapter, _Part]:
        """Return an agent's adapter and one part of its installation.

        Raises AGENT_NOT_FOUND; `CapabilityError`, with `what` as the missing capability, if the part is None.
        """
        adapter = self.adapters.get(agent)
        found = part(adapter.installation())
        if found is None:
            raise CapabilityError(adapter.agent, what)
        return adapter, found
