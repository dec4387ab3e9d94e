"""Native hooks: recorded calls, the answers to them, and entries in configuration files."""

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from agent_mux import AgentMuxError
from agent_mux.agents.hooks.client import Hooks
from agent_mux.agents.hooks.native_hooks import active_hook_types
from agent_mux.sdk.documents import open_document
from agent_mux.sdk.hooks import HOOK_TYPES, HookCall, HookDecision, NativeHooks
from agent_mux.sdk.registry import AdapterRegistry

REGISTRY = AdapterRegistry()
RECORDINGS = {path.parent.name: path for path in sorted(Path(__file__).parent.glob("*/hooks-*.jsonl"))}
NATIVE = [adapter.agent for adapter in REGISTRY if adapter.installation().hooks is not None]
PROGRAM = ["/opt/my tools/amux"]


def native(agent: str) -> NativeHooks:
    found = REGISTRY.get(agent).installation().hooks
    assert found is not None
    return found


def recorded(agent: str) -> list[HookCall]:
    _, *lines = map(json.loads, RECORDINGS[agent].read_text().splitlines())
    return [native(agent).read(line["type"], line["stdin"]) for line in lines]


def reply(agent: str, kind: Any, raw: dict[str, Any] | None = None, **decision: Any) -> Any:
    answer = native(agent).answer(HookCall(agent=agent, hook_type=kind, raw=raw or {}), HookDecision(**decision))
    assert (answer.exit_code, answer.stderr) == (0, "")
    return json.loads(answer.stdout) if answer.stdout else None


def test_agents_whose_hooks_run_have_a_recording() -> None:
    assert set(NATIVE) - set(RECORDINGS) == {"cursor"}  # documented only


@pytest.mark.parametrize("agent", RECORDINGS)
def test_recorded_hook_calls_are_parsed(agent: str) -> None:
    calls = recorded(agent)
    assert {call.agent for call in calls} == {agent}
    assert len({call.session_id for call in calls}) == 1
    assert calls[0].session_id
    assert {call.cwd for call in calls} == {"/home/dev/project"}
    kinds = [call.hook_type for call in calls]
    assert kinds[:2] == ["session_start", "prompt_submit"]
    assert kinds[-2:] == ["stop", "session_end"]
    assert calls[1].prompt == "do the thing"
    assert "Done." in (calls[-2].message or "") or agent == "copilot"  # it contains the reason, not the output
    tools = [call for call in calls if call.hook_type == "pre_tool_use"]
    assert [call.command for call in tools] == ["touch one && echo hello", "exit 3", None]
    assert [Path(path).name for path in tools[2].paths] == ["two.txt"]
    assert all(call.tool_name and call.tool_input for call in tools)
    done = [call for call in calls if call.hook_type == "post_tool_use"]
    assert len(done) == 3
    assert "hello" in json.dumps(done[0].tool_output)


@pytest.mark.parametrize("agent", NATIVE)
@pytest.mark.parametrize(
    "stdin", [{}, {"cwd": 3, "tool_input": [], "tool_name": {}, "extra": 1, "workspace_roots": [1]}]
)
def test_strange_input_is_read(agent: str, stdin: dict[str, Any]) -> None:
    hooks = native(agent)
    for kind in hooks.types:
        call = hooks.read(kind, stdin)
        assert (call.agent, call.hook_type, call.command, call.paths) == (agent, kind, None, ())
        for behavior in ("allow", "deny", "ask", None):
            decision = HookDecision(behavior=behavior, modified_input={"a": 1}, context="x")
            assert hooks.answer(call, decision).exit_code == 0


@pytest.mark.parametrize("agent", NATIVE)
def test_no_decision_is_an_empty_answer(agent: str) -> None:
    assert [reply(agent, kind) for kind in native(agent).types] == [None] * len(native(agent).types)


REFUSED = {"hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": "no"}
DENIED = {
    "claude": {"hookSpecificOutput": REFUSED},
    "codex": {"hookSpecificOutput": REFUSED},
    "copilot": {"permissionDecision": "deny", "permissionDecisionReason": "no"},
    "cursor": {"permission": "deny", "user_message": "no", "agent_message": "no"},
    "gemini": {"decision": "deny", "reason": "no"},
    "hermes": {"action": "block", "message": "no"},
}  # fmt: skip


@pytest.mark.parametrize("agent", NATIVE)
def test_a_tool_is_denied(agent: str) -> None:
    assert reply(agent, "pre_tool_use", behavior="deny", reason="no", modified_input={"a": 1}) == DENIED[agent]
    assert "pre_tool_use" in native(agent).decides


