"""What this machine has and what stands in the way, each with what to do about it: what `amux doctor` shows."""

import os
import platform
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from agent_mux._util.paths import config_dir
from agent_mux._util.version import __version__
from agent_mux.agents.auth import Auth
from agent_mux.agents.config.client import AgentConfigs
from agent_mux.agents.detection import DetectedAgent, Detector
from agent_mux.agents.installations import InstallationResolver
from agent_mux.errors import AgentMuxError, CapabilityError

FindingStatus = Literal["ok", "problem", "absent"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that was looked at."""

    check: str
    """What: an agent's name, or something of our own."""
    status: FindingStatus
    """`absent`: an agent that is not installed, which nobody has to mind."""
    said: str
    fix: str | None = None
    """What to do: a command, or a sentence."""


async def examine(homes: InstallationResolver, agents: Sequence[str] = ()) -> list[Finding]:
    """Look at this machine, and at these agents, or all. Raises AGENT_NOT_FOUND.

    Agents are asked for their version; nothing else is started, nothing is written, no network is used.
    """
    wanted = {homes.adapters.get(agent).agent for agent in agents}
    found = await Detector(homes.adapters).detect_all()
    mine = [one for one in found if one.agent in wanted or (not wanted and not _needs_command(one, homes))]
    return [*_of_this_machine(), *(finding for one in mine for finding in _of_agent(one, homes))]


def _needs_command(one: DetectedAgent, homes: InstallationResolver) -> bool:
    """It stands for any program, and none is named: nothing can be said of it."""
    return not one.installed and one.agent in homes.adapters and homes.adapters.get(one.agent).takes_command


def _of_this_machine() -> Iterator[Finding]:
    yield Finding(check="agent-mux", status="ok", said=__version__)
    is_new = sys.version_info >= (3, 11)
    yield Finding(check="python", status="ok" if is_new else "problem", said=platform.python_version())
    if Path("/proc/self/environ").exists():
        yield Finding(check="clean-up", status="ok", said="processes that leave their group are found")
    else:
        yield Finding(
            check="clean-up", status="problem", said="no /proc: only the process group is ended",
            fix="run where /proc is mounted if agents leave processes behind",
        )  # fmt: skip
    yield _writes(config_dir() / "runs")


def _writes(place: Path) -> Finding:
    existing = next(path for path in (place, *place.parents) if path.exists())
    if os.access(existing, os.W_OK):
        return Finding(check="recordings", status="ok", said=str(place))
    fix = f"chmod u+w {existing}, or name another directory with AGENT_MUX_CONFIG_DIR"
    return Finding(check="recordings", status="problem", said=f"{place} cannot be written", fix=fix)


def _of_agent(one: DetectedAgent, homes: InstallationResolver) -> Iterator[Finding]:
    if not one.installed:
        fix = f"amux install {one.agent}" if _installs(one.agent, homes) else None
        said = "not installed" if fix is not None else one.problem or "not installed"
        yield Finding(check=one.agent, status="absent", said=said, fix=fix)
        return
    if one.problem is not None:
        yield Finding(check=one.agent, status="problem", said=one.problem, fix=f"amux update {one.agent}")
    else:
        yield Finding(check=one.agent, status="ok", said=f"{one.version} at {one.path}")
    yield from _of_credentials(one.agent, homes)
    yield from _of_configuration(one.agent, homes)


def _installs(agent: str, homes: InstallationResolver) -> bool:
    try:
        methods = homes.adapters.get(agent).install
    except AgentMuxError:  # its package is broken: that is said already
        return False
    return any(sys.platform in method.platforms and method.kind != "manual" for method in methods)


def _of_credentials(agent: str, homes: InstallationResolver) -> Iterator[Finding]:
    check, fix = f"{agent} login", f"amux auth setup {agent}"
    try:
        state = Auth(homes).check(agent)
    except CapabilityError:
        return
    match state.status:
        case "authenticated":
            yield Finding(check=check, status="ok", said=f"{state.method}: {state.where}")
        case "unknown":
            yield Finding(check=check, status="problem", said=f"none found; {state.problem}", fix=fix)
        case "expired":
            yield Finding(check=check, status="problem", said=f"{state.method} has expired: {state.where}", fix=fix)
        case "unauthenticated":
            yield Finding(check=check, status="problem", said="no credentials were found", fix=fix)


def _of_configuration(agent: str, homes: InstallationResolver) -> Iterator[Finding]:
    try:
        problems = AgentConfigs(homes).validate(agent)
    except CapabilityError:
        return
    for one in problems:
        said = one.said if one.field is None else f"{one.path}: {one.field} is not {one.said}"
        yield Finding(check=f"{agent} config", status="problem", said=said, fix=f"amux config validate {agent}")
