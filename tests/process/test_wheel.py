"""The built distributions, installed into new virtual environments."""

import os
import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PATIENCE = 600.0  # seconds for one build or installation, on a busy machine with an empty cache
SOURCES = ("src", "adapters", "testing", "pyproject.toml", "README.md", "LICENSE")

pytestmark = pytest.mark.slow


def run(*command: object, environment: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(word) for word in command],
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


def succeed(*command: object) -> str:
    done = run(*command)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with both distributions; each wheel is built from its source distribution."""
    folder = tmp_path_factory.mktemp("dist")
    source = tmp_path_factory.mktemp("source")  # so that nothing is left in the checkout
    for name in SOURCES:
        path = ROOT / name
        if path.is_dir():
            shutil.copytree(path, source / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(path, source / name)
    for project in (source, source / "testing"):
        succeed(sys.executable, "-m", "build", "--outdir", folder, project)
    return folder


def only(folder: Path, pattern: str) -> Path:
    [found] = folder.glob(pattern)
    return found


class Environment:
    """A virtual environment and an empty home directory."""

    def __init__(self, folder: Path, *packages: object) -> None:
        venv.create(folder / "venv", with_pip=True)
        self.bin = folder / "venv" / "bin"
        self.home = folder / "home"
        self.home.mkdir()
        succeed(self.bin / "python", "-m", "pip", "install", "--quiet", *packages)

    def run(self, program: str, *arguments: object) -> subprocess.CompletedProcess[str]:
        environment = {"HOME": str(self.home), "PATH": f"{self.bin}:{os.defpath}", "LANG": "C.UTF-8"}
        return run(self.bin / program, *arguments, environment=environment)


@pytest.fixture(scope="module")
def base(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    return Environment(tmp_path_factory.mktemp("base"), only(built, "agent_mux-*.whl"))


def test_the_wheel_has_type_markers_and_no_test_kit(built: Path) -> None:
    with zipfile.ZipFile(only(built, "agent_mux-*.whl")) as wheel:
        names = set(wheel.namelist())
    assert {
        f"{package}/py.typed" for package in ("agent_mux", "agent_mux_adapters", "agent_loop", "agent_evaluation")
    } <= names
    assert {f"agent_mux/cli/generated/{name}.json" for name in ("command_catalog", "run_flags")} <= names
    assert {name.partition("/")[0] for name in names if ".dist-info" not in name} == {
        "agent_mux", "agent_mux_adapters", "agent_loop", "agent_evaluation",
    }  # fmt: skip
    with zipfile.ZipFile(only(built, "agent_mux_testing-*.whl")) as wheel:
        names = set(wheel.namelist())
    assert {"agent_mux_testing/py.typed", "agent_mux_testing/kits/baselines/claude.json"} <= names


def test_the_source_distribution_has_no_recordings_and_no_tests(built: Path) -> None:
    with tarfile.open(only(built, "agent_mux-*.tar.gz")) as source:
        tops = {name.split("/")[1] for name in source.getnames()}
    assert tops == {".gitignore", "LICENSE", "PKG-INFO", "README.md", "adapters", "pyproject.toml", "src"} & tops
    assert {"src", "adapters", "pyproject.toml"} <= tops


@pytest.mark.parametrize("command", [("amux",), ("agent-mux",), ("python", "-m", "agent_mux")])
def test_each_entry_point_prints_the_version(base: Environment, command: tuple[str, ...]) -> None:
    assert base.run(*command, "--version").stdout.startswith("amux ")


def test_the_base_install_has_no_extra(base: Environment) -> None:
    code = "import json, pkgutil; print(' '.join(sorted({m.name for m in pkgutil.iter_modules()})))"
    installed = set(base.run("python", "-c", code).stdout.split())
    extras = {"httpx", "pytest", "aiohttp", "structlog", "starlette", "trio", "pyte", "opentelemetry", "pydantic_ai"}
    assert not installed & {*extras, "agent_mux_testing"}
    assert "agent_mux" in installed


def test_the_demo_and_the_embedded_agent_run_on_the_base_install(base: Environment) -> None:
    demo = base.run("amux", "demo")
    assert demo.returncode == 0, demo.stderr
    assert "Tests that pass now: 1, and none fails." in demo.stdout
    recorded = base.run("amux", "demo", "--recorded")
    assert recorded.returncode == 0, recorded.stderr
    agent = base.run("amux-agent", "--model=scripted:demo", "hello")
    assert (agent.returncode, "I changed nothing" in agent.stdout) == (0, True), agent.stderr
    agent = base.run("amux-agent", "hello")
    assert (agent.returncode, agent.stdout) == (5, ""), agent.stderr


def test_the_public_names_and_the_help_work_on_the_base_install(base: Environment) -> None:
    code = "import agent_mux; help(agent_mux); from agent_mux import *; print(RemoteMux, BlockingRemoteMux)"
    done = base.run("python", "-c", code)
    assert done.returncode == 0, done.stderr
    done = base.run("python", "-c", "import agent_mux; agent_mux.BlockingRemoteMux('http://localhost')")
    assert done.stderr.endswith("the remote client requires the extra: pip install 'agent-mux[remote]'\n")


@pytest.mark.parametrize(
    "command",
    [("doctor", "--drift"), ("doctor", "--torture"), ("record", "replay", "demo", "--to", "folder"), ("replay", ".")],
)
def test_commands_of_the_test_kit_print_the_pip_command(base: Environment, command: tuple[str, ...]) -> None:
    done = base.run("amux", *command)
    assert (done.returncode, done.stdout) == (2, "")
    assert "requires the extra: pip install 'agent-mux[testing]'" in done.stderr


@pytest.mark.exhaustive  # minutes
def test_the_extra_testing_adds_the_tools(built: Path, tmp_path: Path) -> None:
    package = f"agent-mux[testing] @ {only(built, 'agent_mux-*.whl').as_uri()}"
    kit = Environment(tmp_path, f"--find-links={built}", package)
    torture = kit.run("amux", "doctor", "--torture", "noise", "--quick")
    assert (torture.returncode, "all 1 cases passed" in torture.stdout) == (0, True), torture.stderr
    folder = tmp_path / "recorded"
    record = kit.run("amux", "record", "replay", "demo", "--yolo", "--to", folder)
    assert record.returncode == 0, record.stderr
    replay = kit.run("amux", "replay", folder, "--json")
    assert (replay.returncode, '"type":"session_end"' in replay.stdout) == (0, True), replay.stderr
