"""Hooks with real agents: native hooks, which the agent calls, and hooks that a run calls."""

import json
import os
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from subprocess import DEVNULL
from typing import Any

import anyio
import pytest
from tests.e2e.harness import BOUND, PROMPT, LiveAgent, finish
from tests.e2e.ways import ALL_AGENTS, CORE

import agent_mux
import agent_mux_adapters
from agent_mux import AgentMux
from agent_mux.agents.hooks.client import Hooks
from agent_mux_testing.live import Say, Shell

pytestmark = pytest.mark.anyio
REASON = "this file is protected"
RULES = f'[[rules]]\ndecision = "deny"\ncommands = ["touch denied"]\nreason = "{REASON}"\n'
BARE_CLI_FLAGS = {
    "claude": ("--allowedTools=Bash",),
    "codex": ("--dangerously-bypass-hook-trust", "--dangerously-bypass-approvals-and-sandbox"),
}
"""Flags with which the bare CLI runs commands without approval and calls untrusted hooks."""


@pytest.fixture
def registered(live: LiveAgent) -> Hooks:
    """Register a policy hook and a log hook."""
    live.config_directory = live.home / ".agent-mux"
    live.config_directory.mkdir(parents=True)
    (live.config_directory / "rules.toml").write_text(RULES)
    hooks = Hooks(own=live.config_directory, directory=live.workspace)
    hooks.add(id="guard", handler="builtin", target="policy:rules.toml")
    hooks.add(id="log", handler="builtin", target="log:log.jsonl")
    return hooks


def installed(live: LiveAgent, hooks: Hooks, monkeypatch: pytest.MonkeyPatch) -> Mapping[str, str]:
    """Install the hooks in the agent, with the `amux` of this checkout. Return the agent's environment."""
    environment = live.launch.environment
    for name, value in environment.items():  # it determines the agent's directories
        monkeypatch.setenv(name, value)
    hooks.install(live.agent, program=[str(_amux(live.home.parent / "amux"))])
    return environment


def _amux(path: Path) -> Path:
    packages = [str(Path(str(package.__file__)).parents[1]) for package in (agent_mux, agent_mux_adapters)]
    search = shlex.quote(os.pathsep.join(packages))
    path.write_text(f'#!/bin/sh\nPYTHONPATH={search} exec {shlex.quote(sys.executable)} -m agent_mux.cli.main "$@"\n')
    path.chmod(0o755)
    return path


def logged(live: LiveAgent) -> list[dict[str, Any]]:
    """Return the entries of the log hook."""
    return [json.loads(line) for line in (live.config_directory / "log.jsonl").read_text().splitlines()]


@CORE
@ALL_AGENTS
async def test_hook_denies_a_command(live: LiveAgent, registered: Hooks, monkeypatch: pytest.MonkeyPatch) -> None:
    live.script(live.answer(Shell("touch denied", asks=True)), live.answer(Say("Done.")))
    native = live.adapter.installation().hooks
    calls_itself = native is not None and bool(native.runs)
    options = live.options()  # mode yolo; this writes the agent's configuration
    if calls_itself:
        installed(live, registered, monkeypatch)
    with anyio.fail_after(live.kit.patience):
        async with AgentMux(config_dir=live.config_directory) as mux:
            run = mux.run(options)
            await run
    done = await finish(run)
    assert done.result.exit_reason == "completed"
    assert not live.file("denied").exists()
    assert REASON in done.one("tool_error").error or not calls_itself
    assert live.model.received(REASON) or not calls_itself
    assert [event.reason for event in done.all("approval_denied")] == ([] if calls_itself else [REASON])
    entries = logged(live)
    assert [entry["hookType"] for entry in entries if entry["hookType"] in {"pre_tool_use", "session_end"}] == [
        "pre_tool_use",
        "session_end",
    ]
    assert {entry["agent"] for entry in entries} == {live.agent}


async def test_hook_of_the_bare_cli_denies_a_command(
    live: LiveAgent, registered: Hooks, monkeypatch: pytest.MonkeyPatch
) -> None:
    live.script(live.answer(Shell("touch allowed")), live.answer(Shell("touch denied")), live.answer(Say("Done.")))
    environment = installed(live, registered, monkeypatch)
    assert live.kit.once is not None
    command = [str(live.provisioned.program), *live.kit.once, *BARE_CLI_FLAGS[live.agent], PROMPT]
    with anyio.fail_after(BOUND):
        await anyio.run_process(command, cwd=live.workspace, env=environment, stdin=DEVNULL)
    assert live.file("allowed").exists()
    assert not live.file("denied").exists()
    assert live.model.received(REASON)
    assert [entry["command"] for entry in logged(live) if entry["hookType"] == "pre_tool_use"] == [
        "touch allowed",
        "touch denied",
    ]


@ALL_AGENTS
async def test_hooks_receive_the_events_of_a_run(live: LiveAgent, registered: Hooks) -> None:
    live.script(live.answer(Shell("touch allowed")), live.answer(Say("As you like.")))
    registered.remove("guard")  # the log hook decides nothing
    done = await live.run()
    assert done.result.exit_reason == "completed"
    assert live.file("allowed").exists()
    assert done.types("approval_request", "approval_granted") == []
    entries = logged(live)
    kinds = [entry["hookType"] for entry in entries]
    assert sorted(kinds) == sorted(
        ["session_start", "prompt_submit", "pre_tool_use", "post_tool_use", "stop", "session_end"]
    )
    assert kinds.index("pre_tool_use") < kinds.index("post_tool_use") < kinds.index("stop") < len(kinds) - 1
    by_kind = {entry["hookType"]: entry for entry in entries}
    assert by_kind["prompt_submit"]["prompt"] == PROMPT
    assert "As you like." in by_kind["stop"]["message"]
    assert "touch allowed" in json.dumps(by_kind["pre_tool_use"]["toolInput"])
