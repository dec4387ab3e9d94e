"""Answers to an agent that runs `amux` as its hook, including failures."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.unit.agents.hooks.conftest import Handler

from agent_mux import AgentMuxError
from agent_mux.agents.hooks.client import Hooks
from agent_mux.agents.hooks.native_calls import answer_native_call, has_no_handlers, native_hook_call
from agent_mux.sdk.hooks import CALLED_FROM_EVENTS, HookResponse

POLICY = '[[rules]]\ndecision = "deny"\ncommands = ["git push"]\nreason = "nothing leaves"\n'


def hook_input(directory: Path, command: str = "git push", **more: Any) -> bytes:
    given = {"cwd": str(directory), "tool_name": "Bash", "tool_input": {"command": command}, **more}
    return json.dumps(given).encode()


def answer(stdin: bytes, kind: str = "pre_tool_use", environ: dict[str, str] | None = None) -> HookResponse:
    return answer_native_call(native_hook_call("claude", kind, environ or {}), stdin)


def denied(got: HookResponse) -> str | None:
    plain = json.loads(got.stdout or "{}").get("hookSpecificOutput", {})
    return plain.get("permissionDecisionReason") if plain.get("permissionDecision") == "deny" else None


@pytest.fixture
def guard(own: Path) -> Hooks:
    (own / "rules.toml").write_text(POLICY)
    hooks = Hooks()
    hooks.add(id="guard", handler="builtin", target="policy:rules.toml")
    return hooks


def test_policy_answers_the_agent(guard: Hooks, tmp_path: Path) -> None:
    assert denied(answer(hook_input(tmp_path))) == "nothing leaves"
    assert answer(hook_input(tmp_path, "ls")) == HookResponse()
    assert answer(hook_input(tmp_path), "post_tool_use") == HookResponse()


def test_alias_of_the_agent_is_accepted(guard: Hooks, tmp_path: Path) -> None:
    assert native_hook_call("claude-code", "stop", {}).agent == "claude"


def test_project_of_the_working_directory_is_used(tmp_path: Path) -> None:
    (tmp_path / "project" / "src").mkdir(parents=True)
    (tmp_path / "rules.toml").write_text(POLICY)
    Hooks(directory=tmp_path / "project").add(
        "project", id="guard", handler="builtin", target=f"policy:{tmp_path / 'rules.toml'}"
    )
    assert denied(answer(hook_input(tmp_path / "project" / "src"))) == "nothing leaves"
    assert denied(answer(hook_input(tmp_path))) is None


def test_untrusted_project_hooks_are_not_called(guard: Hooks, tmp_path: Path) -> None:
    (tmp_path / ".agent-mux").mkdir()
    (tmp_path / ".agent-mux" / "hooks.json").write_text(
        '{"hooks": [{"id": "guard", "enabled": false, "handler": "builtin", "target": "log"}]}'
    )
    got = answer(hook_input(tmp_path))
    assert denied(got) == "nothing leaves"
    assert "are not trusted" in got.stderr


@pytest.mark.parametrize("stdin", [b"", b"nonsense", b"[1]", b"\xff\xfe", b'"x"', b"[" * 100_000])
def test_invalid_input_is_denied_by_a_policy_only(guard: Hooks, stdin: bytes) -> None:
    got = answer(stdin)
    assert denied(got) == "the input of the claude hook is not a JSON object"
    assert (answer(stdin, "stop").stdout, answer(stdin, "stop").exit_code) == ("", 0)
    guard.disable("guard")
    got = answer(stdin)
    assert (got.stdout, got.exit_code) == ("", 0)
    assert got.stderr == "warning: the input of the claude hook is not a JSON object\n"


def test_unreadable_registrations_deny(own: Path, tmp_path: Path) -> None:
    (own / "hooks.json").write_text("{")
    assert "hooks.json cannot be used" in (denied(answer(hook_input(tmp_path))) or "")
    got = answer(hook_input(tmp_path), "stop")
    assert (got.stdout, got.exit_code) == ("", 0)
    assert "hooks.json cannot be used" in got.stderr


def test_failing_handler_does_not_deny_and_is_reported(tmp_path: Path, program: Handler) -> None:
    Hooks().add(id="mine", handler="command", target=list(program("sys.exit(1)")))
    got = answer(hook_input(tmp_path))
    assert (got.stdout, got.exit_code) == ("", 0)
    assert got.stderr == "warning: the hook 'mine' failed: exit code 1\n"


def test_warnings_are_redacted_and_on_one_line(tmp_path: Path, program: Handler) -> None:
    key = "sk-ant-api03-" + "Ab1" * 30
    Hooks().add(id="mine", handler="command", target=list(program(f"sys.exit('a\\n{key}')")))
    got = answer(hook_input(tmp_path))
    assert key not in got.stderr
    assert got.stderr.count("\n") == 1


def test_hooks_called_by_the_run_are_not_called_again(guard: Hooks, tmp_path: Path) -> None:
    assert answer(hook_input(tmp_path), environ={CALLED_FROM_EVENTS: "claude:stop,pre_tool_use"}) == HookResponse()
    assert denied(answer(hook_input(tmp_path), environ={CALLED_FROM_EVENTS: "claude:stop"})) == "nothing leaves"


def test_nested_agent_calls_its_hooks(guard: Hooks, tmp_path: Path) -> None:
    guard.install("copilot", program=["amux"])
    for environ in ({CALLED_FROM_EVENTS: "codex:stop,pre_tool_use"}, {"COPILOT_CLI": "1", "CLAUDECODE": "1"}):
        assert denied(answer(hook_input(tmp_path), environ=environ)) == "nothing leaves"


def test_agent_that_reads_another_agents_files_is_named(guard: Hooks, own: Path, tmp_path: Path) -> None:
    guard.add(id="log", handler="builtin", target="log")
    as_copilot = {"COPILOT_CLI": "1"}
    assert denied(answer(hook_input(tmp_path), environ=as_copilot)) == "nothing leaves"
    assert json.loads((own / "hooks.log.jsonl").read_text())["agent"] == "copilot"
    in_a_run = {**as_copilot, CALLED_FROM_EVENTS: "copilot:pre_tool_use"}
    assert answer(hook_input(tmp_path), environ=in_a_run) == HookResponse()
    guard.install("copilot", program=["amux"])
    assert answer(hook_input(tmp_path), environ=as_copilot) == HookResponse()


def test_has_no_handlers(guard: Hooks, own: Path, tmp_path: Path) -> None:
    assert not has_no_handlers("claude", "stop", hook_input(tmp_path))
    guard.disable("guard")
    assert has_no_handlers("claude", "stop", hook_input(tmp_path))
    assert not has_no_handlers("claude", "stopp", hook_input(tmp_path))
    guard.add(id="other", agent="pi", handler="builtin", target="log")
    assert has_no_handlers("claude", "stop", hook_input(tmp_path))
    (own / "hooks.json").write_text("{")
    assert not has_no_handlers("claude", "stop", hook_input(tmp_path))


@pytest.mark.parametrize(
    ("agent", "kind", "code"),
    [("clade", "stop", "AGENT_NOT_FOUND"), ("pi", "stop", "CAPABILITY_ERROR"), ("claude", "x", "VALIDATION_ERROR")],
)
def test_unknown_agents_and_hooks_are_rejected(agent: str, kind: str, code: str) -> None:
    with pytest.raises(AgentMuxError) as caught:
        native_hook_call(agent, kind, {})
    assert caught.value.code == code
