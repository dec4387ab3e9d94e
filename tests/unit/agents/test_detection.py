"""Detection of installed agents, and of the agent or CI system that runs this process."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest
from tests.process.scripted import scripted_adapter
from tests.unit.sample_agent import AGENT, sample_resolver

from agent_mux.agents.detection import Detector, Host, detect_hosts
from agent_mux.process.installed_version import installed_version
from agent_mux.sdk.installation import AgentInstallation
from agent_mux.sdk.registry import AdapterRegistry
from agent_mux.sdk.versions import version_key

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def program(path: Path, body: str) -> str:
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return str(path)


@pytest.fixture
def detector() -> Detector:
    registry = AdapterRegistry()
    registry.register(scripted_adapter(""))
    return Detector(registry)


async def test_installed_agent_has_its_version(detector: Detector) -> None:
    found = await detector.detect("scripted")
    assert (found.installed, found.supported, found.path) == (True, True, sys.executable)
    assert found.version == ".".join(map(str, sys.version_info[:3]))
    assert await detector.detect("scripted") is found


@pytest.mark.parametrize(
    ("body", "version", "problem"),
    [
        ("echo scripted 1.2.3", "1.2.3", "older than the tested range, 3.11"),
        ("echo hello; exit 4", None, "(exit code 4) printed no version"),
    ],
)
async def test_problem_is_reported(
    detector: Detector, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str, version: str | None, problem: str
) -> None:
    monkeypatch.setenv("AMUX_SCRIPTED_EXECUTABLE", program(tmp_path / "agent", body))
    found = await detector.detect("scripted")
    assert (found.installed, found.supported, found.version) == (True, False, version)
    assert problem in (found.problem or "")


@pytest.mark.parametrize(
    ("version", "state", "supported"), [("1.0", "tested", True), ("2.5.1", "in_range", True), ("9.0", "unknown", True)]
)
async def test_version_is_compared_with_the_recordings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str, state: str, supported: bool
) -> None:
    registry = AdapterRegistry()
    registry.register(replace(scripted_adapter(""), tested_version="3.11", also_tested_versions=("1.0",)))
    monkeypatch.setenv("AMUX_SCRIPTED_EXECUTABLE", program(tmp_path / "agent", f"echo scripted {version}"))
    found = await Detector(registry).detect("scripted")
    assert (found.version, found.version_state, found.supported, found.problem) == (version, state, supported, None)
    assert (found.min_version, found.tested_versions) == ("1.0", ("1.0", "3.11"))


async def test_detected_version_is_known_to_later_runs(
    detector: Detector, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENT_MUX_CONFIG_DIR", str(tmp_path / "own"))
    path = program(tmp_path / "agent", "echo scripted 3.12")
    monkeypatch.setenv("AMUX_SCRIPTED_EXECUTABLE", path)
    assert installed_version(path) is None
    await detector.detect("scripted")
    assert installed_version(path) == "3.12"


async def test_package_has_the_version_of_a_program_that_does_not_print_it(
    detector: Detector, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "node_modules" / "agent"
    package.mkdir(parents=True)
    (package / "package.json").write_text('{"name": "agent", "version": "3.12.1"}')
    monkeypatch.setenv("AMUX_SCRIPTED_EXECUTABLE", program(package / "agent", "exit 1"))
    found = await detector.detect("scripted")
    assert (found.version, found.version_state) == ("3.12.1", "unknown")
    assert "printed no version" in (found.problem or "")


async def test_missing_agent_is_not_installed(detector: Detector, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AMUX_SCRIPTED_EXECUTABLE", "/nowhere/agent")
    found = await detector.detect("scripted")
    assert not found.installed
    assert "/nowhere/agent" in (found.problem or "")


async def test_version_command_times_out(detector: Detector, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent_mux.agents.detection.VERSION_TIMEOUT", 0.2)
    monkeypatch.setenv("AMUX_SCRIPTED_EXECUTABLE", program(tmp_path / "agent", "exec sleep 100"))
    found = await detector.detect("scripted")
    assert "did not answer" in (found.problem or "")


async def test_agents_are_detected_in_parallel(detector: Detector) -> None:
    found = await detector.detect_all()
    assert [detected.agent for detected in found] == sorted(detected.agent for detected in found)
    assert "scripted" in [detected.agent for detected in found]


def test_versions_compare_by_number() -> None:
    assert version_key("2.1.330") > version_key("2.1.99")
    assert version_key("0.169.0-alpha.1") == version_key("0.169.0")


def test_hosts_are_detected_by_their_variables(tmp_path: Path) -> None:
    adapters = sample_resolver(tmp_path, AgentInstallation(host_variables=("WOMBAT_RUNS", "WOMBAT_TOO"))).adapters
    assert detect_hosts(adapters, {}) == []
    assert detect_hosts(adapters, {"WOMBAT_TOO": "1", "WOMBAT_RUNS": ""}) == [
        Host(kind="agent", name=AGENT, variable="WOMBAT_TOO")
    ]
    both = detect_hosts(adapters, {"WOMBAT_TOO": "1", "WOMBAT_RUNS": "1", "CI": "true", "GITHUB_ACTIONS": "true"})
    assert both == [
        Host(kind="agent", name=AGENT, variable="WOMBAT_RUNS"),
        Host(kind="ci", name="GitHub Actions", variable="GITHUB_ACTIONS"),
    ]


def test_imitated_agent_is_not_detected() -> None:
    hosts = detect_hosts(AdapterRegistry(), {"OMPCODE": "1", "CLAUDECODE": "1"})
    assert [host.name for host in hosts] == ["omp"]  # measured with omp 18.2.3
    assert [host.name for host in detect_hosts(AdapterRegistry(), {"CLAUDECODE": "1"})] == ["claude"]
