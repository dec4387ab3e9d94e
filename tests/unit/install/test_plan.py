"""How agents are installed and updated: what would be run, and what is missing for it."""

from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.sample_agent import AGENT, sample_resolver

from agent_mux import AgentMuxError, CapabilityError, ValidationError
from agent_mux.agents.install import carry_out, plan_install, plan_update, steps_of
from agent_mux.sdk.adapter import Adapter, InstallMethod
from agent_mux.sdk.installation import AgentInstallation
from agent_mux.sdk.registry import AdapterRegistry

NPM = InstallMethod(kind="npm", command="npm install -g wombat", requires=("npm", "node"))
BREW = InstallMethod(kind="brew", command="brew install wombat", requires=("brew",), platforms=("darwin",))
CURL = InstallMethod(kind="curl", command="curl -fsS https://h/install | sh -s -- --yes", requires=("curl", "sh"))


def adapter(tmp_path: Path, *methods: InstallMethod, home: AgentInstallation | None = None) -> Adapter:
    known = sample_resolver(tmp_path).adapters.get(AGENT)
    return replace(known, install=methods, home=lambda: home or AgentInstallation())


def program(directory: Path, name: str, text: str = "exit 0") -> Path:
    path = directory / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n", "utf-8")
    path.chmod(0o755)
    return path


def on(*directories: Path) -> dict[str, str]:
    return {"PATH": ":".join(map(str, directories))}


def test_the_first_way_that_can_work_is_taken(tmp_path: Path) -> None:
    program(tmp_path / "bin", "curl")
    program(tmp_path / "bin", "sh")
    plan = plan_install(adapter(tmp_path, NPM, CURL), on(tmp_path / "bin"), platform="linux")
    assert (plan.kind, plan.missing) == ("curl", ())
    assert plan.steps == (("curl", "-fsS", "https://h/install"), ("sh", "-s", "--", "--yes"))


def test_what_is_missing_is_named_before_anything_runs(tmp_path: Path) -> None:
    plan = plan_install(adapter(tmp_path, NPM), on(tmp_path), platform="linux")
    assert plan.missing == ("npm", "node")
    with pytest.raises(AgentMuxError, match="needs npm, node, which is not on PATH") as bad:
        carry_out(plan, on(tmp_path))
    assert bad.value.code == "AGENT_NOT_INSTALLED"


def test_a_way_can_be_chosen(tmp_path: Path) -> None:
    chosen = adapter(tmp_path, NPM, CURL, BREW)
    assert plan_install(chosen, on(tmp_path), kind="curl", platform="linux").kind == "curl"
    with pytest.raises(ValidationError, match="wombat has on linux: npm, curl"):
        plan_install(chosen, on(tmp_path), kind="brew", platform="linux")


def test_where_there_is_no_way_it_is_said(tmp_path: Path) -> None:
    manual = InstallMethod(kind="manual", command="dig one up")
    with pytest.raises(CapabilityError, match="by hand: dig one up"):
        plan_install(adapter(tmp_path, manual), {}, platform="linux")
    with pytest.raises(CapabilityError, match="no known way on linux"):
        plan_install(adapter(tmp_path, BREW), {}, platform="linux")


def test_an_update_goes_the_way_of_the_installation(tmp_path: Path) -> None:
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


def test_a_plan_is_carried_out_step_by_step(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    program(tmp_path / "bin", "curl", 'echo "touch $1.made"')
    plan = plan_install(adapter(tmp_path, CURL), on(tmp_path / "bin", Path("/bin")), platform="linux")
    carry_out(replace(plan, steps=(("curl", str(tmp_path / "it")), ("sh",))), on(tmp_path / "bin", Path("/bin")))
    assert (tmp_path / "it.made").exists()
    assert capfd.readouterr() == ("", "")


def test_a_step_that_fails_ends_it(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    program(tmp_path / "bin", "curl", "echo no such host >&2; exit 6")
    environ = on(tmp_path / "bin", Path("/bin"))
    plan = plan_install(adapter(tmp_path, CURL), environ, platform="linux")
    with pytest.raises(AgentMuxError, match=r"failed \(exit code 6\): no such host"):
        carry_out(plan, environ)
    program(tmp_path / "bin", "npm", "echo out; echo err >&2; exit 1")
    program(tmp_path / "bin", "node")
    with pytest.raises(AgentMuxError, match=r"`npm install -g wombat` failed \(exit code 1\); it says above why"):
        carry_out(plan_install(adapter(tmp_path, NPM), environ, platform="linux"), environ)
    assert capfd.readouterr() == ("", "out\nerr\n")


def test_every_known_way_is_programs_and_pipes_and_nothing_else_of_a_shell() -> None:
    for known in AdapterRegistry():
        for method in known.install:
            if method.kind == "manual":
                continue
            for step in steps_of(method.command):
                assert not {"|", "&&", ";", ">", "<", "&", "||"} & set(step), method.command
                assert not any("$" in word or "`" in word for word in step), method.command
