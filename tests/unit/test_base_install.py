"""The base install: its dependencies, and what works without any extra."""

import ast
import re
import subprocess
import sys
import tomllib
from importlib.metadata import PackageNotFoundError, packages_distributions, requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
RECORD = ROOT / "docs" / "design" / "decisions" / "base-install.md"
ROW = re.compile(r"^\| `(?P<package>[\w.-]+)` \| `(?P<used_by>[\w./]+)` \| (?P<reason>[^|]+) \|$", re.MULTILINE)
OWN = {"agent_evaluation", "agent_mux", "agent_mux_adapters", "agent_loop"}
WITHOUT_EXTRAS = """
import sys
from importlib.machinery import ModuleSpec

class Hiding:
    '''A finder for which some modules are not installed.'''
    def __init__(self, finder):
        self.finder = finder
    def find_spec(self, name, path=None, target=None) -> ModuleSpec | None:
        return None if name.partition(".")[0] in HIDDEN else self.finder.find_spec(name, path, target)
    def __getattr__(self, name):
        return getattr(self.finder, name)

HIDDEN = set(sys.argv[1].split(","))
sys.argv[1:] = []
sys.meta_path[:] = map(Hiding, sys.meta_path)
"""
"""Code that hides the modules in its argument, as if they were not installed."""


def base_requirements() -> list[Requirement]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return [Requirement(line) for line in project["dependencies"]]


def installed_by_base() -> set[str]:
    """Return the distributions that the base install brings, at any depth."""
    found: set[str] = set()
    waiting = base_requirements()
    while waiting:
        requirement = waiting.pop()
        name = canonicalize_name(requirement.name)
        if name in found or (requirement.marker is not None and not requirement.marker.evaluate({"extra": ""})):
            continue
        found.add(name)
        try:
            waiting += map(Requirement, requires(name) or ())
        except PackageNotFoundError:  # for another platform
            continue
    return found


def modules_of_extras() -> set[str]:
    """Return the installed modules that the base install does not bring, and the test kit."""
    base = installed_by_base()
    return {"agent_mux_testing"} | {
        module
        for module, distributions in packages_distributions().items()
        if module not in OWN and not {canonicalize_name(name) for name in distributions} & base
    }


def run_without_extras(code: str) -> str:
    return run_without(modules_of_extras(), code)


def run_without(modules: set[str], code: str) -> str:
    command = [sys.executable, "-c", WITHOUT_EXTRAS + code, ",".join(modules)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def imports_of(path: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        match node:
            case ast.Import(names=names):
                found |= {name.name for name in names}
            case ast.ImportFrom(module=str(module)):
                found.add(module)
    return found


def extras() -> set[str]:
    return set(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"])


def test_every_extra_that_is_named_exists() -> None:
    """In messages, docs and calls of `MissingExtraError`."""
    pages = [ROOT / "README.md", *ROOT.glob("docs/**/*.md")]
    sources = [path for folder in ("src", "adapters", "testing") for path in (ROOT / folder).rglob("*.py")]
    named = set()
    for path in (*pages, *sources):
        text = path.read_text("utf-8")
        named |= {name for names in re.findall(r"agent-mux\[([a-z,]+)\]", text) for name in names.split(",")}
        named |= set(re.findall(r'MissingExtraError\([^"]*"[^"]+", "(\w+)"', text))
    assert {"remote", "service", "postgres", "native"} <= named
    assert named <= extras()


def test_the_extra_all_has_every_extra() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    [everything] = map(Requirement, project["optional-dependencies"]["all"])
    assert everything.extras == extras() - {"all"}


def test_each_base_dependency_has_a_reason_and_a_use() -> None:
    rows = {row["package"]: row["used_by"] for row in ROW.finditer(RECORD.read_text("utf-8"))}
    assert sorted(rows) == sorted(requirement.name for requirement in base_requirements())
    for package, used_by in rows.items():
        module = package.replace("-", "_")
        assert any(f"{name}.".startswith(f"{module}.") for name in imports_of(ROOT / used_by)), (package, used_by)


@pytest.mark.slow
def test_extras_bring_the_modules_that_are_hidden_here() -> None:
    assert {"httpx", "aiohttp", "opentelemetry", "pytest", "agent_mux_testing", "pydantic_ai"} <= modules_of_extras()
    assert not {"msgspec", "pydantic", "typer", "anyio"} & modules_of_extras()


@pytest.mark.slow
def test_public_names_help_and_star_import_work_without_extras() -> None:
    code = """
import pydoc, agent_mux, agent_loop
from importlib.util import find_spec
assert find_spec("httpx") is None
for package in (agent_mux, agent_loop):
    assert [name for name in package.__all__ if not hasattr(package, name)] == []
    assert "NAME" in pydoc.render_doc(package, renderer=pydoc.plaintext)
from agent_mux import *
from agent_loop import *
print(RemoteMux.__name__, AgentMux.__name__, BlockingRemoteMux.__name__)
"""
    assert run_without_extras(code).split() == ["RemoteMux", "AgentMux", "BlockingRemoteMux"]


@pytest.mark.slow
def test_features_of_extras_raise_the_pip_command_when_they_are_used() -> None:
    code = """
from agent_mux import AgentMuxError, BlockingRemoteMux, RemoteMux
from agent_mux.telemetry.otel import RunObserver, instrument
for create in (RemoteMux, BlockingRemoteMux, instrument, RunObserver):
    try:
        create("http://localhost:1")
    except ImportError as error:
        print(isinstance(error, AgentMuxError), str(error).partition(": ")[2])
"""
    remote, otel = "True pip install 'agent-mux[remote]'", "True pip install 'agent-mux[otel]'"
    assert run_without_extras(code).splitlines() == [remote, remote, otel, otel]


@pytest.mark.slow
def test_postgresql_without_its_driver_raises_the_pip_command() -> None:
    code = """
from pathlib import Path
from agent_mux.service.store.database import checked_url, new_engine, new_migration_engine
url = checked_url("postgresql://localhost/runs", Path("unused"))
for create in (new_engine, new_migration_engine):
    try:
        create(url)
    except ImportError as error:
        print(error.code, error)
"""
    message = "CONFIG_ERROR PostgreSQL requires the extra: pip install 'agent-mux[postgres]'"
    assert run_without({"psycopg", "psycopg_binary"}, code).splitlines() == [message] * 2


@pytest.mark.slow
def test_commands_of_extras_exit_with_2_and_the_pip_command() -> None:
    code = """
from agent_mux.cli.main import main
for extra, command in {
    "service": ["serve"], "acp": ["acp", "--agent", "replay"], "mcp": ["mcp-server"],
    "trio": ["doctor", "--torture", "--backend", "trio"],
}.items():
    sys.stderr = sys.stdout
    print(extra, end=" ")
    print(main(command))
"""
    lines = run_without_extras(code).splitlines()
    assert [line for line in lines if line.isdigit()] == ["2"] * 4, lines
    for extra in ("service", "acp", "mcp", "trio"):
        [line] = [line for line in lines if line.startswith(f"{extra} ")]
        assert f"pip install 'agent-mux[{extra}]'" in line


@pytest.mark.slow
def test_the_embedded_agent_answers_without_extras(tmp_path: Path) -> None:
    script = tmp_path / "script.json"
    script.write_text('{"steps": [{"text": "I am a scripted model."}]}')
    code = f"""
from agent_loop.cli.main import main
sys.argv[1:] = ["--model", "scripted:{script}", "hello"]
sys.exit(main())
"""
    assert "I am a scripted model" in run_without_extras(code)
