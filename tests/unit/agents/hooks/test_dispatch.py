"""Calling several handlers and combining their decisions."""

import os
import time
from pathlib import Path
from typing import Any

import pytest
from tests.unit.agents.hooks.conftest import Handler, call, printing, registered

from agent_mux.agents.hooks import programs
from agent_mux.agents.hooks.dispatch import dispatch_call
from agent_mux.sdk.hooks import HookDecision

POLICY = '[[rules]]\ndecision = "deny"\ncommands = ["git push"]\nreason = "nothing leaves"\n'


def decided(program: Handler, *decisions: Any, **fields: Any) -> HookDecision:
    several = [registered(str(at), **printing(program, **decision)) for at, decision in enumerate(decisions)]
    outcome = dispatch_call(call(**fields), several)
    assert outcome.warnings == ()
    return outcome.decision


def test_denial_is_final(program: Handler) -> None:
    decision = decided(program, {"behavior": "deny", "reason": "no"}, {"behavior": "allow", "reason": "yes"})
    assert decision == HookDecision(behavior="deny", reason="no")
    assert decided(program, {"behavior": "allow"}, {"behavior": "deny", "reason": "no"}).reason == "no"


def test_handlers_after_a_denial_are_called(program: Handler, tmp_path: Path) -> None:
    marks = program(f"open({str(tmp_path / 'called')!r}, 'w').close()")
    several = [
        registered("a", **printing(program, behavior="deny")),
        registered("b", handler="command", target=marks),
    ]
    assert dispatch_call(call(), several).decision.behavior == "deny"
    assert (tmp_path / "called").exists()


def test_ask_overrides_allow(program: Handler) -> None:
    assert decided(program, {"behavior": "allow"}, {"behavior": "ask"}).behavior == "ask"
    assert decided(program, {"behavior": "ask"}, {"behavior": "allow"}).behavior == "ask"


def test_modified_inputs_are_merged_into_the_input(program: Handler) -> None:
    decision = decided(
        program, {"modifiedInput": {"a": 1, "b": 1}}, {"modifiedInput": {"b": 2}}, tool_input={"command": "x", "a": 0}
    )
    assert decision.modified_input == {"command": "x", "a": 1, "b": 2}


def test_modification_overrides_earlier_permission(program: Handler) -> None:
    decision = decided(program, {"behavior": "allow"}, {"modifiedInput": {"command": "ls"}})
    assert (decision.behavior, decision.modified_input) == (None, {"command": "ls"})
    decision = decided(program, {"modifiedInput": {"command": "ls"}}, {"behavior": "allow"})
    assert (decision.behavior, decision.modified_input) == ("allow", {"command": "ls"})


def test_denial_drops_modified_input(program: Handler) -> None:
    assert decided(program, {"modifiedInput": {"command": "ls"}}, {"behavior": "deny"}).modified_input is None


def test_contexts_are_joined(program: Handler) -> None:
    assert decided(program, {"context": "one"}, {}, {"context": "two"}).context == "one\n\ntwo"


def test_next_handler_receives_modified_input(program: Handler, tmp_path: Path) -> None:
    (tmp_path / "rules.toml").write_text(POLICY)
    several = [
        registered("a", **printing(program, modifiedInput={"command": "git push"})),
        registered("b", handler="builtin", target=f"policy:{tmp_path / 'rules.toml'}"),
    ]
    outcome = dispatch_call(call(command="ls", tool_input={"command": "ls"}), several)
    assert outcome.decision == HookDecision(behavior="deny", reason="nothing leaves")


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("sys.exit(3)", "exit code 3"),
        ("sys.exit('it broke')", "exit code 1: it broke"),
        ("os.kill(os.getpid(), 9)", "signal 9"),
        ("print('yes')", "not JSON"),
        ("print([1])", "not an object"),
        ("print(json.dumps({'behaviour': 'deny'}))", "'behaviour'"),
        ("print(json.dumps({'behavior': 'no'}))", "'no'"),
        ("print(json.dumps({'modifiedInput': 3}))", "modifiedInput"),
        ("print('x' * (2 << 20))", "is longer than"),
    ],
)
def test_failed_handler_is_skipped_with_a_warning(program: Handler, body: str, message: str) -> None:
    outcome = dispatch_call(call(), [registered("mine", handler="command", target=program(body))])
    assert outcome.decision == HookDecision()
    (warning,) = outcome.warnings
    assert warning.startswith("the hook 'mine' failed: ")
    assert message in warning


