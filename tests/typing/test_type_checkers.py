"""mypy --strict and pyright: examples pass, and each deliberate mistake is reported. Part of `make check`."""

import ast
import json
import os
import re
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
ADAPTER_OF_THE_DOCS = ROOT / "docs/how-to/write-an-adapter/src"
MISTAKES = Path(__file__).with_name("mistakes.py")
MAX_SECONDS = 900
MARKERS = {
    "": "a complete module",
    "fragment": "statements in an async function in which the text around them introduces `mux`, `run` and `result`",
    "continued": "continues the example before it",
}
"""The word after `python` at the beginning of a block of code, and what the block is."""
BLOCK = re.compile(r"^```python(?: (\w+))?\n(.*?)^```", re.DOTALL | re.MULTILINE)
INTRODUCED = {"mux": "AgentMux", "run": "RunHandle", "result": "RunResult"}
PRELUDE = "from agent_mux import AgentMux, RunHandle, RunResult"


class Example(NamedTuple):
    """A block of Python code on a page."""

    name: str
    marker: str
    text: str


def examples() -> Iterator[Example]:
    """Yield all examples of the README and of the pages in `docs`."""
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        name = re.sub(r"\W", "_", str(page.relative_to(ROOT).with_suffix(""))).lower()
        before = ""
        for number, (marker, text) in enumerate(BLOCK.findall(page.read_text("utf-8"))):
            before = f"{before}\n\n{text}" if marker == "continued" else text
            yield Example(f"{name}_{number}", marker, before)


EXAMPLES = tuple(examples())
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
    paths = {"MYPYPATH": str(ADAPTER_OF_THE_DOCS), "PYTHONPATH": str(ADAPTER_OF_THE_DOCS)}  # of mypy, and of pyright
    done = subprocess.run(
        command, cwd=ROOT, env=os.environ | paths, capture_output=True, text=True, timeout=MAX_SECONDS, check=False
    )
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
    for example in EXAMPLES:
        file = tmp_path / f"{example.name}.py"
        file.write_text(as_module(example), "utf-8")
        files.append(file)
    assert len(files) > 60
    reported, output = checker(files)
    assert reported == set(), output


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_examples_of_the_docs_are_marked_as_what_they_are(example: Example) -> None:
    assert example.marker in MARKERS, f"use one of {', '.join(filter(None, MARKERS))}"
    if example.marker in ("", "fragment"):
        assert (example.marker == "fragment") == needs_context(example.text), example.text


def as_module(example: Example) -> str:
    """Return an example as a module; a fragment becomes the body of a function that has the introduced names."""
    if example.marker != "fragment":
        return example.text
    arguments = ", ".join(
        f"{name}: {kind}" for name, kind in INTRODUCED.items() if name not in bound_names(example.text)
    )
    imports = [line for line in example.text.splitlines() if re.match(r"(from|import) ", line)]
    body = [line for line in example.text.splitlines() if not re.match(r"(from|import) ", line)]
    inside = textwrap.indent("\n".join(body), "    ")
    return "\n".join([PRELUDE, *imports, f"async def example({arguments}) -> None:", inside, ""])


def needs_context(text: str) -> bool:
    """Return whether an example awaits outside of a function, or uses a name that the text around it introduces."""
    try:
        compile(text, "example", "exec")
    except SyntaxError:
        return True
    used = {node.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)}
    return bool(INTRODUCED.keys() & used - bound_names(text))


def bound_names(text: str) -> set[str]:
    """Return the names that an example assigns or declares as arguments."""
    nodes = list(ast.walk(compile(text, "example", "exec", ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)))
    stored = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    return stored | {node.arg for node in nodes if isinstance(node, ast.arg)}
