"""Hooks that are called from the events of a run. Every wait is bounded."""

import json
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.process.checked_runs import run_to_end, types, watch
from tests.process.scripted import MakeClient

from agent_mux import AgentMuxError, Approve, CapabilityError, Policy, Rule

pytestmark = pytest.mark.anyio

ASKS = "read(); emit(session='S'); emit(ask='git push'); emit(text=read()['answer']); emit(done=True); drain()"
WORKS = "read(); emit(session='S'); emit(ran='git push'); emit(text='yes'); emit(done=True); drain()"
POLICY = '[[rules]]\ndecision = "deny"\ncommands = ["git push"]\nreason = "nothing leaves"\n'


@pytest.fixture(autouse=True)
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the global configuration directory of the client."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("AGENT_MUX_PROJECT_DIR", raising=False)
    directory = tmp_path / "config"
    directory.mkdir()
    (directory / "rules.toml").write_text(POLICY)
    return directory


def register(config: Path, *registrations: dict[str, Any]) -> None:
    named = [{"id": str(at), **one} for at, one in enumerate(registrations)]
    (config / "hooks.json").write_text(json.dumps({"hooks": named}))


def deciding(**decision: Any) -> dict[str, Any]:
    return {"handler": "command", "target": [sys.executable, "-c", f"print({json.dumps(decision)!r})"]}


GUARD = {"handler": "builtin", "target": "policy:rules.toml"}
LOG = {"handler": "builtin", "target": "log:log.jsonl"}


def logged(config: Path) -> list[dict[str, Any]]:
    path = config / "log.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def warnings(events: list[Any]) -> list[str]:
    return [event.message for event in events if event.type == "debug" and event.level == "warn"]


@pytest.mark.parametrize("mode", ["prompt", "yolo", "deny"])
async def test_denying_hook_denies_in_every_mode(make_client: MakeClient, config: Path, mode: Any) -> None:
    register(config, GUARD)
    events, result = await run_to_end(make_client, ASKS, approval_mode=mode)
    assert result.text == "no"
    (denied,) = [event for event in events if event.type == "approval_denied"]
    assert denied.reason == ("nothing leaves" if mode != "deny" else "denied: this run has approval mode deny")


@pytest.mark.parametrize("hook_type", ["pre_tool_use", "permission_request", "*"])
@pytest.mark.parametrize("registration", [GUARD, deciding(behavior="deny", reason="nothing leaves")])
async def test_pre_tool_use_and_permission_request_hooks_can_deny(
    make_client: MakeClient, config: Path, hook_type: str, registration: dict[str, Any]
) -> None:
    register(config, {**registration, "hookType": hook_type})
    events, result = await run_to_end(make_client, ASKS, approval_mode="yolo")
    assert result.text == "no"
    assert [event.reason for event in events if event.type == "approval_denied"] == ["nothing leaves"]


async def test_denying_hook_overrides_the_policy_of_the_run(make_client: MakeClient, config: Path) -> None:
    register(config, GUARD)
    policy = Policy(rules=(Rule(decision="allow", commands=("git push",)),))
    _, result = await run_to_end(make_client, ASKS, policy=policy)
    assert result.text == "no"


async def test_denying_policy_overrides_an_allowing_hook(make_client: MakeClient, config: Path) -> None:
    register(config, deciding(behavior="allow"))
    policy = Policy(rules=(Rule(decision="deny", commands=("git push",)),))
    _, result = await run_to_end(make_client, ASKS, policy=policy)
    assert result.text == "no"


async def test_allowing_hook_answers_the_request(make_client: MakeClient, config: Path) -> None:
    register(config, deciding(behavior="allow"))
    _, result = await run_to_end(make_client, ASKS, approval_mode="prompt")
    assert result.text == "yes"


