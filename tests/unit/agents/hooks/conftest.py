"""Temporary homes, and programs that serve as handlers."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agent_mux.agents.hooks.registrations import Registration, registration_from
from agent_mux.sdk.hooks import HookCall

Handler = Callable[[str], tuple[str, ...]]


@pytest.fixture(autouse=True)
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the global directory in a temporary home."""
    home = tmp_path / "home"
    (home / ".agent-mux").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("AGENT_MUX_CONFIG_DIR", raising=False)
    monkeypatch.delenv("AGENT_MUX_PROJECT_DIR", raising=False)
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "COPILOT_HOME", "HERMES_HOME", "GEMINI_CLI_HOME", "COPILOT_CLI"):
        monkeypatch.delenv(name, raising=False)
    return home / ".agent-mux"


@pytest.fixture
def program(tmp_path: Path) -> Handler:
    """Return a function that writes a Python program and returns the command that starts it."""
    made: list[Path] = []

    def make(body: str) -> tuple[str, ...]:
        path = tmp_path / f"handler{len(made)}.py"
        made.append(path)
        path.write_text(f"import json, os, sys, time\n{body}\n")
        return (sys.executable, str(path))

    return make


def registered(name: str = "one", **fields: Any) -> Registration:
    """Return a registration as read from a file."""
    plain = {"id": name, **fields}
    if isinstance(plain.get("target"), tuple):
        plain["target"] = list(plain["target"])
    return registration_from(plain, "hooks[0]", Path("/nowhere/hooks.json"))


def printing(program: Handler, **decision: Any) -> dict[str, Any]:
    """Return the fields of a command handler that prints a decision."""
    return {"handler": "command", "target": program(f"print({json.dumps(decision)!r})")}


def call(**fields: Any) -> HookCall:
    """Return the call of a hook before a command is run."""
    given = {"command": "git push", "tool_input": {"command": "git push"}, "tool_name": "Bash", **fields}
    return HookCall(**{"agent": "claude", "hook_type": "pre_tool_use", **given})