def test_answers_for_claude() -> None:
    tool = {"hookEventName": "PreToolUse", "permissionDecision": "allow", "updatedInput": {"a": 1}}
    output = reply("claude", "pre_tool_use", behavior="allow", modified_input={"a": 1}, context="x")
    assert output == {"hookSpecificOutput": {**tool, "additionalContext": "x"}}
    assert reply("claude", "pre_tool_use", modified_input={"a": 1}) == {
        "hookSpecificOutput": {"hookEventName": "PreToolUse", "updatedInput": {"a": 1}}
    }
    assert reply("claude", "permission_request", behavior="deny", reason="no") == {
        "hookSpecificOutput": {"hookEventName": "PermissionRequest", "decision": {"behavior": "deny", "message": "no"}}
    }
    assert reply("claude", "permission_request", behavior="ask") is None
    assert reply("claude", "prompt_submit", behavior="deny") == {
        "decision": "block", "reason": "denied by a hook of agent-mux",
    }  # fmt: skip
    assert reply("claude", "stop", behavior="deny", reason="go on") == {"decision": "block", "reason": "go on"}
    assert reply("claude", "stop", {"stop_hook_active": True}, behavior="deny") is None
    failed = reply("claude", "post_tool_use", {"hook_event_name": "PostToolUseFailure"}, context="x")
    assert failed["hookSpecificOutput"]["hookEventName"] == "PostToolUseFailure"
    assert reply("claude", "session_end", behavior="deny", context="x") is None


def test_answers_for_codex() -> None:
    assert reply("codex", "pre_tool_use", behavior="allow") is None
    assert reply("codex", "pre_tool_use", behavior="ask") is None
    output = reply("codex", "pre_tool_use", modified_input={"a": 1})["hookSpecificOutput"]
    assert (output["permissionDecision"], output["updatedInput"]) == ("allow", {"a": 1})
    output = reply("codex", "permission_request", behavior="allow")["hookSpecificOutput"]
    assert output["decision"] == {"behavior": "allow"}
    assert reply("codex", "permission_request", behavior="allow", modified_input={"a": 1}) is None


def test_answers_for_gemini() -> None:
    assert reply("gemini", "pre_tool_use", behavior="ask") is None
    assert reply("gemini", "pre_tool_use", modified_input={"a": 1}) == {
        "hookSpecificOutput": {"hookEventName": "BeforeTool", "tool_input": {"a": 1}}
    }
    assert reply("gemini", "session_end", behavior="deny") is None
    assert reply("gemini", "stop", {"stop_hook_active": True}, behavior="deny") is None


def test_answers_for_copilot() -> None:
    assert reply("copilot", "pre_tool_use", modified_input={"a": 1}) == {"modifiedArgs": {"a": 1}}
    assert reply("copilot", "permission_request", behavior="deny", reason="no") == {"behavior": "deny", "message": "no"}
    assert reply("copilot", "prompt_submit", behavior="deny", reason="no") == {"decision": "block", "reason": "no"}
    assert reply("copilot", "post_tool_use", context="x") == {"additionalContext": "x"}


def test_cursor_reads_its_own_hooks() -> None:
    call_input = {
        "hook_event_name": "beforeShellExecution",
        "conversation_id": "c",
        "workspace_roots": ["/w"],
        "command": "ls",
    }
    call = native("cursor").read("pre_tool_use", call_input)
    assert (call.session_id, call.cwd, call.tool_name, call.command) == ("c", "/w", "Shell", "ls")
    call_input = {"hook_event_name": "beforeMCPExecution", "tool_name": "t", "tool_input": '{"a": 1}'}
    assert native("cursor").read("pre_tool_use", call_input).tool_input == {"a": 1}
    call_input = {"hook_event_name": "beforeReadFile", "file_path": "/w/secret"}
    assert native("cursor").read("pre_tool_use", call_input).paths == ("/w/secret",)
    assert reply("cursor", "prompt_submit", behavior="deny", reason="no") == {"continue": False, "user_message": "no"}
    assert reply("cursor", "pre_tool_use", behavior="allow") == {"permission": "allow"}


def test_answers_for_hermes() -> None:
    assert reply("hermes", "prompt_submit", context="x") == {"context": "x"}
    assert reply("hermes", "post_tool_use", context="x", behavior="deny") is None


# -- files


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "COPILOT_HOME", "HERMES_HOME", "GEMINI_CLI_HOME"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


OTHERS: dict[str, str] = {
    "claude": """{
  // mine
  "model": "opus",
  "hooks": {
    "PreToolUse": [
      {"matcher": "Bash", "hooks": [{"type": "command", "command": "mine"}]} // keep
    ]
  }
}
""",
    "codex": '{"hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": "mine"}]}]}}',
    "copilot": '{"version": 1, "hooks": {"preToolUse": [{"type": "command", "bash": "mine"}]}}\n',
    "cursor": '{"version": 1, "hooks": {"beforeShellExecution": [{"command": "mine"}]}}\n',
    "gemini": '{"ui": {}, "hooks": {"BeforeTool": [{"hooks": [{"type": "command", "command": "mine"}]}]}}\n',
    "hermes": "# mine\nmodel: x\nhooks:\n  pre_tool_call:\n  - command: mine  # keep\n",
}


