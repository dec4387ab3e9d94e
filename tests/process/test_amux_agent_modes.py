"""The modes, the sandbox and the fallback model of the real program `amux-agent`, with a scripted model."""

from pathlib import Path
from typing import Any

import pytest
from tests.process.embedded_agent import Sandbox

from agent_loop.tools.builtin import ShellSandbox

needs_kernel = pytest.mark.skipif(ShellSandbox("auto", ()).obstacle is not None, reason="no Landlock or namespaces")


@pytest.fixture
def sandbox(tmp_path: Path) -> Sandbox:
    sandbox = Sandbox(tmp_path)
    (sandbox.work / "old").write_text("one\n")
    return sandbox


def call(name: str, **arguments: Any) -> dict[str, Any]:
    return {"tool_calls": [{"name": name, "arguments": arguments}]}


PATCH = "*** Begin Patch\n*** Update File: old\n-one\n+two\n*** End Patch"
STEPS = (
    call("read_file", path="old"),
    call("write_file", path="written", content="x"),
    call("apply_patch", patch=PATCH),
    call("shell", command="touch ran"),
    {"text": "Done."},
)
MODES = {
    "plan": set(),
    "ask": set(),  # without a terminal, nobody can be asked
    "accept-edits": {"written", "patched"},
    "yolo": {"written", "patched", "ran"},
}


def effects(sandbox: Sandbox) -> set[str]:
    """Return what the calls did on the disk."""
    found = {name for name in ("written", "ran") if (sandbox.work / name).exists()}
    return found | ({"patched"} if (sandbox.work / "old").read_text() == "two\n" else set())


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
def test_mode_decides_which_calls_run_without_a_user(sandbox: Sandbox, mode: str) -> None:
    done = sandbox.run("--model", sandbox.script(*STEPS), "--mode", mode, "work")
    assert (done.returncode, done.stdout) == (0, "Done.\n"), done.stderr
    assert effects(sandbox) == MODES[mode]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("start", "asked"),
    [
        ({"approvalMode": "prompt"}, ["write_file", "apply_patch", "shell"]),
        ({"approvalMode": "prompt", "acceptEdits": True}, ["shell"]),
        ({"approvalMode": "yolo"}, []),
    ],
)
def test_mode_decides_which_calls_are_asked_for(sandbox: Sandbox, start: dict[str, Any], asked: list[str]) -> None:
    with sandbox.controlled(model=sandbox.script(*STEPS), **start) as agent:
        agent.send("prompt", id="1", text="work")
        for name in asked:
            assert agent.read_until("approval_request")["toolName"] == name
            request = agent.lines[-1]
            agent.send("approve", id=f"a-{name}", requestId=request["interactionId"])
        agent.read_until("turn_end")
        agent.end_input()
        assert agent.wait_for_exit() == 0
        assert len(agent.lines_of("approval_request")) == len(asked)
    assert effects(sandbox) == MODES["yolo"]


@pytest.mark.slow
def test_plan_mode_denies_with_events_and_never_asks(sandbox: Sandbox) -> None:
    with sandbox.controlled(model=sandbox.script(*STEPS), approvalMode="plan", acceptEdits=True) as agent:
        agent.send("prompt", id="1", text="work")
        agent.read_until("turn_end")
        agent.end_input()
        assert agent.wait_for_exit() == 0
        assert len(agent.lines_of("approval_denied")) == 3
        assert agent.lines_of("approval_request") == []
    assert effects(sandbox) == set()


def test_mode_and_approval_mode_cannot_be_combined(sandbox: Sandbox) -> None:
    done = sandbox.run("--mode", "ask", "--approval-mode", "yolo", "work")
    assert (done.returncode, done.stderr.strip()) == (
        2, "amux-agent: --mode and --approval-mode cannot be combined; use --mode"
    )  # fmt: skip


@pytest.mark.slow
@needs_kernel
def test_sandbox_keeps_commands_in_the_workspace(sandbox: Sandbox) -> None:
    steps = (call("shell", command="touch inside ../outside"), {"text": "Done."})
    done = sandbox.run("--model", sandbox.script(*steps), "--mode=yolo", "--sandbox=required", "work")
    assert done.returncode == 0, done.stderr
    assert (sandbox.work / "inside").exists()
    assert not (sandbox.root / "outside").exists()


@needs_kernel
@pytest.mark.slow
@pytest.mark.parametrize("command", ["approve", "deny"])
def test_command_leaves_the_sandbox_after_an_approval(sandbox: Sandbox, command: str) -> None:
    touch = {"command": "touch ../outside"}
    script = sandbox.script(call("shell", **touch), call("shell", **touch, unsandboxed=True), {"text": "Done."})
    with sandbox.controlled(model=script, approvalMode="prompt", sandbox="auto") as agent:
        agent.send("prompt", id="1", text="work")
        for number, action in enumerate(("approve", command)):
            request = agent.read_until("approval_request")
            assert (" without the sandbox" in request["action"]) is (number == 1)
            assert not (sandbox.root / "outside").exists()
            agent.send(action, id=f"a-{number}", requestId=request["interactionId"])
        agent.read_until("turn_end")
        agent.end_input()
        assert agent.wait_for_exit() == 0
    assert (sandbox.root / "outside").exists() is (command == "approve")


@pytest.mark.slow
def test_fallback_model_answers_when_the_model_fails(sandbox: Sandbox) -> None:
    failing = sandbox.script({"error": {"kind": "auth"}})
    done = sandbox.run("--model", failing, "--fallback-model", sandbox.script({"text": "From the second."}), "work")
    assert (done.returncode, done.stdout) == (0, "From the second.\n"), done.stderr


@pytest.mark.slow
def test_background_command_ends_with_the_program(sandbox: Sandbox) -> None:
    steps = (
        call("shell", command="echo $$ > pid; exec sleep 1000", background=True),
        call("shell", command="until [ -s pid ]; do sleep 0.05; done"),
        {"text": "Done."},
    )
    done = sandbox.run("--model", sandbox.script(*steps), "--mode=yolo", "work")
    assert (done.returncode, done.stdout) == (0, "Done.\n"), done.stderr
    pid = int((sandbox.work / "pid").read_text())
    stat = Path(f"/proc/{pid}/stat")
    assert not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] == "Z"
