"""Who runs this process."""

from pathlib import Path

from tests.unit.sample_agent import AGENT, sample_resolver

from agent_mux.agents.detection import Host, detect_hosts
from agent_mux.sdk.installation import AgentInstallation
from agent_mux.sdk.registry import AdapterRegistry


def test_the_signs_of_agents_and_ci_systems(tmp_path: Path) -> None:
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


def test_an_agent_that_acts_as_another_is_not_taken_for_it() -> None:
    told = detect_hosts(AdapterRegistry(), {"OMPCODE": "1", "CLAUDECODE": "1"})
    assert [host.name for host in told] == ["omp"]  # measured with omp 18.2.3
    assert [host.name for host in detect_hosts(AdapterRegistry(), {"CLAUDECODE": "1"})] == ["claude"]