@pytest.mark.slow
@pytest.mark.parametrize("agent", NATIVE)
def test_install_keeps_existing_settings_and_uninstall_restores_the_file(agent: str) -> None:
    hooks = Hooks()
    path = hooks.install(agent, dry_run=True).path
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(OTHERS[agent])
    change = hooks.install(agent, program=PROGRAM)
    assert change.before == OTHERS[agent]
    text = path.read_text()
    assert change.after == text
    assert "mine" in text
    assert text.count("'/opt/my tools/amux' hooks") == sum(map(len, native(agent).types.values()))
    assert hooks.install(agent, program=PROGRAM).diff() == ""
    assert set(hooks.status(agent)[0].installed[path]) == set(native(agent).types)
    hooks.uninstall(agent)
    assert path.read_text() == OTHERS[agent]


@pytest.mark.slow
@pytest.mark.parametrize("agent", NATIVE)
def test_uninstalling_removes_a_created_file(agent: str) -> None:
    hooks = Hooks()
    path = hooks.install(agent, program=PROGRAM).path
    open_document(path.read_text(), native(agent).files[0].format)
    assert hooks.uninstall(agent, types=["pre_tool_use"]).after is not None
    assert hooks.uninstall(agent).after is None
    assert not path.exists()
    assert hooks.uninstall(agent).diff() == ""


@pytest.mark.slow
@pytest.mark.parametrize("agent", NATIVE)
def test_reinstalling_replaces_the_entry_of_another_amux(agent: str) -> None:
    hooks = Hooks()
    path = hooks.install(agent, program=["/old/amux"]).path
    hooks.install(agent, program=["/new/amux"])
    assert "/old/amux" not in path.read_text()
    assert path.read_text().count("/new/amux hooks") == sum(map(len, native(agent).types.values()))


@pytest.mark.parametrize("agent", NATIVE)
def test_install_is_limited_to_the_given_types(agent: str) -> None:
    hooks = Hooks()
    path = hooks.install(agent, program=PROGRAM, types=["pre_tool_use"]).path
    assert hooks.status(agent)[0].installed == {path: ("pre_tool_use",)}


@pytest.mark.parametrize("agent", NATIVE)
def test_a_dry_run_writes_nothing(agent: str, home: Path) -> None:
    change = Hooks().install(agent, program=PROGRAM, dry_run=True)
    assert "+" in change.diff()
    assert list(home.rglob("*")) == []


def test_scopes_select_the_file(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    hooks = Hooks(directory=tmp_path / "project")
    paths = {hooks.install("claude", scope=scope, dry_run=True).path.name for scope in ("global", "project", "local")}
    assert paths == {"settings.json", "settings.local.json"}
    with pytest.raises(AgentMuxError, match="it has: global") as caught:
        hooks.install("hermes", scope="project")
    assert caught.value.code == "CAPABILITY_ERROR"


@pytest.mark.parametrize(
    ("agent", "fields", "code"),
    [
        ("pi", {}, "CAPABILITY_ERROR"),
        ("clade", {}, "AGENT_NOT_FOUND"),
        ("claude", {"types": ["pre_tool"]}, "VALIDATION_ERROR"),
        ("gemini", {"types": ["permission_request"]}, "VALIDATION_ERROR"),
    ],
)
def test_invalid_installations_are_refused(agent: str, fields: dict[str, Any], code: str, home: Path) -> None:
    with pytest.raises(AgentMuxError) as caught:
        Hooks().install(agent, **fields)
    assert caught.value.code == code
    assert list(home.rglob("*")) == []


@pytest.mark.parametrize("text", ["{", '{"hooks": 3}', '{"hooks": {"PreToolUse": 3}}'])
def test_unreadable_file_is_not_changed(text: str) -> None:
    hooks = Hooks()
    path = hooks.install("claude", dry_run=True).path
    path.parent.mkdir(parents=True)
    path.write_text(text)
    with pytest.raises(AgentMuxError) as caught:
        hooks.install("claude", program=PROGRAM)
    assert caught.value.code == "CONFIG_ERROR"
    assert str(path) in str(caught.value)
    assert path.read_text() == text


@pytest.mark.parametrize(
    ("agent", "switch"),
    [
        ("claude", {"disableAllHooks": True}),
        ("gemini", {"hooksConfig": {"enabled": False}}),
        ("gemini", {"hooksConfig": {"disabled": ["amux"]}}),
    ],
)
def test_disabled_or_broken_hooks_do_not_count(agent: str, switch: dict[str, Any], home: Path) -> None:
    hooks = Hooks()
    path = hooks.install(agent, program=["/bin/sh"]).path
    counting = partial(active_hook_types, agent, native(agent), {"HOME": str(home)}, home)
    assert counting() == frozenset(native(agent).types)
    hooks.install(agent, program=["/nowhere/amux"], types=["stop"])
    assert counting() == frozenset(native(agent).types) - {"stop"}
    path.write_text(json.dumps({**json.loads(path.read_text()), **switch}))
    assert counting() == frozenset()
    assert hooks.status(agent)[0].consent == f"hooks are disabled in {path}"


def test_hook_types_are_known() -> None:
    assert all(set(native(agent).types) <= set(HOOK_TYPES) for agent in NATIVE)
    assert all(native(agent).decides <= set(native(agent).types) for agent in NATIVE)
    assert all(native(agent).runs <= set(REGISTRY.get(agent).protocols) for agent in NATIVE)