async def test_undecided_request_is_left_to_the_mode_and_the_callback(make_client: MakeClient, config: Path) -> None:
    register(config, deciding())
    _, result = await run_to_end(make_client, ASKS, approval_mode="yolo")
    assert result.text == "yes"
    _, result = await run_to_end(make_client, ASKS, on_approval_request=lambda _: Approve())
    assert result.text == "yes"


async def test_permission_hook_receives_the_input_and_the_diff(make_client: MakeClient, config: Path) -> None:
    register(config, {**LOG, "hookType": "permission_request"})
    edit = {"path": "a.txt", "old_string": "x", "new_string": "y"}
    body = f"read(); emit(session='S'); emit(edit={edit!r}); emit(text=read()['answer']); emit(done=True); drain()"
    _, result = await run_to_end(make_client, body, approval_mode="yolo")
    assert result.text == "yes"
    (call,) = logged(config)
    assert (call["toolName"], call["toolInput"], call["paths"]) == ("Edit", edit, ["a.txt"])
    assert call["diff"].endswith("-x\n+y\n")


async def test_modified_input_denies_the_request(make_client: MakeClient, config: Path) -> None:
    register(config, deciding(modifiedInput={"command": "ls"}))
    _, result = await run_to_end(make_client, ASKS, approval_mode="yolo")
    assert result.text == "no"


async def test_unreadable_policy_denies(make_client: MakeClient, config: Path) -> None:
    register(config, GUARD)
    (config / "rules.toml").unlink()
    _, result = await run_to_end(make_client, ASKS, approval_mode="yolo")
    assert result.text == "no"


async def test_failing_handler_allows_and_emits_a_warning(make_client: MakeClient, config: Path) -> None:
    register(
        config,
        {"handler": "command", "target": [sys.executable, "-c", "raise SystemExit(3)"], "hookType": "pre_tool_use"},
    )
    events, result = await run_to_end(make_client, ASKS, approval_mode="yolo")
    assert result.text == "yes"
    assert warnings(events) == ["the hook '0' failed: exit code 3"]


async def test_denied_tool_used_without_asking_emits_a_warning(make_client: MakeClient, config: Path) -> None:
    register(
        config,
        {**deciding(behavior="deny", reason="why"), "hookType": "pre_tool_use"},
        {**LOG, "hookType": "post_tool_use"},
    )
    log = str(config / "log.jsonl")
    waits = f"while not os.path.exists({log!r}): time.sleep(0.01)"  # the run lasts until the warning is emitted
    body = f"read(); emit(session='S'); emit(ran='git push')\n{waits}\nemit(done=True); drain()"
    events, _ = await run_to_end(make_client, body, approval_mode="yolo")
    assert warnings(events) == ["the agent used Shell without asking, though a hook denies it: why"]


async def test_observing_hook_receives_everything_and_changes_nothing(make_client: MakeClient, config: Path) -> None:
    register(config, LOG)
    events, _ = await run_to_end(make_client, WORKS, approval_mode="yolo")
    assert types(events, "approval_request", "approval_granted") == []
    entries = logged(config)
    kinds = [entry["hookType"] for entry in entries]
    assert sorted(kinds) == sorted(
        ["session_start", "prompt_submit", "pre_tool_use", "post_tool_use", "stop", "session_end"]
    )
    assert kinds.index("pre_tool_use") < kinds.index("post_tool_use")
    assert kinds[-2:] == ["stop", "session_end"]
    by_kind = {entry["hookType"]: entry for entry in entries}
    assert by_kind["prompt_submit"]["prompt"] == "hi"
    assert by_kind["stop"]["message"] == "yes"
    assert {entry["sessionId"] for entry in entries} == {"S"}


@pytest.mark.parametrize("fields", [{"hooks": False}, {}])
async def test_disabled_or_unrelated_hooks_are_not_called(
    make_client: MakeClient, config: Path, fields: dict[str, Any]
) -> None:
    register(config, *([GUARD, LOG] if fields else [{**GUARD, "enabled": False}, {**GUARD, "agent": "other"}]))
    _, result = await run_to_end(make_client, ASKS, approval_mode="yolo", **fields)
    assert result.text == "yes"
    assert logged(config) == []


