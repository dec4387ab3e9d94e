"""Approvals and questions: which tools need an approval, and what happens without an answer."""

from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.unit.embedded.cli.asked_tools import (
    ASK,
    FETCH,
    OTHER,
    READ,
    SHELL,
    TODOS,
    WRITE,
    Collected,
    Plain,
    Sandboxed,
    gate_of,
)

from agent_loop.cli.approvals import DENIED, NO_APPROVER, STAYS_IN_SANDBOX, Approvals, InteractionDecision
from agent_loop.cli.stream import ApprovalMode
from agent_loop.errors import ToolError
from agent_loop.hooks import Hooks
from agent_loop.tools.builtin.apply_patch import ApplyPatchTool
from agent_loop.workspace import Workspace
from agent_mux.assembler import Ending
from agent_mux.contract import validate

pytestmark = pytest.mark.anyio


async def is_allowed_after(
    approvals: Approvals, seen: Collected, decision: InteractionDecision, tool: Plain, **arguments: Any
) -> bool:
    """Run the gate, answer its request, and return whether the call may continue."""
    gate = gate_of(tool, f"c{len(seen.events)}", **arguments)
    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(approvals.gate, gate)
            await anyio.wait_all_tasks_blocked()
            for one in seen.stream.pending:
                assert approvals.answer(one.interaction_id, decision)
    return not gate.block


def ended(seen: Collected) -> None:
    seen.stream.end(Ending(code=0))
    assert validate(seen.events) == []


async def test_yolo_mode_blocks_nothing_until_the_mode_changes() -> None:
    seen = Collected("yolo")
    hooks = Hooks()
    approvals = Approvals(seen.stream, "yolo")
    approvals.install(hooks)
    gate = gate_of(SHELL, command="rm -rf /")
    await approvals.gate(gate)
    assert not gate.block
    approvals.set_mode("deny")
    await approvals.gate(gate)
    assert gate.block


@pytest.mark.parametrize("tool", [SHELL, WRITE, FETCH, OTHER])
async def test_deny_mode_blocks_tools_that_do_more_than_read_with_a_reason(tool: Plain) -> None:
    seen = Collected("deny")
    gate = gate_of(tool, command="ls")
    await Approvals(seen.stream, "deny").gate(gate)
    assert (gate.block, gate.reason) == (True, DENIED)
    assert seen.of("approval_request", "shell_start") == []
    assert [event.reason for event in seen.of("approval_denied")] == [DENIED]
    ended(seen)


@pytest.mark.parametrize("mode", ["deny", "prompt"])
@pytest.mark.parametrize("tool", [READ, ASK, TODOS])
async def test_read_only_tools_need_no_approval(mode: ApprovalMode, tool: Plain) -> None:
    seen = Collected("prompt")
    gate = gate_of(tool, path="a")
    with anyio.fail_after(60):
        await Approvals(seen.stream, mode).gate(gate)
    assert not gate.block
    assert seen.of("approval_request", "approval_denied") == []


async def test_asks_everything_requests_approval_for_reads_too() -> None:
    seen = Collected()
    approvals = Approvals(seen.stream, "prompt", asks_everything=True)
    assert await is_allowed_after(approvals, seen, InteractionDecision(granted=True), READ, path="secret.txt")
    [(_, extra)] = [one for one in seen.extra if one[0] == "approval_request"]
    assert extra["paths"] == ["secret.txt"]
    ended(seen)


async def test_approval_request_of_a_command_has_its_risk_and_call_id() -> None:
    seen = Collected()
    approvals = Approvals(seen.stream, "prompt")
    assert await is_allowed_after(approvals, seen, InteractionDecision(granted=True), SHELL, command="sudo reboot")
    [asked] = seen.of("approval_request")
    assert (asked.detail, asked.risk_level, asked.tool_name) == ("sudo reboot", "high", "shell")
    [ready] = seen.of("tool_call_ready")
    assert ("approval_request", {"toolCallId": ready.tool_call_id, "command": "sudo reboot"}) in seen.extra
    kinds = [event.type for event in seen.events]
    assert kinds.index("approval_granted") < kinds.index("shell_start")
    ended(seen)


