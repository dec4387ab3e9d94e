"""Which agents are installed on this machine, and which agent or CI system runs this process.

See docs/spec/run-api.md, sections 5 and 8.
"""

import os
import subprocess
import time
from collections.abc import Mapping
from dataclasses import replace

import anyio

from agent_mux._util.frozen_dataclasses import dataclass
from agent_mux.errors import AgentMuxError
from agent_mux.process.executable import find_executable
from agent_mux.process.installed_version import installed_version, remember_version
from agent_mux.sdk.adapter import Adapter
from agent_mux.sdk.registry import AdapterRegistry
from agent_mux.sdk.versions import VersionState, describe_state, find_version, is_older, state_of

VERSION_TIMEOUT = 5.0  # seconds for `--version`; some CLIs unpack themselves at first start
CACHED_FOR = 45.0  # seconds


@dataclass(frozen=True, slots=True)
class DetectedAgent:
    """The result of detecting one agent."""

    agent: str
    display_name: str
    installed: bool
    path: str | None = None
    version: str | None = None
    min_version: str = ""
    """The lowest tested version."""
    supported: bool = False
    """Whether the agent is installed in a version that is not older than `min_version`."""
    problem: str | None = None
    """Why the agent cannot be used, and how to fix it."""
    version_state: VersionState | None = None
    """How the version relates to the tested ones; None without a version, and for an agent that stands for any."""
    tested_versions: tuple[str, ...] = ()
    """The versions that recordings cover, oldest first."""


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
    tested = adapter.tested_versions
    known = DetectedAgent(
        adapter.agent, adapter.display_name, False, min_version=adapter.min_version, tested_versions=tested
    )
    try:
        path = find_executable(adapter, os.environ)
    except AgentMuxError as error:
        return replace(known, problem=str(error))
    version, problem = await _ask_version(adapter, path)
    if version is not None and tested:  # else the program may be an interpreter that other agents share
        remember_version(path, version)
    version = version or installed_version(path)
    known = replace(known, installed=True, path=path, version=version, problem=problem)
    if version is None:
        return known
    if is_older(version, tested):
        return replace(
            known,
            problem=describe_state(adapter.display_name, version, tested, agent=adapter.agent),
            version_state="unknown",
        )
    return replace(known, supported=True, version_state=None if adapter.takes_command else state_of(version, tested))


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
    version = find_version(done.stdout.decode("utf-8", "replace"))
    return version, None if version else f"`{shown}` (exit code {done.returncode}) printed no version"


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
