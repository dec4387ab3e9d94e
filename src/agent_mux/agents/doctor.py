"""The checks of `amux doctor`: what is installed on this machine, what is wrong, and how to fix it."""

import os
import platform
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from agent_mux._util.listing import list_names
from agent_mux._util.paths import config_dir
from agent_mux._util.version import __version__
from agent_mux.agents.auth import Auth
from agent_mux.agents.config.client import AgentConfigs
from agent_mux.agents.detection import DetectedAgent, Detector
from agent_mux.agents.installations import InstallationResolver
from agent_mux.agents.mcp_servers import McpServers, StoredServer
from agent_mux.errors import AgentMuxError, CapabilityError
from agent_mux.sdk.registry import AdapterRegistry
from agent_mux.sdk.versions import range_of

FindingStatus = Literal["ok", "warning", "problem", "absent"]
MAX_NAMES = 10
"""The most names of MCP servers in one list."""
FindingSubject = Literal["machine", "agent", "credentials", "configuration"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """The result of one check."""

    check: str
    """The subject: an agent's name, or a part of agent-mux."""
    status: FindingStatus
    """`absent`: the agent is not installed, which is not a problem. `warning`: runs may work all the same, for example
    without known credentials."""
    message: str
    fix: str | None = None
    """How to fix it: a command or a sentence."""
    subject: FindingSubject = "machine"
    agent: str | None = None
    """The agent that the finding is about; None: this machine, or agent-mux."""


def agents_that_run(findings: Sequence[Finding], adapters: AdapterRegistry) -> list[str]:
    """Return the agents that can run: installed in a usable version, with a valid configuration.

    Missing credentials do not count: whether a run needs any is known only by its provider. An adapter without a
    protocol of its own replays recordings and is not an agent.
    """
    installed = [one.agent for one in findings if one.subject == "agent" and one.status == "ok" and one.agent]
    with_problems = {one.agent for one in findings if one.status == "problem"}
    return [name for name in installed if name not in with_problems and adapters.get(name).protocols]


def are_all_well(findings: Sequence[Finding], adapters: AdapterRegistry, *, named: bool) -> bool:
    """Return whether nothing has to be fixed before runs can start.

    Args:
        findings: The findings of `examine`.
        adapters: The registry that was examined.
        named: Whether the agents were named. Each of them must then be ready, with credentials; otherwise this machine
            must have no problem, and one agent must be able to run.
    """
    if named:
        return all(one.status == "ok" for one in findings)
    machine = [one for one in findings if one.subject == "machine"]
    return all(one.status != "problem" for one in machine) and bool(agents_that_run(findings, adapters))


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
    return not found.installed and found.agent in adapters and adapters.get(found.agent).needs_command


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
    agent = found.agent
    if not found.installed:
        fix = f"amux install {agent}" if _is_installable(agent, installations) else None
        message = "not installed" if fix is not None else found.problem or "not installed"
        yield Finding(check=agent, status="absent", message=message, fix=fix, subject="agent", agent=agent)
        return
    if found.problem is not None:
        status: FindingStatus = "problem"
        message, fix = found.problem, f"amux update {agent}"
    else:
        status, message, fix = "ok", f"{found.version}{_evidence(found)} at {found.path}", None
    yield Finding(check=agent, status=status, message=message, fix=fix, subject="agent", agent=agent)
    yield from _credential_findings(agent, installations)
    of_config = list(_config_findings(agent, installations))
    yield from of_config
    reported = {one.message for one in of_config}
    yield from (one for one in _mcp_findings(agent, installations) if one.message not in reported)


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
    status: FindingStatus = "ok" if state.status == "authenticated" else "warning"
    message = {
        "authenticated": f"{state.method}: {state.where}",
        "unknown": f"none found; {state.problem}",
        "expired": f"{state.method} has expired: {state.where}",
        "unauthenticated": "no credentials were found",
    }[state.status]
    yield Finding(
        check=check, status=status, message=message, fix=None if status == "ok" else fix,
        subject="credentials", agent=agent,
    )  # fmt: skip


def _config_findings(agent: str, installations: InstallationResolver) -> Iterator[Finding]:
    try:
        problems = AgentConfigs(installations).validate(agent)
    except CapabilityError:
        return
    for one in problems:
        message = one.message if one.field is None else f"{one.path}: {one.field} is not {one.message}"
        yield Finding(
            check=f"{agent} config", status="problem", message=message, fix=f"amux config validate {agent}",
            subject="configuration", agent=agent,
        )  # fmt: skip


def _mcp_findings(agent: str, installations: InstallationResolver) -> Iterator[Finding]:
    """Yield the MCP servers that the agent keeps: nothing without any, a warning if a file of theirs is broken."""
    status: FindingStatus = "ok"
    fix = None
    try:
        servers = McpServers(installations).list(agent)
        message = "; ".join(_server_names(servers))
    except CapabilityError:
        return
    except AgentMuxError as error:
        status, message, fix = "warning", error.message, "correct the file in an editor"
    if message:
        yield Finding(
            check=f"{agent} mcp", status=status, message=message, fix=fix, subject="configuration", agent=agent
        )


def _server_names(servers: Sequence[StoredServer]) -> Iterator[str]:
    """Yield the names of the servers that the agent uses, and for each reason those that it does not use."""
    groups: dict[str, list[str]] = {"": []}
    for one in servers:
        if one.wins or one.problem is not None:
            reason = one.problem or ("" if one.enabled else "disabled")
            groups.setdefault(reason, []).append(one.name)
    for reason, names in groups.items():
        shown = list_names(names, MAX_NAMES)
        if names:
            yield f"not used: {shown} ({reason})" if reason else shown
