"""`amux run` without typer: the same command lines with the same result, and everything else is left to typer."""

import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.cli.conftest import Amux

from agent_mux.cli import run_commands
from agent_mux.cli.app import command
from agent_mux.cli.command_catalog import RUN_FLAGS_FILE, load_run_flags, run_flags_text
from agent_mux.cli.command_output import Invocation
from agent_mux.cli.quick_run import parse_run

TABLE = load_run_flags()


def parse_with_typer(arguments: list[str]) -> tuple[list[str], dict[str, Any]]:
    """Return the words and flags with which typer calls the command."""
    seen: list[tuple[list[str], dict[str, Any]]] = []

    def start_run(_: Invocation, words: list[str], flags: Any) -> int:
        seen.append((words, vars(flags)))
        return 0

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run_commands, "start_run", start_run)
        with command().make_context("amux", ["run", *arguments], obj=Invocation()) as context:
            command().invoke(context)
    return seen[0]


PLAIN = [
    [],
    ["claude", "hi"],
    ["claude", "-"],
    ["-a", "codex", "--model=gpt-5", "fix it", "--yolo"],
    ["codex", "--max-turns", "3", "--timeout", "1.5", "--cwd", "/tmp", "x"],
    ["codex", "--tag", "a", "--tag=b", "--env", "A=b=c", "hi"],
    ["codex", "--no-stream", "--hooks", "--no-json", "hi", "--journal", "j"],
    ["codex", "--", "--model", "-x"],
    ["codex", "hi", "-q", "-i", "--prompt="],
    ["codex", "--temperature=-0.5", "hi"],
]


@pytest.mark.parametrize("arguments", PLAIN)
def test_plain_command_lines_are_parsed_as_typer_does(arguments: list[str]) -> None:
    parsed = parse_run(arguments, TABLE)
    assert parsed is not None
    assert (parsed.words, vars(parsed.flags)) == parse_with_typer(arguments)


@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        ["codex", "--modle", "x"],
        ["codex", "--model"],
        ["codex", "--model", "--yolo"],
        ["codex", "--yolo=1"],
        ["codex", "-mgpt"],
        ["codex", "-qi"],
        ["codex", "--max-turns", "three"],
        ["codex", "--max-turns", "1_0"],
        ["codex", "--timeout", "inf"],
        ["codex", "--mod", "x"],
    ],
)
def test_other_command_lines_are_left_to_typer(arguments: list[str]) -> None:
    assert parse_run(arguments, TABLE) is None


WORDS = st.sampled_from([
    "codex", "hi", "-", "", "--model", "-m", "x", "--model=x", "--yolo", "--tag", "--tag=", "--timeout", "5", "-1",
    "--", "--no-hooks", "--cwd", "--json", "-q", "--max-cost=0.5",
])  # fmt: skip


@pytest.mark.slow
@settings(deadline=None, max_examples=60)
@given(st.lists(WORDS, max_size=6))
def test_whatever_is_parsed_is_parsed_as_typer_does(arguments: list[str]) -> None:
    parsed = parse_run(arguments, TABLE)
    if parsed is not None:
        assert (parsed.words, vars(parsed.flags)) == parse_with_typer(arguments)


def test_stored_flags_are_those_of_the_command() -> None:
    assert RUN_FLAGS_FILE.read_text("utf-8") == run_flags_text(command()), "run: python docs/generate.py run-flags"


def test_mistakes_are_reported_by_typer(amux: Amux) -> None:
    done = amux("run", "codex", "hi", "--max-turns", "three")
    assert done.code == 2
    assert "--max-turns" in done.err


def test_flags_have_every_default() -> None:
    assert parse_run([], TABLE) == ([], SimpleNamespace(**{flag["name"]: flag["default"] for flag in TABLE}))


@pytest.mark.slow
def test_run_imports_neither_typer_nor_a_renderer_before_the_agent_is_spawned() -> None:
    program = """
import sys
from agent_mux.process import child
def report(event, args):
    if event not in ("subprocess.Popen", "os.posix_spawn", "os.fork") or "reaper_process.py" in str(args):
        return  # the reaper starts ahead of the imports
    heavy = {
        "typer", "rich", "pydantic", "prompt_toolkit", "pathspec", "markdown_it", "httpx", "starlette", "mcp",
        "email", "importlib.metadata", "ulid", "difflib", "logging.handlers", "agent_mux.sdk.hooks",
        "agent_mux.sdk.policy", "agent_mux.sdk.installation", "agent_mux.agents.detection",
    }
    classes = {value for module in list(sys.modules.values()) if module.__name__.startswith("agent_mux")
               for value in vars(module).values() if isinstance(value, type) and "__dataclass_fields__" in vars(value)}
    generated = sorted(one.__name__ for one in classes if one.__init__.__code__.co_filename == "<string>")
    loaded = sorted(heavy & set(sys.modules))
    sys.stderr.write(f"heavy: {loaded}; generated: {generated}; modules: {len(sys.modules)}\\n")
    sys.stderr.flush()
    import os
    os._exit(0)
sys.addaudithook(report)
from agent_mux.cli.main import main
main(["run", "replay", "demo", "--no-journal"])
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        stdin=subprocess.DEVNULL,
    )
    assert "heavy: []; generated: ['FieldError']; " in done.stderr, done.stderr
    modules = int(done.stderr.partition("modules: ")[2].split()[0])
    assert modules < MOST_MODULES, modules


MOST_MODULES = 445
"""Modules when the agent is spawned: about 418, with those of Python and of the adapter."""
