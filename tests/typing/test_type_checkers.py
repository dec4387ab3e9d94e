"""mypy --strict and pyright: examples pass, and each deliberate mistake is reported. Part of `make check`."""

import json
import re
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MISTAKES = Path(__file__).with_name("mistakes.py")
MAX_SECONDS = 900
PAGES = (
    "README.md",
    "docs/tutorial/getting-started.md",
    "docs/how-to/use-from-python.md",
    "docs/how-to/control-a-run.md",
)
BLOCK = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
INTRODUCED = "mux: AgentMux, run: RunHandle, result: RunResult"
PRELUDE = """
import anyio
from agent_mux import AgentMux, Approve, BlockingAgentMux, Deny, McpServer, PendingInteraction, Policy, RetryPolicy
from agent_mux import RunHandle, RunOptionFields, RunResult, Text
"""
Report = set[tuple[str, int]]


def mypy(files: list[Path]) -> tuple[Report, str]:
    options = ["--no-error-summary", "--no-pretty"]  # pyproject.toml has the rest, strict included
    done = run([sys.executable, "-m", "mypy", *options, *map(str, files)])
    found = re.findall(r"^(.+?):(\d+)(?::\d+)?: error: ", done, re.MULTILINE)
    return {(Path(name).name, int(line)) for name, line in found}, done


def pyright(files: list[Path]) -> tuple[Report, str]:
    pytest.importorskip("pyright", reason="pyright is not installed: make dev")
    done = run([sys.executable, "-m", "pyright", "--outputjson", f"--pythonpath={sys.executable}", *map(str, files)])
    found = json.loads(done[done.index("{") :])["generalDiagnostics"]
    errors = [one for one in found if one["severity"] == "error"]
    return {(Path(one["file"]).name, one["range"]["start"]["line"] + 1) for one in errors}, done


def run(command: list[str]) -> str:
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=MAX_SECONDS, check=False)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return done.stdout


CHECKERS = [mypy, pyright]
Checker = Callable[[list[Path]], tuple[Report, str]]


@pytest.mark.parametrize("checker", CHECKERS)
def test_every_mistake_is_reported_and_nothing_else(checker: Checker) -> None:
    lines = MISTAKES.read_text("utf-8").splitlines()
    marked = {(MISTAKES.name, number) for number, line in enumerate(lines, 1) if "# mistake: " in line}
    assert len(marked) > 30
    reported, output = checker([MISTAKES])
    assert reported == marked, output


@pytest.mark.parametrize("checker", CHECKERS)
def test_example_programs_are_typed(checker: Checker) -> None:
    reported, output = checker(sorted((ROOT / "examples").glob("*.py")))
    assert reported == set(), output


@pytest.mark.parametrize("checker", CHECKERS)
def test_examples_of_the_docs_are_typed(checker: Checker, tmp_path: Path) -> None:
    files = []
    for page in PAGES:
        for number, block in enumerate(BLOCK.findall((ROOT / page).read_text("utf-8"))):
            file = tmp_path / f"{Path(page).stem.replace('-', '_').lower()}_{number}.py"
            file.write_text(as_module(block), "utf-8")
            files.append(file)
    assert len(files) > 10
    reported, output = checker(files)
    assert reported == set(), output


def as_module(block: str) -> str:
    """Return an example as a module; a fragment becomes the body of a function that has the introduced names."""
    if not is_fragment(block):
        return block
    imports = [line for line in block.splitlines() if re.match(r"(from|import) ", line)]
    body = [line for line in block.splitlines() if not re.match(r"(from|import) ", line)]
    inside = textwrap.indent("\n".join(body), "    ")
    return "\n".join([PRELUDE, *imports, f"async def example({INTRODUCED}) -> None:", inside, ""])


def is_fragment(block: str) -> bool:
    """Return whether an example awaits outside of a function, or uses a name that the text around it introduces."""
    try:
        compile(block, "example", "exec")
    except SyntaxError:
        return True
    return re.search(r"^\S.*\b(mux|run|result)\.|^(run|result)\.", block, re.MULTILINE) is not None
