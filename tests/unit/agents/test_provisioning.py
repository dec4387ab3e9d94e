"""Plans to install and update agents, their missing programs, and running them."""

from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.sample_agent import AGENT, sample_resolver

from agent_mux import AgentMuxError, CapabilityError, ValidationError
from agent_mux.agents.installations import InstallationResolver
from agent_mux.agents.installer import Installer
from agent_mux.agents.provisioning import (
    plan_install,
    plan_uninstall,
    plan_update,
    run_install_plan,
    split_pipeline,
    split_version,
)
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


# -- versions and removal


def test_a_version_is_installed_with_a_method_that_supports_it(tmp_path: Path) -> None:
    pip = InstallMethod(kind="pip", command="pip install 'wombat[all]'", requires=("pip",))
    program(tmp_path / "bin", "pip")
    chosen = adapter(tmp_path, CURL, NPM, pip)
    plan = plan_install(chosen, on(tmp_path / "bin"), version="1.2.3", platform="linux")
    assert plan.steps == (("pip", "install", "wombat[all]==1.2.3"),)
    plan = plan_install(chosen, on(tmp_path / "bin"), version="next", kind="npm", platform="linux")
    assert plan.command == "npm install -g wombat@next"
    with pytest.raises(CapabilityError, match="installing version 1; curl installs the current version only"):
        plan_install(adapter(tmp_path, CURL), {}, version="1", platform="linux")
    with pytest.raises(ValidationError, match="a version or tag"):
        plan_install(chosen, {}, version="1 && rm", platform="linux")
    assert split_version("wombat@1.2") == ("wombat", "1.2")
    assert split_version("wombat") == ("wombat", None)


def test_npm_removes_from_the_directory_that_it_installed_to(tmp_path: Path) -> None:
    executable = program(tmp_path / "usr/lib/node_modules/@scope/wombat", AGENT)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / AGENT).symlink_to(executable)
    scoped = replace(NPM, command="npm install -g @scope/wombat")
    plan = plan_uninstall(adapter(tmp_path, CURL, scoped), on(tmp_path / "bin"), platform="linux")
    assert plan.steps == (("npm", "uninstall", "--global", f"--prefix={tmp_path / 'usr'}", "@scope/wombat"),)
    assert (plan.kind, plan.missing, plan.removes) == ("npm", ("npm",), True)
    with pytest.raises(AgentMuxError, match=r"cannot be uninstalled yet: .* needs npm"):
        run_install_plan(plan, on(tmp_path / "bin"))


@pytest.mark.parametrize(
    ("python", "command"),
    [
        ("/opt/venv/bin/python3", ("/opt/venv/bin/python3", "-m", "pip", "uninstall", "--yes", "wombat")),
        ("/h/.local/share/uv/tools/wombat/bin/python", ("uv", "tool", "uninstall", "wombat")),
        ("/h/.local/pipx/venvs/wombat/bin/python", ("pipx", "uninstall", "wombat")),
    ],
)
def test_a_python_program_is_removed_by_what_installed_it(
    tmp_path: Path, python: str, command: tuple[str, ...]
) -> None:
    executable = program(tmp_path / "bin", AGENT)
    executable.write_text(f"#!{python}\nprint()\n", "utf-8")
    pip = InstallMethod(kind="pip", command="pip install 'wombat[all]'")
    assert plan_uninstall(adapter(tmp_path, pip), on(tmp_path / "bin"), platform="linux").steps == (command,)


def test_removal_without_a_package_manager_names_the_program(tmp_path: Path) -> None:
    executable = program(tmp_path / "bin", AGENT)
    with pytest.raises(CapabilityError, match=f"remove {executable}, or name the package manager"):
        plan_uninstall(adapter(tmp_path, CURL), on(tmp_path / "bin"), platform="linux")
    home = AgentInstallation(uninstall=("uninstall", "--force"))
    plan = plan_uninstall(adapter(tmp_path, CURL, home=home), on(tmp_path / "bin"), platform="linux")
    assert plan.steps == ((str(executable), "uninstall", "--force"),)
    with pytest.raises(ValidationError, match="one that wombat has on linux: npm"):
        plan_uninstall(adapter(tmp_path, NPM), on(tmp_path / "bin"), kind="brew", platform="linux")


def test_a_part_of_agent_mux_is_not_removed_alone(tmp_path: Path) -> None:
    program(tmp_path / "bin", AGENT)
    own = InstallMethod(kind="pip", command='pip install "agent-mux[native]"')
    with pytest.raises(CapabilityError, match="pip uninstall agent-mux"):
        plan_uninstall(adapter(tmp_path, own), on(tmp_path / "bin"), platform="linux")


def test_installer_runs_the_plan_in_its_environment(tmp_path: Path) -> None:
    program(tmp_path / "bin", "npm", f'echo "$@" > {tmp_path / "called"}')
    environ = on(tmp_path / "bin", Path("/bin"))
    registry = AdapterRegistry()
    registry.register(replace(adapter(tmp_path, NPM), install=(replace(NPM, requires=("npm",)),)))
    installer = Installer(InstallationResolver(registry, environ=environ))
    assert (AGENT in installer.missing(), AGENT in installer.installed()) == (True, False)
    assert installer.install(f"{AGENT}@2", dry_run=True).command == "npm install -g wombat@2"
    assert not (tmp_path / "called").exists()
    installer.install(AGENT, version="2")
    assert (tmp_path / "called").read_text("utf-8") == "install -g wombat@2\n"
    program(tmp_path / "bin" / "node_modules", AGENT)
    environ["PATH"] = f"{tmp_path / 'bin' / 'node_modules'}:{environ['PATH']}"
    assert AGENT in installer.installed()
    installer.uninstall(AGENT)
    assert (tmp_path / "called").read_text("utf-8") == "uninstall --global wombat\n"
