"""Which agents are installed on this machine, and which agent or CI system runs this process.

See docs/spec/run-api.md, sections 5 and 8.
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
    """The result of detecting one agent."""

    agent: str
    display_name: str
    installed: bool
    path: str | None = None
    version: str | None = None
    min_version: str = ""
    supported: bool = False
    """Whether the agent is installed in a version that the adapter supports."""
    problem: str | None = None
    """Why the agent cannot be used, and how to fix it."""


class Detector:
    """Detects agents, in parallel, and caches the results for `CACHED_FOR` seconds."""

    def __init__(self, adapters: AdapterRegistry) -> None:
        self._adapters = adapters
        self._found: dict[str, tuple[float, DetectedAgent]] = {}

    async def detect(self, agent: str) -> DetectedAgent:
        """Detect one agent. Raises AGENT_NOT_FOUND for a name that is not registered."""
        adapter = self._adapters.get(agent)
        known = self._found.get(adapter.agent)
        if known is not None and time.monotonic() - known[0] < CACHED_FOR:
            return known[1]
        found = await _detect(adapter)
        self._found[adapter.agent] = (time.monotonic(), found)
        return found

    def forget(self) -> None:
        """Clear the cache, so that agents are detected again."""
        self._found.clear()

    async def detect_all(self) -> list[DetectedAgent]:
        """Detect every registered agent, in parallel. Sorted by name."""
        found: list[DetectedAgent] = []

        async def detect(name: str) -> None:
            try:
                found.append(await self.detect(name))
            except AgentMuxError as error:  # one adapter's package is broken: still report the others
                found.append(DetectedAgent(name, name, False, problem=str(error)))

        async with anyio.create_task_group() as tasks:
            for name in self._adapters.names():
                tasks.start_soon(detect, name)
        return sorted(found, key=lambda detected: detected.agent)


async def _detect(adapter: Adapter) -> DetectedAgent:
    agent, display_name, min_version = adapter.agent, adapter.display_name, adapter.min_version
    try:
        path = find_executable(adapter, os.environ)
    except AgentMuxError as error:
        return DetectedAgent(agent, display_name, False, min_version=min_version, problem=str(error))
    version, problem = await _ask_version(adapter, path)
    supported = version is not None and version_key(version) >= version_key(min_version)
    if version is not None and not supported:
        problem = f"{agent} {version} is older than {min_version}; update it"
    return DetectedAgent(agent, display_name, True, path, version, min_version, supported, problem)


async def _ask_version(adapter: Adapter, path: str) -> tuple[str | None, str | None]:
    """Run the agent with its version flag. Returns the version, or None and the problem."""
    command = [path, *adapter.version_argv]
    shown = " ".join(command)
    try:
        with anyio.fail_after(VERSION_TIMEOUT):
            done = await anyio.run_process(command, check=False, stdin=subprocess.DEVNULL, stderr=subprocess.STDOUT)
    except TimeoutError:
        return None, f"`{shown}` did not answer within {VERSION_TIMEOUT:g} s"
    except OSError as error:
        return None, f"`{shown}` could not be started: {error.strerror or error}"
    match = _VERSION.search(done.stdout.decode("utf-8", "replace"))
    return (match.group(), None) if match else (None, f"`{shown}` (exit code {done.returncode}) printed no version")


def version_key(version: str) -> tuple[int, ...]:
    """Return a version as numbers to compare: `2.1.330-beta` as (2, 1, 330)."""
    return tuple(int(part) for part in version.partition("-")[0].split(".") if part.isdigit())


_CI_VARIABLES = {
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
    """An agent or a CI system that runs this process, as its environment variables show."""

    kind: str
    """`agent` or `ci`."""
    name: str
    """The registered name of the agent, or the name of the CI system."""
    variable: str
    """The environment variable that identifies the host."""


def detect_hosts(adapters: AdapterRegistry, environ: Mapping[str, str]) -> list[Host]:
    """Return all hosts of this process: agents can run each other. At most one CI system, last."""
    installations = {adapter.agent: adapter.installation() for adapter in adapters}
    present = {
        name: installation
        for name, installation in installations.items()
        if any(map(environ.get, installation.host_variables))
    }
    imitated = {variable for installation in present.values() for variable in installation.imitates}
    agents = [
        Host(kind="agent", name=name, variable=variable)
        for name, installation in present.items()
        for variable in installation.host_variables
        if environ.get(variable) and variable not in imitated
    ]
    first = list({host.name: host for host in reversed(agents)}.values())[::-1]
    systems = [
        Host(kind="ci", name=name, variable=variable)
        for variable, name in _CI_VARIABLES.items()
        if environ.get(variable)
    ]
    return [*first, *systems[:1]]
