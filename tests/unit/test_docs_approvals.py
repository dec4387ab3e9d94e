"""Every example that starts a run shows what decides its approvals: the default mode waits for somebody to answer."""

import ast
import re
import textwrap
from collections.abc import Iterator

import pytest
from tests.unit.test_docs import BLOCKS, ROOT

DECIDES = {"approval_mode", "on_approval_request", "policy"}
EXAMPLE = re.compile(r"^( *)Example:\n((?:\1 +.*\n|\n)+)", re.MULTILINE)
CLIENTS = {"AgentMux", "BlockingAgentMux", "RemoteMux", "BlockingRemoteMux"}
WITHOUT = {
    "mux.run(**options)": "the caller of the function passes the options on",
    "mux.run(prompt=f'write a greeting for {name} to hello.txt', **options)": "the fixture has the options",
    "mux.run(agent=AGENT, model=MODEL, prompt='write a greeting', cwd=folder)": "its reader answers the requests",
}
"""Calls that pass none of `DECIDES`, each with the reason."""


def sources() -> Iterator[tuple[str, str]]:
    """Yield all examples: of the pages, the programs in `examples/`, and those in docstrings."""
    for page, text in BLOCKS:
        yield str(page), text
    for program in sorted((ROOT / "examples").rglob("*.py")):
        yield str(program.relative_to(ROOT)), program.read_text("utf-8")
    for module in sorted((ROOT / "src" / "agent_mux").rglob("*.py")):
        for found in EXAMPLE.finditer(module.read_text("utf-8")):
            yield str(module.relative_to(ROOT)), textwrap.dedent(found.group(2))


SOURCES = list(sources())


def calls_that_start_runs(text: str) -> Iterator[ast.Call]:
    tree = compile(text, "example", "exec", flags=ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and re.fullmatch(r"(mux|client)\.(run|start|compare)", ast.unparse(node.func)):
            yield node


def decides_approvals(call: ast.Call, text: str) -> bool:
    names = {keyword.arg for keyword in call.keywords}
    options = [keyword.value for keyword in call.keywords if keyword.arg == "options"]
    keys = {
        key.value for one in options if isinstance(one, ast.Dict) for key in one.keys if isinstance(key, ast.Constant)
    }
    return bool(DECIDES & (names | keys)) or client_decides(text) or is_object(call, text)


def client_decides(text: str) -> bool:
    """Return whether the client of the example has an approval mode for all its runs."""
    return any(re.search(rf"\b{name}\([^)]*approval_mode=", text) for name in CLIENTS)


def is_object(call: ast.Call, text: str) -> bool:
    """Return whether the run is started with an object that the example makes, with a mode."""
    return bool(call.args) and isinstance(call.args[0], ast.Name) and any(f"{name}=" in text for name in DECIDES)


@pytest.mark.all_cases
@pytest.mark.parametrize(("place", "text"), SOURCES)
def test_example_states_what_decides_approvals(place: str, text: str) -> None:
    undecided = [ast.unparse(call) for call in calls_that_start_runs(text) if not decides_approvals(call, text)]
    assert [call for call in undecided if call not in WITHOUT] == [], place


def test_each_exception_is_needed() -> None:
    used = {ast.unparse(call) for _, text in SOURCES for call in calls_that_start_runs(text)}
    assert set(WITHOUT) <= used
