"""Plans to install and update agents, their missing programs, and running them."""

from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.sample_agent import AGENT, sample_resolver

from agent_mux import AgentMuxError, CapabilityError, ValidationError
from agent_mux.agents.provisioning import plan_install, plan_update, run_install_plan, split_pipeline
from agent_mux.sdk.adapter import Adapter, InstallMethod
from agent_mux.sdk.installation import AgentInstallation
from agent_mux.sdk.registry import AdapterRegistry

NPM = InstallMethod(kind="npm", command="npm install -g wombat", requires=("npm", "node"))
BREW = InstallMethod(kind="brew", command="brew install wombat", requires=("brew",), platforms=("darwin",))
CURL = InstallMethod(kind="curl", command="curl -fsS https://h/install | sh -s -- --yes", requires=("curl", "sh"))


def adapter(tmp_path: Path, *methods: InstallMethod, home: AgentInstallation | None = None) -> Adapter:
    known = sample_resolver(tmp_path).adapters.get(AGENT)
    return replace(known, install=methods, installation=lambda: home or AgentInstallation())


def program(directory: Path, name: str, text: str = "exit 0") -> Path:
    path = directory / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n", "utf-8")
    path.chmod(0o755)
    return path


def on(*directories: Path) -> dict[str, str]:
    return {"PATH": ":".join(map(str, directories))}


def test_first_ready_method_is_chosen(tmp_path: Path) -> None:
    program(tmp_path / "bin", "curl")
    program(tmp_path / "bin", "sh")
    plan = plan_install(adapter(tmp_path, NPM, CURL), on(tmp_path / "bin"), platform="linux")
    assert (plan.kind, plan.missing) == ("curl", ())
    assert plan.steps == (("curl", "-fsS", "https://h/install"), ("sh", "-s", "--", "--yes"))


def test_missing_programs_are_reported_before_running(tmp_path: Path) -> None:
    plan = plan_install(adapter(tmp_path, NPM), on(tmp_path), platform="linux")
    assert plan.missing == ("npm", "node")
    with pytest.raises(AgentMuxError, match="needs npm, node, which is not on PATH") as bad:
        run_install_plan(plan, on(tmp_path))
    assert bad.value.code == "AGENT_NOT_INSTALLED"


def test_method_can_be_chosen(tmp_path: Path) -> None:
    chosen = adapter(tmp_path, NPM, CURL, BREW)
    assert plan_install(chosen, on(tmp_path), kind="curl", platform="linux").kind == "curl"
    with pytest.raises(ValidationError, match="wombat has on linux: npm, curl"):
        plan_install(chosen, on(tmp_path), kind="brew", platform="linux")


def test_missing_method_raises_capability_error(tmp_path: Path) -> None:
    manual = InstallMethod(kind="manual", command="dig one up")
    with pytest.raises(CapabilityError, match="by hand: dig one up"):
        plan_install(adapter(tmp_path, manual), {}, platform="linux")
    with pytest.raises(CapabilityError, match="no installation method is known on linux"):
        plan_install(adapter(tmp_path, BREW), {}, platform="linux")


def test_update_uses_the_installation_method(tmp_path: Path) -> None:
    real = program(tmp_path / "lib" / "node_modules" / "wombat", "wombat")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "wombat").symlink_to(real)
    by_npm = adapter(tmp_path, CURL, NPM, home=AgentInstallation(update=("upgrade",)))
    assert plan_update(by_npm, on(tmp_path / "bin")).command == "npm install -g wombat@latest"
    own = program(tmp_path / "own", "wombat")
    plan = plan_update(by_npm, on(tmp_path / "own"))
    assert (plan.kind, plan.steps) == ("own", ((str(own), "upgrade"),))
    brewed = plan_update(adapter(tmp_path, BREW), on(tmp_path / "own"), platform="darwin")
    assert brewed.command == "brew upgrade wombat"
    with pytest.raises(AgentMuxError) as bad:
        plan_update(by_npm, on(tmp_path / "nowhere"))
    assert bad.value.code == "AGENT_NOT_INSTALLED"


def test_plan_runs_step_by_step(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    program(tmp_path / "bin", "curl", 'echo "touch $1.made"')
    plan = plan_install(adapter(tmp_path, CURL), on(tmp_path / "bin", Path("/bin")), platform="linux")
    run_install_plan(replace(plan, steps=(("curl", str(tmp_path / "it")), ("sh",))), on(tmp_path / "bin", Path("/bin")))
    assert (tmp_path / "it.made").exists()
    assert capfd.readouterr() == ("", "")


def test_failed_step_ends_the_plan(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    program(tmp_path / "bin", "curl", "echo no such host >&2; exit 6")
    environ = on(tmp_path / "bin", Path("/bin"))
    plan = plan_install(adapter(tmp_path, CURL), environ, platform="linux")
    with pytest.raises(AgentMuxError, match=r"failed \(exit code 6\): no such host"):
        run_install_plan(plan, environ)
    program(tmp_path / "bin", "npm", "echo out; echo err >&2; exit 1")
    program(tmp_path / "bin", "node")
    with pytest.raises(AgentMuxError, match=r"`npm install -g wombat` failed \(exit code 1\); see its output above"):
        run_install_plan(plan_install(adapter(tmp_path, NPM), environ, platform="linux"), environ)
    assert capfd.readouterr() == ("", "out\nerr\n")


def test_install_commands_use_no_shell_syntax_but_pipes() -> None:
    for known in AdapterRegistry():
        for method in known.install:
            if method.kind == "manual":
                continue
            for step in split_pipeline(method.command):
                assert not {"|", "&&", ";", ">", "<", "&", "||"} & set(step), method.command
                assert not any("$" in word or "`" in word for word in step), method.command
