"""The examples in the docs: all compile, name what exists, complete programs run, and links are valid."""

import ast
import importlib
import re
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.service.serving import serving
from tests.unit.cli.command_lines import amux_calls, check_call

ROOT = Path(__file__).parents[2]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```python(?: \w+)?\n(.*?)^```", re.DOTALL | re.MULTILINE)
BLOCKS = [(page.relative_to(ROOT), text) for page in PAGES for text in BLOCK.findall(page.read_text("utf-8"))]
CONSOLE = re.compile(r"^```console\n(.*?)^```", re.DOTALL | re.MULTILINE)
COMMANDS = [
    (page.relative_to(ROOT), line.removeprefix("$ "))
    for page in PAGES
    if page.name != "cli.md"  # generated from the program: usage, not command lines
    for text in CONSOLE.findall(page.read_text("utf-8"))
    for line in text.replace("\\\n", " ").splitlines()
    if line.startswith("$ ") and "amux " in line
]
RUNNABLE = [
    (page, text)
    for page, text in BLOCKS
    if ("anyio.run(main)" in text or "with BlockingAgentMux" in text)
    and ":MODEL" not in text  # that needs a key
    and "import pytest" not in text  # tests/process/test_recipes.py runs it
]
SERVICE = "http://127.0.0.1:8642"
AGENT_AND_PROMPT = re.compile(r'agent="\w+", prompt="[^"]*"')


@pytest.mark.parametrize(("page", "text"), BLOCKS)
def test_example_compiles(page: Path, text: str) -> None:
    compile(text, str(page), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)


@pytest.mark.parametrize(("page", "text"), BLOCKS)
def test_names_that_an_example_imports_exist(page: Path, text: str) -> None:
    for node in ast.walk(compile(text, str(page), "exec", flags=ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0].startswith("agent_"):
            module = importlib.import_module(node.module)
            assert [name.name for name in node.names if not hasattr(module, name.name)] == []


def test_examples_define_the_names_that_they_use(tmp_path: Path) -> None:
    parts = {Path("docs/how-to/write-an-adapter/README.md")}  # of one program, explained piece by piece
    for number, (page, text) in enumerate(BLOCKS):
        if page not in parts:
            (tmp_path / f"{page.stem}_{number}.py".replace("-", "_")).write_text(text, "utf-8")
    known = 'builtins = ["mux", "run", "result", "lines", "write"]'  # introduced by the text around an example
    command = [sys.executable, "-m", "ruff", "check", "--isolated", "--no-cache", "--select=F821", "--config", known]
    checked = subprocess.run([*command, tmp_path], capture_output=True, text=True, timeout=60, check=False)
    assert checked.returncode == 0, checked.stdout


@pytest.mark.parametrize(("page", "line"), COMMANDS)
def test_command_line_is_valid(page: Path, line: str) -> None:
    for arguments in amux_calls(line):
        check_call(arguments)


@pytest.mark.slow
@pytest.mark.parametrize(("page", "text"), RUNNABLE)
def test_complete_example_runs(
    page: Path, text: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("AGENT_MUX_CONFIG_DIR", str(tmp_path))
    monkeypatch.setenv("AMUX_REPLAY_SPEED", "0")
    text = AGENT_AND_PROMPT.sub('agent="replay", prompt="demo"', text).replace(
        'approval_mode="deny"', 'approval_mode="yolo"'
    )
    with ExitStack() as servers:
        if "RemoteMux(" in text:
            text = text.replace(SERVICE, servers.enter_context(serving(tmp_path)).url)
        exec(compile(text, str(page), "exec"), {"__name__": "__example__"})  # noqa: S102  # our own docs
    printed = capsys.readouterr().out
    assert "session_end" in printed or "completed" in printed


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_relative_links_have_targets(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text("utf-8")):
        if "://" not in target:
            assert (page.parent / target).exists(), target


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_link_anchors_name_headings(page: Path) -> None:
    for target, anchor in re.findall(r"\]\(([^)#:]*)#([^)]+)\)", page.read_text("utf-8")):
        linked = page.parent / target if target else page
        if linked.suffix == ".md":
            assert anchor in slugs_of(linked), f"{target}#{anchor}"


def test_each_decision_record_is_in_the_index() -> None:
    folder = ROOT / "docs" / "design" / "decisions"
    index = (folder / "README.md").read_text("utf-8")
    records = sorted(path.name for path in folder.glob("*.md") if path.name != "README.md")
    assert re.findall(r"\]\(([^)]+)\)", index) == records
    for name in records:
        text = (folder / name).read_text("utf-8")
        positions = [text.find(f"\n## {title}\n") for title in ("Context", "Decision", "Consequences")]
        assert -1 not in positions, name
        assert positions == sorted(positions), name


def slugs_of(page: Path) -> set[str]:
    """Return the anchors of all headings, as GitHub derives them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


NO_MODULES = re.compile(r"agent_mux\.(adapters|live_kits|testing|cost|exit_reason|mcp|run\.id|runs|step|turn)\b")
"""Groups of entry points, and attributes of spans and metrics."""


def test_dotted_names_of_agent_mux_exist() -> None:
    pages = [page.read_text("utf-8") for page in PAGES if page.name != "CHANGELOG.md"]  # that names earlier modules
    names = {name for page in pages for name in re.findall(r"`(agent_mux(?:\.\w+)+)`", page)}
    names = {name for name in names if not NO_MODULES.match(name)}
    assert len(names) > 20
    for name in names:
        found = importlib.import_module("agent_mux")
        for part in name.split(".")[1:]:
            if not hasattr(found, part):
                importlib.import_module(f"{found.__name__}.{part}")
            found = getattr(found, part)
