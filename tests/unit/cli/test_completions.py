"""Completion of commands, options and values, as a shell requests it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.unit.cli.conftest import Amux

from agent_mux.cli.app import command
from agent_mux.cli.command_catalog import all_commands


def complete(words: list[str], home: Path) -> list[str]:
    """Return the candidates for the last word, as bash receives them."""
    environ = {
        **os.environ,
        "HOME": str(home),
        "AGENT_MUX_CONFIG_DIR": str(home / "mux"),
        "COMP_WORDS": "\n".join(["amux", *words]),
        "COMP_CWORD": str(len(words)),
        "_AMUX_COMPLETE": "complete_bash",
    }
    done = subprocess.run(
        [sys.executable, "-m", "agent_mux"], env=environ, capture_output=True, text=True, check=True, timeout=120
    )
    assert done.stderr == ""
    return [line for line in done.stdout.splitlines() if line]


@pytest.mark.parametrize(
    ("words", "candidates"),
    [
        (["run", "cl"], ["claude"]),
        (["run", "--agent", "cl"], ["claude"]),
        (["run", "--isolation", ""], ["none", "worktree"]),
        (["run", "--profile", "re"], ["review"]),
        (["replay", "01"], ["01KAN5D5Q8W9S4H4D1V7T2X3YZ"]),
        (["completion", "p"], ["powershell"]),
    ],
)
def test_values_are_completed(tmp_path: Path, words: list[str], candidates: list[str]) -> None:
    files = {"profiles/review.json": "{}", "runs/01KAN5D5Q8W9S4H4D1V7T2X3YZ.journal": ""}
    for name, text in files.items():
        path = tmp_path / "mux" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    assert complete(words, tmp_path) == candidates


@pytest.mark.slow
def test_models_are_those_of_the_agent_on_the_line(tmp_path: Path) -> None:
    claude = complete(["run", "claude", "--model", "claude-"], tmp_path)
    assert claude
    assert all(name.startswith("claude-") for name in claude)
    assert complete(["models", "get", "claude", "gpt"], tmp_path) == []


@pytest.mark.slow
def test_unreadable_files_complete_nothing(tmp_path: Path) -> None:
    (tmp_path / "mux").write_text("a file in the place of the directory")
    assert complete(["replay", "0"], tmp_path) == []


def test_every_agent_model_and_choice_is_completed() -> None:
    missing = [
        f"{' '.join(words)} {parameter.name}"
        for words, one in all_commands(command())
        for parameter in one.params
        if (parameter.name in {"agent", "model", "profile"} or "|" in (parameter.metavar or "").strip("[]"))
        and parameter.metavar not in {"[FILE|-]", "FILE|URL"}
        and parameter._custom_shell_complete is None  # where typer keeps it
        and not parameter.type_descriptor.is_choice
    ]
    assert missing == []


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish", "powershell"])
def test_completions_option_prints_the_script_of_the_command(amux: Amux, shell: str) -> None:
    done = amux("--completions", shell)
    assert (done.code, done.err) == (0, "")
    assert done.out == amux("completion", shell).out


def test_unknown_shell_is_a_usage_error(amux: Amux) -> None:
    done = amux("--completions", "tcsh")
    assert done.code == 2
    assert "powershell" in done.err