async def test_approved_background_command_has_no_shell_events() -> None:
    seen = Collected()
    approvals = Approvals(seen.stream, "prompt")
    decision = InteractionDecision(granted=True)
    assert await is_allowed_after(approvals, seen, decision, SHELL, command="make serve", background=True)
    [asked] = seen.of("approval_request")
    assert asked.detail == "make serve"
    ended(seen)
    assert seen.of("shell_start", "shell_exit") == []


async def test_denied_call_is_blocked_with_the_reason_for_the_model() -> None:
    seen = Collected()
    approvals = Approvals(seen.stream, "prompt")
    gate = gate_of(WRITE, path="a.py", content="x")
    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(approvals.gate, gate)
            await anyio.wait_all_tasks_blocked()
            [pending] = seen.stream.pending
            assert approvals.answer(
                pending.interaction_id, InteractionDecision(granted=False, text="not that file"), "approval"
            )
            assert not approvals.answer(pending.interaction_id, InteractionDecision(granted=True))
    assert (gate.block, gate.reason) == (True, "not that file")
    assert [event.reason for event in seen.of("approval_denied")] == ["not that file"]


async def test_always_approves_the_same_command_or_tool_only() -> None:
    seen = Collected()
    approvals = Approvals(seen.stream, "prompt")
    always, no = InteractionDecision(granted=True, always=True), InteractionDecision(granted=False)
    assert await is_allowed_after(approvals, seen, always, SHELL, command="make")
    assert await is_allowed_after(approvals, seen, no, SHELL, command="make")
    assert not await is_allowed_after(approvals, seen, no, SHELL, command="make install")
    assert await is_allowed_after(approvals, seen, always, WRITE, path="a")
    assert await is_allowed_after(approvals, seen, no, WRITE, path="b")
    assert len(seen.of("approval_request")) == 3


@pytest.mark.parametrize("allowed", [(), ("shell",)])
async def test_leaving_the_sandbox_is_asked_for_each_command_and_named(allowed: tuple[str, ...]) -> None:
    seen = Collected()
    approvals = Approvals(seen.stream, "prompt", allowed_tools=allowed)
    always, shell = InteractionDecision(granted=True, always=True), Sandboxed("shell", "execute", "high")
    if not allowed:
        assert await is_allowed_after(approvals, seen, always, shell, command="ls")
    assert await is_allowed_after(approvals, seen, always, shell, command="ls", unsandboxed=True)
    asked = seen.of("approval_request")[-1]
    assert (asked.action, asked.detail) == ("run a command without the sandbox (shell)", "ls")
    assert asked.risk_level == "high"
    await approvals.gate(gate := gate_of(shell, command="ls", unsandboxed=True))
    assert not gate.block
    assert len(seen.of("approval_request")) == (1 if allowed else 2)


async def test_yolo_mode_blocks_leaving_the_sandbox() -> None:
    seen = Collected("yolo")
    approvals, shell = Approvals(seen.stream, "yolo"), Sandboxed("shell", "execute", "high")
    await approvals.gate(gate := gate_of(shell, command="ls", unsandboxed=True))
    assert (gate.block, gate.reason) == (True, STAYS_IN_SANDBOX)
    await approvals.gate(gate := gate_of(shell, command="ls"))
    assert not gate.block


async def test_stop_asking_denies_pending_and_future_requests() -> None:
    seen = Collected()
    approvals = Approvals(seen.stream, "prompt")
    first, second = gate_of(SHELL, "c1", command="ls"), gate_of(SHELL, "c2", command="ls")
    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(approvals.gate, first)
            await anyio.wait_all_tasks_blocked()
            approvals.stop_asking()
        await approvals.gate(second)
    assert [(gate.block, gate.reason) for gate in (first, second)] == [(True, NO_APPROVER), (True, NO_APPROVER)]
    assert len(seen.of("approval_denied")) == 2
    ended(seen)


