"""What people see: the help of every command, and what commands print for them. Reviewed as diffs.

`AMUX_UPDATE_GOLDENS=1 pytest tests/unit/cli/test_snapshots.py` writes them anew.
"""

import os
import platform
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.unit.cli.conftest import Amux, Done

from agent_mux._util.version import __version__
from agent_mux.cli.app import command

UPDATES = bool(os.environ.get("AMUX_UPDATE_GOLDENS"))
SNAPSHOTS = Path(__file__).parent / "snapshots"
STORE = Path(__file__).parents[2] / "stores" / "claude" / "2.1.330" / "home"
SETTINGS = '{\n  // mine\n  "model": "opus",\n  "env": {"ANTHROPIC_API_KEY": "not-a-real-key-17"}\n}\n'
SERVER = '{"command": "npx", "args": ["-y", "files"], "env": {"A_TOKEN": "not-a-real-key-17"}}'
STATE = f'{{"mcpServers": {{"files": {SERVER}}}}}'
SKILL = "---\nname: dig\ndescription: Digs holes, wide ones too (\u7a74\u3092\u6398\u308b)\n---\nDig.\n"
OUTPUTS: dict[str, list[list[str]]] = {
    "adapters": [["detect", "claude"], ["capabilities", "pi"], ["detect-host"]],
    "auth": [["auth", "check", "claude"], ["auth", "setup", "claude"], ["auth", "setup", "codex"]],
    "config": [
        ["config", "get", "claude"], ["config", "get", "claude", "model"],
        ["config", "set", "claude", "model", "sonnet", "--dry-run"], ["config", "validate", "claude"],
        ["config", "schema", "pi"],
    ],
    "definitions": [["skills", "list", "claude"], ["skills", "where", "codex"], ["subagents", "list", "claude"]],
    "doctor": [["doctor", "claude"]],
    "hooks": [["hooks", "list"], ["hooks", "status", "claude"], ["hooks", "install", "claude", "--dry-run"]],
    "install": [["install", "codex", "--dry-run"]],
    "mcp": [["mcp", "list", "claude"], ["mcp", "add", "claude", "web", "--url", "https://h.example/mcp", "--dry-run"]],
    "models": [["models", "list", "claude"], ["models", "show", "claude", "opus"], ["models", "current", "claude"]],
    "profiles": [["init", "--dry-run"], ["profiles", "list"], ["profiles", "show", "careful"]],
    "sessions": [
        ["sessions", "list"], ["sessions", "search", "question"], ["sessions", "show", "1c2b5137"],
        ["sessions", "diff", "7b278565", "126c36d9"], ["cost", "report"], ["cost", "report", "--by", "model"],
    ],
    "errors": [
        ["rnu"], ["run", "clade", "hi"], ["config", "get", "claude", "no.such.field"], ["mcp", "add", "claude", "x"],
        ["sessions", "show", "nothing"], ["profiles", "show", "no-such"], ["install", "cursor"],
    ],
}  # fmt: skip
"""By file: what is typed, one after the other, in a home with something of everything."""


@pytest.fixture
def home(amux: Amux, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:  # it has a home of its own
    home = tmp_path / "home"
    project = home / "project"
    shutil.copytree(STORE, home)
    for name, text in (
        (".claude/settings.json", SETTINGS), (".claude.json", STATE), (".claude/skills/dig/SKILL.md", SKILL),
        (".claude/agents/broken.md", "no header\n"),
    ):  # fmt: skip
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(text, "utf-8")
    project.mkdir()
    monkeypatch.chdir(project)
    for name in [
        name for name in os.environ if name.startswith(("AMUX_", "ANTHROPIC", "CLAUDE", "OPENAI", "CI", "GIT"))
    ]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("TZ", "UTC")
    monkeypatch.setenv("AGENT_MUX_CONFIG_DIR", str(home / ".agent-mux"))
    assert amux("profiles", "set", "careful", "approvalMode=deny", "maxModelCalls=5").code == 0
    assert amux("hooks", "add", "notes", "builtin", "log").code == 0
    return home


def compare(name: str, text: str) -> None:
    path = SNAPSHOTS / f"{name}.txt"
    if UPDATES:
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, "utf-8")
    assert path.read_text("utf-8") == text


def shown(words: list[str], done: Done, home: Path) -> str:
    """As on a screen, without what is of this machine."""
    out, err = (_neutral(part, home) for part in (done.out, done.err))
    parts = [
        f"$ amux {' '.join(words)}",
        *([out.rstrip("\n")] if out else []),
        *([f"[2] {err.rstrip()}"] if err else []),
    ]
    return "\n".join([*parts, *([f"[exit {done.code}]"] if done.code else [])]) + "\n\n"


def _neutral(text: str, home: Path) -> str:
    for own, neutral in ((str(home), "~"), (str(Path(sys.executable).parent), "/opt/bin"), (__version__, "<version>")):
        text = text.replace(own, neutral)
    return re.sub(r"(?m)[ \t]+$", "", text.replace(platform.python_version(), "<version>"))


@pytest.mark.parametrize("name", OUTPUTS)
def test_output(amux: Amux, home: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    told = []
    for words in OUTPUTS[name]:
        done = amux(*words)
        assert "Traceback" not in done.err
        assert "not-a-real-key" not in done.out + done.err
        assert "\x1b" not in done.out + done.err
        told.append(shown(words, done, home))
    compare(name, "".join(told))


def commands(group: Any, *way: str) -> Iterator[tuple[str, ...]]:
    for name, inner in group.commands.items():
        yield (*way, name)
        if hasattr(inner, "commands"):
            yield from commands(inner, *way, name)


def test_help(amux: Amux, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")
    told = []
    for way in [(), *commands(command())]:
        done = amux(*way, "--help")
        assert (done.code, done.err) == (0, ""), way
        told.append(shown([*way, "--help"], done, Path("/nowhere")))
    compare("help", "".join(told))
