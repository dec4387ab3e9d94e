"""Which agents are installed on this machine, in which version. Source: run API, section 5.

Who runs this process: an agent, a CI system, or a person. The environment says it. Source: run API, section 8.
"""

import os
import re
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass

import anyio

from agent_mux.errors import AgentMuxError
from agent_mux.process.executable import find_executable
from agent_mux.sdk.adapter import Adapter
from agent_mux.sdk.registry import AdapterRegistry

VERSION_TIMEOUT = 5.0  # seconds for `--version`; some CLIs unpack themselves at first start
CACHED_FOR = 45.0  # seconds
_VERSION = re.compile(r"\d+\.\d+\.\d+(?:[-.][0-9A-Za-z.-]+)?|\d+\.\d+")


@dataclass(frozen=True, slots=True)
class DetectedAgent:
    """What was found out about one agent."""

    agent: str
    display_name: str
    installed: bool
    path: str | None = None
    version: str | None = None
    min_version: str = ""
    supported: bool = False
    """Installed, in a version that the adapter is tested with, or a newer one."""
    problem: str | None = None
    """What stands in the way, and what to do."""


class Detector:
    """Looks for agents, all at once, and remembers for a moment."""

    def __init__(self, adapters: AdapterRegistry) -> None:
        self._adapters = adapters
        self._found: dict[str, tuple[float, DetectedAgent]] = {}

    async def detect(self, agent: str) -> DetectedAgent:
        """Look for one agent. Raises AGENT_NOT_FOUND for a name that is not registered."""
        adapter = self._adapters.get(agent)
        known = self._found.get(adapter.agent)
        if known is not None and time.monotonic() - known[0] < CACHED_FOR:
            return known[1]
        found = await _look(adapter)
        self._found[adapter.agent] = (time.monotonic(), found)
        return found

    def forget(self) -> None:
        """Look anew the next time."""
        self._found.clear()

    async def detect_all(self) -> list[DetectedAgent]:
        """Look for every registered agent, in parallel. Sorted by name."""
        found: list[DetectedAgent] = []

        async def look(name: str) -> None:
            try:
                found.append(await self.detect(name))
            except AgentMuxError as error:  # the package of one adapter is broken: the others are still of interest
                found.append(DetectedAgent(name, name, False, problem=str(error)))

        async with anyio.create_task_group() as tasks:
            for name in self._adapters.names():
                tasks.start_soon(look, name)
        return sorted(found, key=lambda detected: detected.agent)


async def _look(adapter: Adapter) -> DetectedAgent:
    try:
        path = find_executable(adapter, os.environ)
    except AgentMuxError as error:
        return DetectedAgent(
            adapter.agent, adapter.display_name, False, min_version=adapter.min_version, problem=str(error)
        )
    version, problem = await _ask_version(adapter, path)
    supported = version is not None and version_key(version) >= version_key(adapter.min_version)
    if version is not None and not supported:
        problem = f"{adapter.agent} {version} is older than {adapter.min_version}; update it"
    return DetectedAgent(
        adapter.agent, adapter.display_name, True, path, version, adapter.min_version, supported, problem
    )


async def _ask_version(adapter: Adapter, path: str) -> tuple[str | None, str | None]:
    command = [path, *adapter.version_argv]
    asked = " ".join(command)
    try:
        with anyio.fail_after(VERSION_TIMEOUT):
            done = await anyio.run_process(command, check=False, stdin=subprocess.DEVNULL, stderr=subprocess.STDOUT)
    except TimeoutError:
        return None, f"`{asked}` did not answer within {VERSION_TIMEOUT:g} s"
    except OSError as error:
        return None, f"`{asked}` could not be started: {error.strerror or error}"
    match = _VERSION.search(done.stdout.decode("utf-8", "replace"))
    return (match.group(), None) if match else (None, f"`{asked}` (exit code {done.returncode}) printed no version")


def version_key(version: str) -> tuple[int, ...]:
    """A version as numbers to compare: `2.1.330` -> (2, 1, 330); what follows a hyphen does not count."""
    return tuple(int(part) for part in version.partition("-")[0].split(".") if part.isdigit())


_CI = {
    "GITHUB_ACTIONS": "GitHub Actions",
    "GITLAB_CI": "GitLab CI",
    "BUILDKITE": "Buildkite",
    "CIRCLECI": "CircleCI",
    "JENKINS_URL": "Jenkins",
    "TF_BUILD": "Azure Pipelines",
    "TEAMCITY_VERSION": "TeamCity",
    "BITBUCKET_BUILD_NUMBER": "Bitbucket Pipelines",
    "CI": "a CI system",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """An agent or a CI system whose signs are in the environment."""

    kind: str
    """`agent` or `ci`."""
    name: str
    """Of the agent, as it is registered; of the CI system."""
    variable: str
    """That says so."""


def detect_hosts(adapters: AdapterRegistry, environ: Mapping[str, str]) -> list[Host]:
    """Everybody whose signs are there: agents run each other."""
    homes = {adapter.agent: adapter.home() for adapter in adapters}
    there = {name: home for name, home in homes.items() if any(map(environ.get, home.host_variables))}
    imitated = {variable for home in there.values() for variable in home.imitates}
    agents = [
        Host(kind="agent", name=name, variable=variable)
        for name, home in there.items()
        for variable in home.host_variables
        if environ.get(variable) and variable not in imitated
    ]
    first = list({host.name: host for host in reversed(agents)}.values())[::-1]
    systems = [Host(kind="ci", name=name, variable=variable) for variable, name in _CI.items() if environ.get(variable)]
    return [*first, *systems[:1]]