async def test_cancelled_turn_settles_pending_requests() -> None:
    seen = Collected()
    approvals = Approvals(seen.stream, "prompt")
    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(approvals.gate, gate_of(SHELL, command="ls"))
            await anyio.wait_all_tasks_blocked()
            tasks.cancel_scope.cancel()
    assert [event.reason for event in seen.of("approval_denied")] == ["the turn was stopped"]
    assert seen.stream.pending == ()
    ended(seen)


async def test_call_blocked_by_another_hook_needs_no_approval() -> None:
    seen = Collected()
    gate = gate_of(SHELL, command="ls")
    gate.block = True
    await Approvals(seen.stream, "prompt").gate(gate)
    assert seen.of("approval_request") == []


async def test_a_question_of_a_tool_is_input_required_with_its_options() -> None:
    seen = Collected()
    approvals = Approvals(seen.stream, "yolo")
    answers: list[str] = []

    async def ask() -> None:
        answers.append(await approvals.ask("Which?", ("a", "b")))

    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask)
            await anyio.wait_all_tasks_blocked()
            [pending] = seen.stream.pending
            assert not approvals.answer(pending.interaction_id, InteractionDecision(granted=True), "approval")
            assert approvals.answer(pending.interaction_id, InteractionDecision(granted=True, text="b"), "input")
    assert answers == ["b"]
    assert [(event.question, event.source) for event in seen.of("input_required")] == [("Which?", "tool")]
    assert ("input_required", {"options": ["a", "b"]}) in seen.extra


async def test_unanswered_question_is_an_error_for_the_model() -> None:
    seen = Collected()
    approvals = Approvals(seen.stream, "prompt")
    approvals.stop_asking()
    with pytest.raises(ToolError, match="no user is available"):
        await approvals.ask("Which?", ())
    ended(seen)


async def test_user_is_asked_one_question_at_a_time() -> None:
    seen = Collected()
    waiting: list[str] = []
    most = 0

    async def asker(one: object) -> InteractionDecision:
        nonlocal most
        waiting.append("")
        most = max(most, len(waiting))
        await anyio.wait_all_tasks_blocked()
        waiting.pop()
        return InteractionDecision(granted=True)

    approvals = Approvals(seen.stream, "prompt", asker=asker)
    gates = [gate_of(SHELL, f"c{number}", command="ls") for number in range(3)]
    with anyio.fail_after(60):
        for gate in gates:
            await approvals.gate(gate)
    assert [gate.block for gate in gates] == [False] * 3
    assert most == 1


async def test_approval_of_an_edit_names_the_file_and_not_its_content() -> None:
    seen = Collected()
    approvals = Approvals(seen.stream, "prompt")
    approvals.stop_asking()
    with anyio.fail_after(30):
        await approvals.gate(gate_of(WRITE, path="a.py", content="x = 1\n"))
    (request,) = seen.of("approval_request")
    assert request.detail == "a.py"
    ended(seen)


async def test_approval_of_a_patch_shows_its_files_and_its_diff(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("one\n")
    seen = Collected()
    approvals = Approvals(seen.stream, "prompt", directory=str(tmp_path), workspace=Workspace(tmp_path))
    approvals.stop_asking()
    patch = "*** Begin Patch\n*** Update File: a\n-one\n+two\n*** Add File: b\n+new\n*** End Patch"
    gate = gate_of(ApplyPatchTool(), patch=patch)
    with anyio.fail_after(30):
        await approvals.gate(gate)
    assert gate.block
    (request,) = seen.of("approval_request")
    assert request.detail == "a, b"
    assert "--- a/a\n+++ b/a\n@@ -1 +1 @@\n-one\n+two\n" in request.diff
    assert "+++ b/b\n" in request.diff
    assert (tmp_path / "a").read_text() == "one\n"
    ended(seen)
