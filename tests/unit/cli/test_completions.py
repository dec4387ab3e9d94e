"""Completion of commands, options and values, as the scripts of the shells request it."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.pseudo_terminal import PseudoTerminal
from tests.unit.cli.conftest import Amux

from agent_mux.cli.completion_engine import complete, split_line
from agent_mux.cli.completion_scripts import SCRIPTS
from agent_mux.cli.main import main
from agent_mux.sessions.names import NamedSessions

RUN = "01KAN5D5Q8W9S4H4D1V7T2X3YZ"
AMUX = Path(sys.executable).with_name("amux")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a home directory with a profile, a run, a named session, and one stored session of Claude Code."""
    files = {
        "mux/profiles/review.json": "{}",
        f"mux/runs/{RUN}.journal": "",
        ".claude/projects/-w/1c2b5137-0000-4000-8000-000000000000.jsonl": json.dumps({
            "type": "user", "uuid": "u1", "sessionId": "1c2b5137-0000-4000-8000-000000000000", "cwd": str(tmp_path),
            "timestamp": "2026-11-26T10:00:00.000Z", "message": {"role": "user", "content": "the title"},
        }) + "\n",
    }  # fmt: skip
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    NamedSessions(tmp_path / "mux").store("work", "claude", tmp_path, "1c2b5137")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("AGENT_MUX_CONFIG_DIR", str(tmp_path / "mux"))
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def values(line: str) -> list[str] | str:
    found = complete(split_line(line)[0])
    return found if isinstance(found, str) else [one.value for one in found]


SESSION = "1c2b5137-0000-4000-8000-000000000000"


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize(
    ("line", "candidates"),
    [
        ("amux sess", ["sessions"]),
        ("amux sessions rew", ["rewind"]),
        ("amux run cl", ["claude"]),
        ("amux run claude cl", []),
        ("amux run --agent cl", ["claude"]),
        ("amux run --agent=cl", ["--agent=claude"]),
        ("amux --server http://127.0.0.1:1 run cl", ["claude"]),
        ("amux run claude --isol", ["--isolation"]),
        ("amux run --isolation ", ["none", "worktree"]),
        ("amux run --isolation=w", ["--isolation=worktree"]),
        ("amux run claude -i --profile re", ["review"]),
        ("amux run claude -im claude-opus-4-6", ["claude-opus-4-6"]),
        ("amux run claude -- --isol", []),
        ("amux run -s ", ["work"]),
        ("amux run codex -s ", []),
        ("amux run --session ", [SESSION]),
        ("amux sessions show claude:1c", [f"claude:{SESSION}"]),
        ("amux sessions show 'claude:1c", [f"claude:{SESSION}"]),
        ("amux run claude --cwd=/tm", "directories"),
        ("amux run claude --attach ", "files"),
        ("amux replay 01", [RUN]),
        ("amux replay ./x", "files"),
        ("amux config get amu", ["amux"]),
        ("amux completion p", ["powershell"]),
        ("amux no-such-command ", []),
        ("amux run --no-such-option=x", []),
    ],
)
def test_values_are_completed(line: str, candidates: list[str] | str) -> None:
    assert values(line) == candidates


@pytest.mark.parametrize(
    ("line", "words", "quote"),
    [
        ("amux", ["amux"], ""),
        ("amux ", ["amux", ""], ""),
        ('amux "a b', ["amux", "a b"], '"'),
        ("amux 'a b' ", ["amux", "a b", ""], ""),
        ("amux a\\ b", ["amux", "a b"], ""),
        ("amux a\\ ", ["amux", "a "], ""),
    ],
)
def test_an_unfinished_line_is_split_as_in_a_shell(line: str, words: list[str], quote: str) -> None:
    assert split_line(line) == (words, quote)


def requested(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, line: str, shell: str) -> str:
    monkeypatch.setenv("_AMUX_COMPLETE", shell)
    monkeypatch.setenv("_AMUX_COMPLETE_LINE", line)
    monkeypatch.setenv("_AMUX_COMPLETE_WORDBREAKS", " \t\n\"'><=;|&(:")
    assert main([]) == 0
    return capsys.readouterr().out


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize(
    ("shell", "line", "printed"),
    [
        ("bash", "amux sessions show claude:1c", f"{SESSION}\n"),
        ("bash", "amux sessions show 'claude:1c", f"claude:{SESSION}\n"),
        ("bash", "amux run --isolation=w", "worktree\n"),
        ("bash", "amux run --cwd ", ""),
        ("zsh", "amux run --cwd ", ":directories\n"),
        (
            "fish",
            "amux sessions rew",
            "rewind\tRewind a session to the state before a prompt, with its agent's own command\n",
        ),
    ],
)
def test_each_shell_receives_what_it_inserts(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, shell: str, line: str, printed: str
) -> None:
    assert requested(capsys, monkeypatch, line, shell) == printed


