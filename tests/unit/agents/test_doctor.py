"""The checks of `amux doctor` and their fixes."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.unit.sample_agent import AGENT, INSTALLATION, sample_resolver

from agent_mux import AgentMuxError, McpServer
from agent_mux.agents.doctor import Finding, agents_that_run, are_all_well, examine
from agent_mux.agents.installations import InstallationResolver
from agent_mux.agents.mcp_servers import McpServers
from agent_mux.sdk.adapter import InstallMethod
from agent_mux.sdk.config import ConfigFile
from agent_mux.sdk.registry import AdapterRegistry

pytestmark = pytest.mark.anyio


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> InstallationResolver:
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    monkeypatch.setenv("AGENT_MUX_CONFIG_DIR", str(tmp_path / "mux"))
    found = sample_resolver(tmp_path)
    known = found.adapters.get(AGENT)
    npm = InstallMethod(kind="npm", command="npm install -g wombat", requires=("npm",))
    versions: dict[str, Any] = {"tested_version": "2.0", "also_tested_versions": ()}
    found.adapters.register(replace(known, install=(npm,), installation=lambda: INSTALLATION, **versions))
    return found


def installed(tmp_path: Path, version: str) -> None:
    program = tmp_path / "bin" / "wombat"
    program.parent.mkdir(exist_ok=True)
    program.write_text(f"#!/bin/sh\necho {version}\n", "utf-8")
    program.chmod(0o755)


def of(findings: list[Finding], check: str) -> Finding:
    [found] = [one for one in findings if one.check == check]
    return found


async def test_missing_agent_is_absent_with_install_command(machine: InstallationResolver) -> None:
    findings = await examine(machine)
    assert of(findings, AGENT) == Finding(
        check=AGENT, status="absent", message="not installed", fix=f"amux install {AGENT}", subject="agent", agent=AGENT
    )
    assert {one.status for one in findings if one.check != AGENT} <= {"ok", "problem"}
    assert f"{AGENT} login" not in {one.check for one in findings}


async def test_ready_agent_has_no_problem(machine: InstallationResolver, tmp_path: Path) -> None:
    installed(tmp_path, "2.1.0")
    ready = InstallationResolver(machine.adapters, environ={**machine.environ, "WOMBAT_KEY": "k"}, project=tmp_path)
    findings = await examine(ready, ["wom"])
    assert of(findings, AGENT).status == "ok"
    assert of(findings, f"{AGENT} login").message == "key: WOMBAT_KEY"
    assert f"{AGENT} config" not in {one.check for one in findings}


@pytest.mark.parametrize(
    ("version", "evidence"), [("2.0", "2.0 (tested)"), ("2.1.0", "2.1.0 (newer than the tested range, 2.0)")]
)
async def test_state_of_the_version_is_shown(
    machine: InstallationResolver, tmp_path: Path, version: str, evidence: str
) -> None:
    installed(tmp_path, version)
    assert of(await examine(machine), AGENT).message.startswith(f"{evidence} at ")


async def test_problems_come_with_a_fix(machine: InstallationResolver, tmp_path: Path) -> None:
    installed(tmp_path, "1.0.0")
    path = tmp_path / "home" / ".wombat" / "config.toml"
    path.parent.mkdir(parents=True)
    path.write_text('mode = "wild"\n', "utf-8")
    findings = await examine(machine)
    assert (of(findings, AGENT).status, of(findings, AGENT).fix) == ("problem", f"amux update {AGENT}")
    assert of(findings, f"{AGENT} login").fix == f"amux auth setup {AGENT}"
    config = of(findings, f"{AGENT} config")
    assert config.message == f"{path}: mode is not one of fast, slow"
    assert config.fix == f"amux config validate {AGENT}"


async def test_expired_login_is_a_problem(machine: InstallationResolver, tmp_path: Path) -> None:
    installed(tmp_path, "2.1.0")
    token = tmp_path / "home" / ".wombat" / "token"
    token.parent.mkdir(parents=True)
    token.write_text("1", "utf-8")
    assert "has expired" in of(await examine(machine), f"{AGENT} login").message


async def test_unknown_agent_is_rejected(machine: InstallationResolver) -> None:
    with pytest.raises(AgentMuxError, match="did you mean"):
        await examine(machine, ["wombt"])


async def test_all_is_well_where_one_agent_can_run_without_known_credentials(
    machine: InstallationResolver, tmp_path: Path
) -> None:
    installed(tmp_path, "2.1.0")
    findings = await examine(machine)
    assert of(findings, f"{AGENT} login").status == "warning"
    assert AGENT in agents_that_run(findings, machine.adapters)
    assert are_all_well(findings, machine.adapters, named=False)
    assert not are_all_well(await examine(machine, [AGENT]), machine.adapters, named=True)


async def test_agent_with_an_unusable_version_or_configuration_cannot_run(
    machine: InstallationResolver, tmp_path: Path
) -> None:
    installed(tmp_path, "1.0.0")
    findings = [one for one in await examine(machine) if one.agent in {AGENT, "replay", None}]
    assert agents_that_run(findings, machine.adapters) == []
    assert not are_all_well(findings, machine.adapters, named=False)


async def test_problem_of_the_machine_is_a_failure_whatever_can_run(
    machine: InstallationResolver, tmp_path: Path
) -> None:
    installed(tmp_path, "2.1.0")
    findings = [*await examine(machine), Finding(check="recordings", status="problem", message="not writable")]
    assert not are_all_well(findings, machine.adapters, named=False)


async def test_embedded_agent_counts_without_a_command_on_path(
    machine: InstallationResolver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    findings = await examine(InstallationResolver())
    assert of(findings, "native").status == "ok"
    assert agents_that_run(findings, AdapterRegistry()) == ["native"]
    assert {"acp", "terminal"}.isdisjoint(one.check for one in findings)


@pytest.mark.slow
async def test_mcp_servers_are_named_with_the_reason_for_those_that_are_not_used(
    machine: InstallationResolver, tmp_path: Path
) -> None:
    installed(tmp_path, "2.1.0")
    assert INSTALLATION.mcp is not None
    mcp = replace(INSTALLATION.mcp, objection=lambda _, file: "not trusted" if file.scope == "project" else None)
    known = replace(machine.adapters.get(AGENT), installation=lambda: replace(INSTALLATION, mcp=mcp))
    machine.adapters.register(known)
    assert f"{AGENT} mcp" not in {one.check for one in await examine(machine, [AGENT])}
    servers = McpServers(machine)
    for number in range(12):
        servers.add(AGENT, McpServer(f"s{number}", command="x"))
    servers.add(AGENT, McpServer("s1", command="x"), scope="project")
    finding = of(await examine(machine, [AGENT]), f"{AGENT} mcp")
    assert (finding.status, finding.message) == (
        "ok", "s0, s1, s2, s3, s4, s5, s6, s7, s8, s9 and 2 more; not used: s1 (not trusted)",
    )  # fmt: skip


async def test_broken_file_of_mcp_servers_is_reported_once(machine: InstallationResolver, tmp_path: Path) -> None:
    installed(tmp_path, "2.1.0")
    assert INSTALLATION.mcp is not None
    servers = ConfigFile(scope="project", format="json", path=lambda place: place.project_file("servers.json"))
    mcp = replace(INSTALLATION.mcp, files=(*INSTALLATION.mcp.files, servers))
    known = replace(machine.adapters.get(AGENT), installation=lambda: replace(INSTALLATION, mcp=mcp))
    machine.adapters.register(known)
    broken = [tmp_path / "home" / ".wombat" / "config.toml", tmp_path / "project" / "servers.json"]
    for path, expected in zip(broken, [(f"{AGENT} config", "problem"), (f"{AGENT} mcp", "warning")], strict=True):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("[", "utf-8")
        reported = [one for one in await examine(machine, [AGENT]) if str(path) in one.message]
        assert [(one.check, one.status) for one in reported] == [expected]
        path.unlink()
