"""`amux-agent mcp`: what it writes, prints and refuses."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from agent_loop.cli.main import main


class Shell:
    """Runs `amux-agent mcp` in this process, in a project and with a home directory of its own."""

    def __init__(self, root: Path, captured: pytest.CaptureFixture[str]) -> None:
        self.settings, self.project_file = root / "home" / "settings.json", root / "project" / ".mcp.json"
        self._captured = captured

    def run(self, *words: str) -> tuple[int, str]:
        """Return the exit code, and the output or the error."""
        code = main(["mcp", *words])
        printed = self._captured.readouterr()
        return code, printed.out or printed.err

    def stored(self, path: Path) -> Any:
        return json.loads(path.read_text("utf-8"))["mcpServers"]


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Shell:
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")
    monkeypatch.setenv("AMUX_AGENT_HOME", str(tmp_path / "home"))
    return Shell(tmp_path, capsys)


def test_program_is_added_for_the_user_listed_and_removed(shell: Shell) -> None:
    assert shell.run("list") == (0, "no MCP servers; add one: amux-agent mcp add NAME -- COMMAND\n")
    added = shell.run("add", "files", "--env", "TOKEN", "--env=MODE=fast", "--", "npx", "--", "--list", "two words")
    assert added == (0, f"added files to {shell.settings}\n")
    assert shell.stored(shell.settings) == {
        "files": {
            "type": "stdio",
            "command": "npx",
            "args": ["--", "--list", "two words"],
            "env": {"TOKEN": "${TOKEN}", "MODE": "fast"},
        }
    }
    assert shell.settings.stat().st_mode & 0o777 == 0o600
    assert shell.run("list") == (0, "files  global   stdio            npx -- --list two words\n")
    assert shell.run("remove", "files") == (0, f"removed files from {shell.settings}\n")
    assert shell.run("list")[1].startswith("no MCP servers")


def test_url_is_added_to_the_project_and_reported_as_not_trusted(shell: Shell) -> None:
    reason = f"the project is not trusted; add it to trustedProjects in {shell.settings}, or pass --trust-project"
    url = ("--url=https://h/mcp", "--header=Authorization=Bearer ${TOKEN}")
    assert shell.run("add", "web", "--scope=project", *url) == (
        0, f"added web to {shell.project_file}\nnot used: {reason}\n",
    )  # fmt: skip
    assert shell.stored(shell.project_file) == {
        "web": {"type": "http", "url": "https://h/mcp", "headers": {"Authorization": "Bearer ${TOKEN}"}}
    }
    shell.run("add", "old", "--sse", "--url=https://h/sse")
    assert shell.run("list")[1].splitlines() == [
        "old  global   sse              https://h/sse",
        f"web  project  streamable-http  https://h/mcp  (not used: {reason})",
    ]


def test_list_states_why_a_server_is_not_used_and_hides_secrets(shell: Shell) -> None:
    shell.settings.parent.mkdir()
    servers = {
        "off": {"command": "x", "disabled": True},
        "odd": {},
        "key": {"command": "x", "args": ["--api-key", "sesame-open-1234"]},
        "a\x1b[2J": {"command": "x\ny"},
        "both": {"command": "mine"},
    }
    trusted = {"mcpServers": servers, "trustedProjects": [str(shell.project_file.parent)]}
    shell.settings.write_text(json.dumps(trusted), "utf-8")
    shell.project_file.write_text('{"mcpServers": {"both": {"command": "theirs"}}}', "utf-8")
    assert shell.run("list")[1].splitlines() == [
        "off   global   stdio            x  (not used: disabled)",
        f"odd   global   ?                  (not used: its entry in {shell.settings} has neither a command nor a URL)",
        "key   global   stdio            x --api-key [hidden]",
        "a     global   stdio            x y",
        "both  global   stdio            mine  (not used: another server of this name takes precedence)",
        "both  project  stdio            theirs",
    ]


def test_existing_server_is_replaced_only_with_force(shell: Shell) -> None:
    shell.run("add", "a", "--", "one")
    code, error = shell.run("add", "a", "--", "two")
    assert (code, "--force replaces it" in error) == (2, True)
    assert shell.run("add", "a", "--force", "--", "two")[0] == 0
    assert shell.stored(shell.settings)["a"]["command"] == "two"


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ([], "the following arguments are required: list|add|remove; see `amux-agent mcp --help`"),
        (["fix", "it"], "invalid choice: 'fix'"),
        (["list", "--", "x"], "`amux-agent mcp list` takes no command after --"),
        (["add", "a"], "pass either a command, after --, or --url"),
        (["add", "a", "--url=http://h", "--", "x"], "pass either a command, after --, or --url"),
        (["add", "a", "--sse", "--", "x"], "--header and --sse need --url"),
        (["add", "a", "--url=http://h", "--env=A=b"], "--env needs a command, after --"),
        (["add", "a", "--env=A-B", "--", "x"], "--env needs NAME=VALUE or NAME; got 'A-B'"),
        (["add", "a", "--url=http://h", "--header=A"], "--header needs NAME=VALUE; got 'A'"),
        (["add", "a b", "--", "x"], "allowed: 1 to 64 letters, digits, _ or -"),
        (["remove", "a"], "an MCP server of native; it has: none"),
    ],
)
def test_mistake_is_one_sentence_with_exit_code_2(shell: Shell, words: list[str], problem: str) -> None:
    code, error = shell.run(*words)
    assert (code, error.count("\n")) == (2, 1)
    assert problem in error
    assert not shell.settings.exists()


def test_broken_file_is_reported_with_its_position_and_not_changed(shell: Shell) -> None:
    shell.settings.parent.mkdir()
    shell.settings.write_text('{"mcpServers": ', "utf-8")
    code, error = shell.run("add", "a", "--", "x")
    assert (code, f"{shell.settings}" in error, "line 1, column" in error) == (2, True, True)
    assert shell.settings.read_text("utf-8") == '{"mcpServers": '


@pytest.mark.slow
def test_command_does_not_import_the_agent() -> None:
    code = "import sys, agent_loop.cli.mcp_command; print({'agent_loop.agent', 'typer', 'mcp'} & {*sys.modules})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "set()\n"