def test_unreadable_files_complete_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mux").mkdir()
    (tmp_path / "mux" / "named-sessions.json").write_text("{")
    monkeypatch.setenv("AGENT_MUX_CONFIG_DIR", str(tmp_path / "mux"))
    assert requested(capsys, monkeypatch, "amux run -s ", "fish") == ""


def test_completion_imports_neither_typer_nor_the_commands(tmp_path: Path) -> None:
    script = (
        "import sys; from agent_mux.cli.main import main; main([]);"
        " print(sorted({'typer', 'rich', 'click', 'agent_mux.cli.app'} & set(sys.modules)))"
    )
    environ = {**os.environ, "_AMUX_COMPLETE": "bash", "_AMUX_COMPLETE_LINE": "amux run cl", "HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", script], env=environ, capture_output=True, text=True, check=False, timeout=60
    )
    assert done.stdout == "claude\n[]\n", done.stderr


# -- the shells themselves


def script_of(shell: str, directory: Path) -> Path:
    path = directory / f"completion.{shell}"
    path.write_text(SCRIPTS[shell])
    return path


def output_of(shell: str, script: str) -> str:
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"{shell} is not installed")
    environ = {**os.environ, "PATH": f"{AMUX.parent}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run([program, "-c", script], env=environ, capture_output=True, text=True, check=False, timeout=60)
    assert done.stderr == ""
    return done.stdout


@pytest.mark.slow
def test_bash_completes_a_value_with_a_colon_and_by_an_alias(home: Path) -> None:
    line = "a sessions show claude:1c"
    script = (
        f"source {script_of('bash', home)}; complete -p amux; COMP_LINE='{line}'; COMP_POINT={len(line)};"
        ' _amux_completion a; printf "%s\\n" "${COMPREPLY[@]}"'
    )
    assert output_of("bash", script).splitlines()[-1] == SESSION


@pytest.mark.slow
def test_fish_completes_values_paths_and_aliases(home: Path) -> None:
    (home / "some-directory").mkdir()
    lines = ("amux sessions show claude:1c", "amux run --isolation=w", "amux run --cwd=some-d", "a run cl")
    asked = "; ".join(f"complete -C '{line}'" for line in lines)
    found = output_of("fish", f"source {script_of('fish', home)}; alias a=amux; {asked}").splitlines()
    assert [line.partition("\t")[0] for line in found] == [
        f"claude:{SESSION}", "--isolation=worktree", "--cwd=some-directory/", "claude",
    ]  # fmt: skip


@pytest.mark.slow
def test_zsh_completes_values_and_paths(home: Path) -> None:
    zsh = shutil.which("zsh")
    if zsh is None:
        pytest.skip("zsh is not installed")
    (home / "some-directory").mkdir()
    (home / ".zshrc").write_text(
        f"autoload -U compinit; compinit -u -D; source {script_of('zsh', home)}; PS1='ready> '\n"
    )
    environ = {
        **os.environ,
        "PATH": f"{AMUX.parent}{os.pathsep}{os.environ['PATH']}",
        "TERM": "xterm",
        "ZDOTDIR": str(home),
    }
    with PseudoTerminal([zsh, "-i"], environ, home, patience=60) as terminal:
        terminal.expect("ready> ")
        for typed, completed in (
            ("amux sessions show claude:1c\t", SESSION),
            ("amux run --isolation=w\t", "worktree"),
            ("amux run --cwd=some-d\t", "some-directory"),
        ):
            terminal.type(typed)
            terminal.expect(completed)
            terminal.type("\x15")  # clear the line
        terminal.type("exit\n")
        assert terminal.finish() == 0


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish", "powershell"])
def test_completions_option_prints_the_script_of_the_command(amux: Amux, shell: str) -> None:
    done = amux("--completions", shell)
    assert (done.code, done.err) == (0, "")
    assert done.out == amux("completion", shell).out


def test_unknown_shell_is_a_usage_error(amux: Amux) -> None:
    done = amux("--completions", "tcsh")
    assert done.code == 2
    assert "powershell" in done.err


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_descriptions_are_one_line_without_escape_sequences(
    home: Path, shell: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    [stored] = home.glob(".claude/projects/-w/*.jsonl")
    stored.write_text(stored.read_text().replace("the title", "the\\u001b[31m red\\u0007\\ttitle"))
    monkeypatch.setenv("_AMUX_COMPLETE", shell)
    monkeypatch.setenv("_AMUX_COMPLETE_LINE", "amux sessions show claude:")
    assert main([]) == 0
    [line] = capsys.readouterr().out.splitlines()
    assert line.startswith(f"claude:{SESSION}\t")
    assert line.isprintable() or line.replace("\t", "", 1).isprintable()
    assert line.endswith("the red title")
