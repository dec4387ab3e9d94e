"""The checks of `amux doctor`: what is installed on this machine, what is wrong, and how to fix it."""

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
from agent_mux.sdk.versions import range_of

FindingStatus = Literal["ok", "problem", "absent"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """The result of one check."""

    check: str
    """The subject: an agent's name, or a part of agent-mux."""
    status: FindingStatus
    """`absent`: the agent is not installed, which is not a problem."""
    message: str
    fix: str | None = None
    """How to fix it: a command or a sentence."""


async def examine(installations: InstallationResolver, agents: Sequence[str] = ()) -> list[Finding]:
    """Check this machine, and these agents or all. Raises AGENT_NOT_FOUND.

    Runs the agents' version commands and nothing else; writes nothing; uses no network.
    """
    wanted = {installations.adapters.get(agent).agent for agent in agents}
    detected = await Detector(installations.adapters).detect_all()
    checked = [
        found
        for found in detected
        if found.agent in wanted or (not wanted and not _needs_command(found, installations))
    ]
    return [
        *_machine_findings(),
        *(finding for found in checked for finding in _agent_findings(found, installations)),
    ]


def _needs_command(found: DetectedAgent, installations: InstallationResolver) -> bool:
    """Return whether the agent stands for any program and no program is configured, so that it cannot be checked."""
    adapters = installations.adapters
    return not found.installed and found.agent in adapters and adapters.get(found.agent).takes_command


def _machine_findings() -> Iterator[Finding]:
    yield Finding(check="agent-mux", status="ok", message=__version__)
    is_supported = sys.version_info >= (3, 11)
    yield Finding(check="python", status="ok" if is_supported else "problem", message=platform.python_version())
    if Path("/proc/self/environ").exists():
        yield Finding(check="clean-up", status="ok", message="processes that leave their group are found")
    else:
        yield Finding(
            check="clean-up", status="problem", message="no /proc: only the process group is ended",
            fix="run where /proc is mounted if agents leave processes behind",
        )  # fmt: skip
    yield _check_writable(config_dir() / "runs")


def _check_writable(directory: Path) -> Finding:
    existing = next(path for path in (directory, *directory.parents) if path.exists())
    if os.access(existing, os.W_OK):
        return Finding(check="recordings", status="ok", message=str(directory))
    fix = f"chmod u+w {existing}, or name another directory with AGENT_MUX_CONFIG_DIR"
    return Finding(check="recordings", status="problem", message=f"{directory} is not writable", fix=fix)


def _agent_findings(found: DetectedAgent, installations: InstallationResolver) -> Iterator[Finding]:
    if not found.installed:
        fix = f"amux install {found.agent}" if _is_installable(found.agent, installations) else None
        message = "not installed" if fix is not None else found.problem or "not installed"
        yield Finding(check=found.agent, status="absent", message=message, fix=fix)
        return
    if found.problem is not None:
        yield Finding(check=found.agent, status="problem", message=found.problem, fix=f"amux update {found.agent}")
    else:
        yield Finding(check=found.agent, status="ok", message=f"{found.version}{_evidence(found)} at {found.path}")
    yield from _credential_findings(found.agent, installations)
    yield from _config_findings(found.agent, installations)


def _evidence(found: DetectedAgent) -> str:
    """Return the state of the installed version for people; empty where versions are not compared."""
    match found.version_state:
        case "tested":
            return " (tested)"
        case "in_range":
            return f" (within the tested range, {range_of(found.tested_versions)})"
        case "unknown" if not found.tested_versions:
            return " (not tested)"
        case "unknown":
            return f" (newer than the tested range, {range_of(found.tested_versions)})"
    return ""


def _is_installable(agent: str, installations: InstallationResolver) -> bool:
    try:
        methods = installations.adapters.get(agent).install
    except AgentMuxError:  # the adapter's package is broken: reported by the detector
        return False
    return any(sys.platform in method.platforms and method.kind != "manual" for method in methods)


def _credential_findings(agent: str, installations: InstallationResolver) -> Iterator[Finding]:
    check, fix = f"{agent} login", f"amux auth setup {agent}"
    try:
        state = Auth(installations).check(agent)
    except CapabilityError:
        return
    match state.status:
        case "authenticated":
            yield Finding(check=check, status="ok", message=f"{state.method}: {state.where}")
        case "unknown":
            yield Finding(check=check, status="problem", message=f"none found; {state.problem}", fix=fix)
        case "expired":
            yield Finding(check=check, status="problem", message=f"{state.method} has expired: {state.where}", fix=fix)
        case "unauthenticated":
            yield Finding(check=check, status="problem", message="no credentials were found", fix=fix)


def _config_findings(agent: str, installations: InstallationResolver) -> Iterator[Finding]:
    try:
        problems = AgentConfigs(installations).validate(agent)
    except CapabilityError:
        return
    for one in problems:
        message = one.message if one.field is None else f"{one.path}: {one.field} is not {one.message}"
        yield Finding(check=f"{agent} config", status="problem", message=message, fix=f"amux config validate {agent}")
