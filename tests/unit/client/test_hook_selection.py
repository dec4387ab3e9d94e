"""Which hooks a run calls itself, and which ones it leaves to its agent."""

import sys
from pathlib import Path

import pytest

from agent_mux import RunOptions
from agent_mux.agents.hooks.client import Hooks
from agent_mux.client.hook_selection import select_hooks
from agent_mux.run.plan import plan_run
from agent_mux.sdk.registry import AdapterRegistry


def test_run_answers_permission_requests_itself_where_the_agent_calls_installed_hooks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = tmp_path / "own"
    own.mkdir()
    monkeypatch.setenv("HOME", str(tmp_path))
    hooks = Hooks(own=own, directory=tmp_path)
    hooks.add(id="log", handler="builtin", target="log:log.jsonl")
    hooks.install("claude", program=[sys.executable])
    options = RunOptions(
        agent="claude", prompt="x", cwd=str(tmp_path), inherit_env=False,
        env={"HOME": str(tmp_path), "AMUX_CLAUDE_EXECUTABLE": sys.executable},
    )  # fmt: skip
    selected = select_hooks(plan_run(options, AdapterRegistry().get, None), own)
    assert selected is not None
    assert selected.types == {"permission_request"}
