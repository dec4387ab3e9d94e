"""The homes of all agents on this machine: what the namespaces of the client look into."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

from agent_mux.errors import CapabilityError
from agent_mux.sdk.adapter import Adapter
from agent_mux.sdk.config import AgentPaths
from agent_mux.sdk.installation import AgentInstallation
from agent_mux.sdk.registry import AdapterRegistry

_Piece = TypeVar("_Piece")


class InstallationResolver:
    """Finds what an agent keeps, and says where it is kept here."""

    def __init__(
        self,
        adapters: AdapterRegistry | None = None,
        *,
        environ: Mapping[str, str] | None = None,
        project: str | os.PathLike[str] | None = None,
    ) -> None:
        """Take where to look.

        Args:
            adapters: Default: those of the entry points.
            environ: Says where the agents keep their files; default: that of this process.
            project: Directory whose files count for the scope `project`; default: the current one.
        """
        self.adapters = adapters if adapters is not None else AdapterRegistry()
        self.environ = os.environ if environ is None else environ
        self._project = project

    def place(self) -> AgentPaths:
        """Where agents look."""
        project = Path.cwd() if self._project is None else Path(self._project).absolute()
        return AgentPaths(environ=self.environ, project=project)

    def find(
        self, agent: str, piece: Callable[[AgentInstallation], _Piece | None], what: str
    ) -> tuple[Adapter, _Piece]:
        """A piece of an agent's home. Raises AGENT_NOT_FOUND; `CapabilityError` (`what`) where it has none."""
        adapter = self.adapters.get(agent)
        found = piece(adapter.home())
        if found is None:
            raise CapabilityError(adapter.agent, what)
        return adapter, found
