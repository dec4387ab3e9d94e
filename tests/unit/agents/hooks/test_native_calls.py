"""An agent calls us: what it hears, whatever goes wrong."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.unit.agents.hooks.conftest import Handler

from agent_mux import AgentMuxError
from agent_mux.agents.hooks.client import Hooks
from agent_mux.agents.hooks.native_calls import answer_native_call, has_no_handlers, native_hook_call
from agent_mux.sdk.hooks import CALLED_FROM_EVENTS, HookAnswer

POLICY = '[[rules]]\ndecision = "deny"\ncommands = ["git push"]\nreason = "nothing leaves"\n'


def said(directory: Path, command: str = "git push", **more: Any) -> bytes:
    given = {"cwd": str(directory), "tool_name": "Bash", "tool_input": {"command": command}, **more}
    return json.dumps(given).encode()


def answer(stdin: bytes, kind: str = "pre_tool_use", environ: dict[str, str] | None = None) -> HookAnswer:
    return answer_native_call(native_hook_call("claude", kind, environ or {}), stdin)


def denied(got: HookAnswer) -> str | None:
    plain = json.loads(got.stdout or "{}").get("hookSpecificOutput", {})
    return plain.get("permissionDecisionReason") if plain.get("permissionDecision") == "deny" else None


@pytest.fixture
def guard(own: Path) -> Hooks:
    (own / "rules.toml").write_text(POLICY)
    hooks = Hooks()
    hooks.add(id="guard", handler="builtin", target="policy:rules.toml")
    return hooks


def test_a_policy_answers(guard: Hooks, tmp_path: Path) -> None:
    assert denied(answer(said(tmp_path))) == "nothing leaves"
    assert answer(said(tmp_path, "ls")) == HookAnswer()
    assert answer(said(tmp_path), "post_tool_use") == HookAnswer()


def test_the_agent_may_be_told_by_an_alias(guard: Hooks, tmp_path: Path) -> None:
    assert native_hook_call("claude-code", "stop", {}).agent == "claude"


def test_the_hooks_of_a_project_count_where_the_agent_works(tmp_path: Path) -> None:
    (tmp_path / "project" / "src").mkdir(parents=True)
    (tmp_path / "rules.toml").write_text(POLICY)
    Hooks(directory=tmp_path / "project").add(
        "project", id="guard", handler="builtin", target=f"policy:{tmp_path / 'rules.toml'}"
    )
    assert denied(answer(said(tmp_path / "project" / "src"))) == "nothing leaves"
    assert denied(answer(said(tmp_path))) is None


def test_hooks_of_a_project_that_nobody_trusts_are_not_called(guard: Hooks, tmp_path: Path) -> None:
    (tmp_path / ".agent-mux").mkdir()
    (tmp_path / ".agent-mux" / "hooks.json").write_text(
        '{"hooks": [{"id": "guard", "enabled": false, "handler": "builtin", "target": "log"}]}'
    )
    got = answer(said(tmp_path))
    assert denied(got) == "nothing leaves"
    assert "are not trusted" in got.stderr


@pytest.mark.parametrize("stdin", [b"", b"nonsense", b"[1]", b"\xff\xfe", b'"x"', b"[" * 100_000])
def test_what_the_agent_says_cannot_be_read(guard: Hooks, stdin: bytes) -> None:
    got = answer(stdin)
    assert denied(got) == "the input of the claude hook is not a JSON object"
    assert (answer(stdin, "stop").stdout, answer(stdin, "stop").exit_code) == ("", 0)
    guard.disable("guard")
    got = answer(stdin)
    assert (got.stdout, got.exit_code) == ("", 0)
    assert got.stderr == "warning: the input of the claude hook is not a JSON object\n"


def test_registrations_that_cannot_be_read_let_nothing_through(own: Path, tmp_path: Path) -> None:
    (own / "hooks.json").write_text("{")
    assert "hooks.json cannot be used" in (denied(answer(said(tmp_path))) or "")
    got = answer(said(tmp_path), "stop")
    assert (got.stdout, got.exit_code) == ("", 0)
    assert "hooks.json cannot be used" in got.stderr


def test_handlers_that_fail_let_through_and_are_told(tmp_path: Path, program: Handler) -> None:
    Hooks().add(id="mine", handler="command", target=list(program("sys.exit(1)")))
    got = answer(said(tmp_path))
    assert (got.stdout, got.exit_code) == ("", 0)
    assert got.stderr == "warning: the hook 'mine' failed: exit code 1\n"


def test_warnings_hide_secrets_and_are_one_line(tmp_path: Path, program: Handler) -> None:
    key = "sk-ant-api03-" + "Ab1" * 30
    Hooks().add(id="mine", handler="command", target=list(program(f"sys.exit('a\\n{key}')")))
    got = answer(said(tmp_path))
    assert key not in got.stderr
    assert got.stderr.count("\n") == 1


def test_a_run_that_calls_its_hooks_itself_is_not_told_twice(guard: Hooks, tmp_path: Path) -> None:
    assert answer(said(tmp_path), environ={CALLED_FROM_EVENTS: "claude:stop,pre_tool_use"}) == HookAnswer()
    assert denied(answer(said(tmp_path), environ={CALLED_FROM_EVENTS: "claude:stop"})) == "nothing leaves"


def test_an_agent_that_another_one_started_is_told(guard: Hooks, tmp_path: Path) -> None:
    guard.install("copilot", program=["amux"])
    for environ in ({CALLED_FROM_EVENTS: "codex:stop,pre_tool_use"}, {"COPILOT_CLI": "1", "CLAUDECODE": "1"}):
        assert denied(answer(said(tmp_path), environ=environ)) == "nothing leaves"


def test_another_agent_that_reads_the_same_files(guard: Hooks, own: Path, tmp_path: Path) -> None:
    guard.add(id="log", handler="builtin", target="log")
    as_copilot = {"COPILOT_CLI": "1"}
    assert denied(answer(said(tmp_path), environ=as_copilot)) == "nothing leaves"
    assert json.loads((own / "hooks.log.jsonl").read_text())["agent"] == "copilot"
    in_a_run = {**as_copilot, CALLED_FROM_EVENTS: "copilot:pre_tool_use"}
    assert answer(said(tmp_path), environ=in_a_run) == HookAnswer()
    guard.install("copilot", program=["amux"])
    assert answer(said(tmp_path), environ=as_copilot) == HookAnswer()


def test_nobody_is_registered(guard: Hooks, own: Path, tmp_path: Path) -> None:
    assert not has_no_handlers("claude", "stop", said(tmp_path))
    guard.disable("guard")
    assert has_no_handlers("claude", "stop", said(tmp_path))
    assert not has_no_handlers("claude", "stopp", said(tmp_path))
    guard.add(id="other", agent="pi", handler="builtin", target="log")
    assert has_no_handlers("claude", "stop", said(tmp_path))
    (own / "hooks.json").write_text("{")
    assert not has_no_handlers("claude", "stop", said(tmp_path))


@pytest.mark.parametrize(
    ("agent", "kind", "code"),
    [("clade", "stop", "AGENT_NOT_FOUND"), ("pi", "stop", "CAPABILITY_ERROR"), ("claude", "x", "VALIDATION_ERROR")],
)
def test_who_calls_is_known(agent: str, kind: str, code: str) -> None:
    with pytest.raises(AgentMuxError) as caught:
        native_hook_call(agent, kind, {})
    assert caught.value.code == code
