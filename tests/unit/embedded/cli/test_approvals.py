"""Who may use which tool, who is asked, and what happens when nobody answers."""

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
    gate_of,
)

from agent_loop.cli.approvals import DENIED, NO_APPROVER, Approvals, InteractionDecision
from agent_loop.cli.stream import ApprovalMode
from agent_loop.errors import ToolError
from agent_loop.hooks import Hooks
from agent_mux.assembler import Ending
from agent_mux.contract import validate

pytestmark = pytest.mark.anyio


async def asked_and(
    approvals: Approvals, seen: Collected, decision: InteractionDecision, tool: Plain, **arguments: str
) -> bool:
    """Ask, answer as soon as it is asked, and say whether the call may go on."""
    gate = gate_of(tool, f"c{len(seen.events)}", **arguments)
    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(approvals.gate, gate)
            await anyio.wait_all_tasks_blocked()
            for one in seen.stream.pending:
                assert approvals.answer(one.interaction_id, decision)
    return not gate.block


def ended(seen: Collected) -> None:
    seen.stream.end(Ending(code=0))
    assert validate(seen.events) == []


async def test_yolo_asks_nobody_and_registers_nothing() -> None:
    seen = Collected("yolo")
    hooks = Hooks()
    approvals = Approvals(seen.stream, "yolo")
    approvals.install(hooks)
    assert hooks.handlers == {}
    gate = gate_of(SHELL, command="rm -rf /")
    await approvals.gate(gate)
    assert not gate.block


@pytest.mark.parametrize("tool", [SHELL, WRITE, FETCH, OTHER])
async def test_deny_refuses_what_does_more_than_read_with_a_reason_for_the_model(tool: Plain) -> None:
    seen = Collected("deny")
    gate = gate_of(tool, command="ls")
    await Approvals(seen.stream, "deny").gate(gate)
    assert (gate.block, gate.reason) == (True, DENIED)
    assert seen.of("approval_request", "shell_start") == []
    assert [event.reason for event in seen.of("approval_denied")] == [DENIED]
    ended(seen)


@pytest.mark.parametrize("mode", ["deny", "prompt"])
@pytest.mark.parametrize("tool", [READ, ASK, TODOS])
async def test_what_harms_nobody_is_not_asked_about(mode: ApprovalMode, tool: Plain) -> None:
    seen = Collected("prompt")
    gate = gate_of(tool, path="a")
    with anyio.fail_after(5):
        await Approvals(seen.stream, mode).gate(gate)
    assert not gate.block
    assert seen.of("approval_request", "approval_denied") == []


async def test_with_rules_of_somebody_else_reads_are_asked_about_too() -> None:
    seen = Collected()
    approvals = Approvals(seen.stream, "prompt", asks_everything=True)
    assert await asked_and(approvals, seen, InteractionDecision(granted=True), READ, path="secret.txt")
    [(_, extra)] = [one for one in seen.extra if one[0] == "approval_request"]
    assert extra["paths"] == ["secret.txt"]
    ended(seen)


async def test_a_command_is_asked_about_with_its_risk_and_the_call_that_waits() -> None:
    seen = Collected()
    approvals = Approvals(seen.stream, "prompt")
    assert await asked_and(approvals, seen, InteractionDecision(granted=True), SHELL, command="sudo reboot")
    [asked] = seen.of("approval_request")
    assert (asked.detail, asked.risk_level, asked.tool_name) == ("sudo reboot", "high", "shell")
    [ready] = seen.of("tool_call_ready")
    assert ("approval_request", {"toolCallId": ready.tool_call_id, "command": "sudo reboot"}) in seen.extra
    kinds = [event.type for event in seen.events]
    assert kinds.index("approval_granted") < kinds.index("shell_start")
    ended(seen)


async def test_a_refusal_is_told_to_the_model_with_its_reason() -> None:
    seen = Collected()
    approvals = Approvals(seen.stream, "prompt")
    gate = gate_of(WRITE, path="a.py", content="x")
    with anyio.fail_after(5):
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


async def test_always_holds_for_the_like_and_for_nothing_else() -> None:
    seen = Collected()
    approvals = Approvals(seen.stream, "prompt")
    always, no = InteractionDecision(granted=True, always=True), InteractionDecision(granted=False)
    assert await asked_and(approvals, seen, always, SHELL, command="make")
    assert await asked_and(approvals, seen, no, SHELL, command="make")
    assert not await asked_and(approvals, seen, no, SHELL, command="make install")
    assert await asked_and(approvals, seen, always, WRITE, path="a")
    assert await asked_and(approvals, seen, no, WRITE, path="b")
    assert len(seen.of("approval_request")) == 3


async def test_when_nobody_is_left_what_waits_and_what_comes_is_denied() -> None:
    seen = Collected()
    approvals = Approvals(seen.stream, "prompt")
    first, second = gate_of(SHELL, "c1", command="ls"), gate_of(SHELL, "c2", command="ls")
    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(approvals.gate, first)
            await anyio.wait_all_tasks_blocked()
            approvals.stop_asking()
        await approvals.gate(second)
    assert [(gate.block, gate.reason) for gate in (first, second)] == [(True, NO_APPROVER), (True, NO_APPROVER)]
    assert len(seen.of("approval_denied")) == 2
    ended(seen)


async def test_stopping_the_turn_settles_what_waits() -> None:
    seen = Collected()
    approvals = Approvals(seen.stream, "prompt")
    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(approvals.gate, gate_of(SHELL, command="ls"))
            await anyio.wait_all_tasks_blocked()
            tasks.cancel_scope.cancel()
    assert [event.reason for event in seen.of("approval_denied")] == ["the turn was stopped"]
    assert seen.stream.pending == ()
    ended(seen)


async def test_a_call_that_another_hook_refused_is_not_asked_about() -> None:
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

    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask)
            await anyio.wait_all_tasks_blocked()
            [pending] = seen.stream.pending
            assert not approvals.answer(pending.interaction_id, InteractionDecision(granted=True), "approval")
            assert approvals.answer(pending.interaction_id, InteractionDecision(granted=True, text="b"), "input")
    assert answers == ["b"]
    assert [(event.question, event.source) for event in seen.of("input_required")] == [("Which?", "tool")]
    assert ("input_required", {"options": ["a", "b"]}) in seen.extra


async def test_a_question_that_nobody_answers_is_an_error_for_the_model() -> None:
    seen = Collected()
    approvals = Approvals(seen.stream, "prompt")
    approvals.stop_asking()
    with pytest.raises(ToolError, match="no user is available"):
        await approvals.ask("Which?", ())
    ended(seen)


async def test_two_people_are_not_asked_at_the_same_time() -> None:
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
    with anyio.fail_after(5):
        for gate in gates:
            await approvals.gate(gate)
    assert [gate.block for gate in gates] == [False] * 3
    assert most == 1
