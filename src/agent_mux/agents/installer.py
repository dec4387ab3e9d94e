"""`AgentMux.installer`: install, update and uninstall the programs of agents."""

from collections.abc import Iterable

from agent_mux.agents.installations import InstallationResolver
from agent_mux.agents.provisioning import (
    InstallPlan,
    plan_install,
    plan_uninstall,
    plan_update,
    run_install_plan,
    split_version,
)
from agent_mux.errors import AgentMuxError
from agent_mux.process.executable import find_executable
from agent_mux.sdk.adapter import Adapter


class Installer:
    """The programs of all agents. Blocking; package managers print to our standard error."""

    def __init__(self, installations: InstallationResolver | None = None) -> None:
        """Use these installations; default: those that this process finds."""
        self._installations = installations if installations is not None else InstallationResolver()

    def install(
        self, agent: str, *, version: str | None = None, method: str | None = None, dry_run: bool = False
    ) -> InstallPlan:
        """Install an agent, by name or as `AGENT@VERSION`, and return the plan; with `dry_run`, only return it.

        Raises AGENT_NOT_FOUND, the errors of `plan_install` and, when it runs, those of `run_install_plan`.
        """
        name, named = split_version(agent)
        adapter = self._installations.adapters.get(name)
        plan = plan_install(adapter, self._installations.environ, kind=method, version=version or named)
        return self._run(plan, dry_run=dry_run)

    def update(self, agent: str, *, dry_run: bool = False) -> InstallPlan:
        """Update an installed agent. Returns and raises like `install`; AGENT_NOT_INSTALLED if it is missing."""
        plan = plan_update(self._installations.adapters.get(agent), self._installations.environ)
        return self._run(plan, dry_run=dry_run)

    def uninstall(self, agent: str, *, method: str | None = None, dry_run: bool = False) -> InstallPlan:
        """Uninstall an agent and keep its settings, credentials and sessions. Returns and raises like `update`."""
        plan = plan_uninstall(self._installations.adapters.get(agent), self._installations.environ, kind=method)
        return self._run(plan, dry_run=dry_run)

    def installed(self) -> tuple[str, ...]:
        """Return the agents whose program is on this machine, sorted."""
        return tuple(adapter.agent for adapter in self._candidates() if self._is_installed(adapter))

    def missing(self) -> tuple[str, ...]:
        """Return the agents that have a method of installation and are not on this machine, sorted."""
        return tuple(adapter.agent for adapter in self._candidates() if not self._is_installed(adapter))

    def _candidates(self) -> Iterable[Adapter]:
        return (adapter for adapter in self._installations.adapters if adapter.install and not adapter.needs_command)

    def _is_installed(self, adapter: Adapter) -> bool:
        try:
            find_executable(adapter, self._installations.environ)
        except AgentMuxError:  # AGENT_NOT_INSTALLED
            return False
        return True

    def _run(self, plan: InstallPlan, *, dry_run: bool) -> InstallPlan:
        if not dry_run:
            run_install_plan(plan, self._installations.environ)
        return plan