def test_exit_code_2_denies(program: Handler) -> None:
    outcome = dispatch_call(
        call(), [registered(handler="command", target=program("sys.exit(print('why', file=sys.stderr) or 2)"))]
    )
    assert outcome.decision == HookDecision(behavior="deny", reason="why")


def test_missing_program_is_a_failure() -> None:
    outcome = dispatch_call(call(), [registered(handler="command", target=["/nowhere/at all"])])
    assert "could not be started" in outcome.warnings[0]


def test_handler_receives_call_and_minimal_environment(
    program: Handler, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_API_KEY", "secret")
    body = "print(json.dumps({'context': json.dumps([sys.stdin.read(), dict(os.environ), os.getcwd()])}))"
    outcome = dispatch_call(
        call(cwd=str(tmp_path), paths=("a",)), [registered(handler="command", target=program(body))]
    )
    import json

    stdin, environ, cwd = json.loads(outcome.decision.context or "")
    assert json.loads(stdin) == {
        "agent": "claude", "hookType": "pre_tool_use", "toolName": "Bash", "toolInput": {"command": "git push"},
        "command": "git push", "paths": ["a"], "cwd": str(tmp_path),
    }  # fmt: skip
    assert "SOME_API_KEY" not in environ
    assert environ["AGENT_MUX_HOOK_ID"] == "one"
    assert environ["HOME"] == os.environ["HOME"]
    assert cwd == str(tmp_path)


def ends(pid: int) -> bool:
    """Return whether a process ends within a short time: a killed process may take a moment."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return True
        if state == "Z":
            return True
        time.sleep(0.01)
    return False


@pytest.mark.slow
def test_slow_handler_is_ended_with_its_processes(
    program: Handler, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(programs, "TIMEOUT", 6.0)  # long enough for the handler to start on a busy machine
    body = f"""
import subprocess
child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])
open({str(tmp_path / "pid")!r}, 'w').write(str(child.pid))
time.sleep(60)
"""
    started = time.monotonic()
    outcome = dispatch_call(call(), [registered(handler="command", target=program(body))])
    assert time.monotonic() - started < 30
    assert "timed out after 6 s" in outcome.warnings[0]
    assert ends(int((tmp_path / "pid").read_text()))


def test_child_that_keeps_pipes_open_does_not_delay(program: Handler) -> None:
    body = "import subprocess; subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)']); print('{}')"
    started = time.monotonic()
    assert dispatch_call(call(), [registered(handler="command", target=program(body))]).warnings == ()
    assert time.monotonic() - started < 20


def test_large_call_to_program_that_does_not_read(program: Handler) -> None:
    outcome = dispatch_call(
        call(tool_output="x" * (1 << 22)), [registered(handler="command", target=program("print('{}')"))]
    )
    assert outcome.warnings == ()


@pytest.mark.slow
def test_script_decides(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "from agent_mux.sdk.hooks import HookDecision\n"
        "print('loaded')\n"
        "def handle(call):\n"
        "    print('called')\n"
        "    if call.command == 'git push':\n"
        "        return HookDecision(behavior='deny', reason=call.tool_input['command'])\n"
        "    return {'context': 'fine'} if call.command else None\n"
    )
    one = registered(handler="script", target=str(tmp_path / "mine.py"))
    assert dispatch_call(call(), [one]).decision == HookDecision(behavior="deny", reason="git push")
    assert dispatch_call(call(command="ls"), [one]).decision == HookDecision(context="fine")
    assert dispatch_call(call(command=None), [one]).decision == HookDecision()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no function handle"),
        ("def handle(call): raise ValueError('why')", "ValueError: why"),
        ("def handle(call): return 3", "not an object"),
        ("def handle(call:", "SyntaxError"),
        ("import sys\ndef handle(call): sys.exit(0)", ""),
    ],
)
def test_failing_script_is_a_failure(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "mine.py").write_text(text)
    outcome = dispatch_call(call(), [registered(handler="script", target=str(tmp_path / "mine.py"))])
    assert outcome.decision == HookDecision()
    assert (not message and outcome.warnings == ()) or message in outcome.warnings[0]


def test_missing_script_is_a_failure() -> None:
    outcome = dispatch_call(call(), [registered(handler="script", target="/nowhere/mine.py")])
    assert "/nowhere/mine.py does not exist" in outcome.warnings[0]
