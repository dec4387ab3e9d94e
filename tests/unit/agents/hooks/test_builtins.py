"""The built-in handlers."""

import json
import stat
from pathlib import Path

import pytest
from tests.unit.agents.hooks.conftest import call, registered

from agent_mux.agents.hooks.dispatch import dispatch_call
from agent_mux.sdk.hooks import HookDecision

POLICY = """
[[rules]]
decision = "deny"
commands = ["git push"]
reason = "nothing leaves"

[[rules]]
decision = "allow"
tools = ["Read"]

[[rules]]
decision = "ask"
paths = ["secret.txt"]

[[rules]]
decision = "deny"
risk = ["high"]
"""


def test_log_has_a_line_per_call(own: Path) -> None:
    one = registered(handler="builtin", target="log")
    for kind in ("pre_tool_use", "stop"):
        assert dispatch_call(call(hook_type=kind), [one]).decision == HookDecision()
    path = own / "hooks.log.jsonl"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [line["hookType"] for line in lines] == ["pre_tool_use", "stop"]
    assert lines[0]["toolInput"] == {"command": "git push"}


def test_log_hides_secrets_and_cuts_long_texts(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "log.jsonl"
    key = "sk-ant-api03-" + "Ab1" * 30
    given = {"command": f"curl -H 'x: {key}'", "env": {"API_KEY": "hunter22"}, "text": "x" * 100_000}
    dispatch_call(call(tool_input=given, prompt=key), [registered(handler="builtin", target=f"log:{path}")])
    text = path.read_text()
    assert key not in text
    assert "hunter22" not in text
    assert len(text) < 10_000
    assert json.loads(text)["toolInput"]["env"].keys() == {"API_KEY"}


def test_unwritable_log_gives_a_warning(tmp_path: Path) -> None:
    outcome = dispatch_call(call(), [registered(handler="builtin", target=f"log:{tmp_path}")])
    assert f"cannot write {tmp_path}" in outcome.warnings[0]


def test_trace_has_attributes(own: Path) -> None:
    dispatch_call(call(session_id="s"), [registered(handler="builtin", target="trace")])
    line = json.loads((own / "hooks.trace.jsonl").read_text())
    assert line["name"] == "hook pre_tool_use"
    assert line["attributes"]["agent_mux.session.id"] == "s"
    assert line["attributes"]["gen_ai.tool.name"] == "Bash"


@pytest.mark.parametrize(
    ("fields", "behavior"),
    [
        ({}, "deny"),
        ({"hook_type": "permission_request"}, "deny"),
        ({"hook_type": "post_tool_use"}, None),
        ({"command": "ls"}, None),
        ({"command": None, "tool_name": "Read"}, "allow"),
        ({"command": "cat secret.txt", "cwd": "/home/dev"}, "ask"),
        ({"command": "sudo reboot"}, "deny"),
        ({"command": None, "tool_name": "Write", "paths": ("secret.txt",), "cwd": "/home/dev"}, "ask"),
    ],
)
def test_policy_decides_by_its_rules(tmp_path: Path, fields: dict[str, object], behavior: str | None) -> None:
    (tmp_path / "rules.toml").write_text(POLICY)
    outcome = dispatch_call(call(**fields), [registered(handler="builtin", target=f"policy:{tmp_path / 'rules.toml'}")])
    assert outcome.decision.behavior == behavior


def test_default_deny_applies_without_matching_rule(tmp_path: Path) -> None:
    (tmp_path / "rules.toml").write_text('default = "deny"\n')
    one = registered(handler="builtin", target=f"policy:{tmp_path / 'rules.toml'}")
    assert dispatch_call(call(), [one]).decision.behavior == "deny"
    (tmp_path / "rules.toml").write_text('default = "allow"\n')
    assert dispatch_call(call(), [one]).decision.behavior is None


@pytest.mark.parametrize("text", [None, "rules = 3", "not toml ["])
def test_unreadable_policy_denies_guarded_hooks_only(tmp_path: Path, text: str | None) -> None:
    path = tmp_path / "rules.toml"
    if text is not None:
        path.write_text(text)
    one = registered("guard", handler="builtin", target=f"policy:{path}")
    outcome = dispatch_call(call(), [one])
    assert outcome.decision.behavior == "deny"
    assert "the hook 'guard' failed" in (outcome.decision.reason or "")
    assert dispatch_call(call(hook_type="stop"), [one]).decision == HookDecision()


def test_invalid_path_is_denied(tmp_path: Path) -> None:
    (tmp_path / "rules.toml").write_text('[[rules]]\ndecision = "allow"\npaths = ["**"]\n')
    one = registered(handler="builtin", target=f"policy:{tmp_path / 'rules.toml'}")
    assert dispatch_call(call(command=None, paths=("a\0b",)), [one]).decision.behavior == "deny"