async def test_untrusted_project_hooks_are_not_called(make_client: MakeClient, config: Path, tmp_path: Path) -> None:
    register(config, LOG)
    project = tmp_path / "project"
    (project / ".agent-mux").mkdir(parents=True)
    (project / ".agent-mux" / "hooks.json").write_text(
        '{"hooks": [{"id": "0", "enabled": false, "handler": "builtin", "target": "log"}]}'
    )
    events, _ = await run_to_end(make_client, WORKS, cwd=project)
    assert "are not trusted and are not called" in warnings(events)[0]
    assert logged(config) != []


async def test_unreadable_registrations_prevent_the_start(make_client: MakeClient, config: Path) -> None:
    (config / "hooks.json").write_text("{")
    async with make_client(WORKS) as mux:
        with pytest.raises(AgentMuxError) as caught:
            mux.run(prompt="hi")
        assert caught.value.code == "CONFIG_ERROR"


async def test_policy_hook_requires_an_agent_that_asks(make_client: MakeClient, config: Path) -> None:
    register(config, GUARD)
    async with make_client(WORKS, approval_modes=("yolo",)) as mux:
        with pytest.raises(CapabilityError, match="--no-hooks"):
            mux.run(prompt="hi", approval_mode="yolo")


async def test_slow_hook_delays_later_hooks_but_not_the_run(
    make_client: MakeClient, config: Path, tmp_path: Path
) -> None:
    waits = f"import os, time\nwhile not os.path.exists({str(tmp_path / 'go')!r}): time.sleep(0.01)"
    register(config, {"handler": "command", "target": [sys.executable, "-c", waits], "hookType": "session_start"}, LOG)
    with anyio.fail_after(20):
        async with make_client(WORKS) as mux:
            result = await mux.run(prompt="hi")
            assert result.exit_reason == "completed"
            assert "stop" not in {entry["hookType"] for entry in logged(config)}
            (tmp_path / "go").touch()
    assert len(logged(config)) == 6  # all hooks were called, after the end of the run


async def test_hooks_from_events_are_listed_in_the_environment(make_client: MakeClient, config: Path) -> None:
    register(config, LOG)
    body = "read(); emit(session='S'); emit(text=os.environ['AGENT_MUX_HOOKS_FROM_EVENTS']); emit(done=True); drain()"
    _, result = await run_to_end(make_client, body)
    agent, _, types = (result.text or "").partition(":")
    assert agent == "scripted"
    assert "pre_tool_use" in types.split(",")


# -- after a fallback


@pytest.mark.parametrize("agent", ["other", "*"])
async def test_hooks_of_the_fallback_decide_about_its_actions(
    make_client: MakeClient, config: Path, agent: str
) -> None:
    register(config, {**GUARD, "agent": agent}, {**LOG, "agent": agent, "hookType": "stop"})
    refused = "read(); emit(session='A'); emit(failed='RATE_LIMITED'); drain()"
    with anyio.fail_after(20):
        async with make_client(refused, others={"other": ASKS}) as mux:
            _, result = await watch(mux.run(prompt="hi", fallback=["other"], approval_mode="yolo"))
    assert (result.agent, result.text) == ("other", "no")
    assert [call["agent"] for call in logged(config)] == (["other"] if agent == "other" else ["scripted", "other"])


async def test_hooks_of_the_first_agent_are_not_called_after_a_fallback(make_client: MakeClient, config: Path) -> None:
    register(config, {**GUARD, "agent": "scripted"})
    refused = "read(); emit(session='A'); emit(failed='RATE_LIMITED'); drain()"
    with anyio.fail_after(20):
        async with make_client(refused, others={"other": ASKS}) as mux:
            _, result = await watch(mux.run(prompt="hi", fallback=["other"], approval_mode="yolo"))
    assert (result.agent, result.text) == ("other", "yes")
