"""Policies and timeouts that answer requests. Every wait is bounded."""

from typing import Any

import anyio
import pytest
from tests.process.checked_runs import run_to_end, types, watch
from tests.process.scripted import MakeClient

from agent_mux import Approve, CapabilityError, Deny, PendingInteraction, Policy, Rule

pytestmark = [pytest.mark.anyio, pytest.mark.local_and_remote]

ASKS = "read(); emit(session='S'); emit(ask={command!r}); emit(text=read()['answer']); emit(done=True); drain()"
RULES = Policy(
    rules=(
        Rule(decision="allow", commands=("git log",)),
        Rule(decision="deny", commands=("git push",), reason="nothing leaves"),
    )
)


def asking(command: str) -> str:
    return ASKS.format(command=command)


@pytest.mark.parametrize("mode", ["prompt", "yolo", "deny"])
async def test_policy_rules_override_the_approval_mode(make_client: MakeClient, mode: Any) -> None:
    events, result = await run_to_end(make_client, asking("git log -3"), policy=RULES, approval_mode=mode)
    assert result.text == "yes"
    assert types(events, "approval_request", "approval_granted") == ["approval_request", "approval_granted"]
    events, result = await run_to_end(make_client, asking("git push -f"), policy=RULES, approval_mode=mode)
    assert result.text == "no"
    assert [event.reason for event in events if event.type == "approval_denied"] == ["nothing leaves"]


@pytest.mark.parametrize(("mode", "answer"), [("yolo", "yes"), ("deny", "no")])
async def test_unmatched_request_is_left_to_the_mode(make_client: MakeClient, mode: Any, answer: str) -> None:
    _, result = await run_to_end(make_client, asking("make"), policy=RULES, approval_mode=mode)
    assert result.text == answer


@pytest.mark.parametrize("default", ["allow", "deny"])
async def test_policy_default_answers_unmatched_requests(make_client: MakeClient, default: Any) -> None:
    _, result = await run_to_end(make_client, asking("make"), policy=Policy(default=default))
    assert result.text == {"allow": "yes", "deny": "no"}[default]


async def test_unmatched_request_is_left_to_the_callback(make_client: MakeClient) -> None:
    asked: list[str] = []

    def decide(pending: PendingInteraction) -> Approve:
        asked.append(pending.description)
        return Approve()

    for command, answer in (("git log", "yes"), ("git push", "no"), ("make", "yes")):
        _, result = await run_to_end(make_client, asking(command), policy=RULES, on_approval_request=decide)
        assert result.text == answer
    assert asked == ["run: make"]


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"approval_timeout": 0.05}, "no answer within 0.05 s"),
        ({"policy": Policy(timeout=0.05)}, "no answer within 0.05 s"),
        ({"policy": Policy(timeout=1000), "approval_timeout": 0.05}, "no answer within 0.05 s"),
        ({"approval_timeout": 0.05, "on_approval_request": lambda _: anyio.sleep_forever()}, None),
    ],
)
async def test_unanswered_request_is_denied_at_the_timeout(
    make_client: MakeClient, fields: dict[str, Any], reason: str | None
) -> None:
    events, result = await run_to_end(make_client, asking("make"), **fields)
    assert (result.exit_reason, result.text) == ("completed", "no")
    [denied] = [event for event in events if event.type == "approval_denied"]
    assert denied.reason == (reason or "no answer within 0.05 s")


async def test_policy_can_allow_unanswered_requests(make_client: MakeClient) -> None:
    policy = Policy(timeout=0.05, on_timeout="allow")
    _, result = await run_to_end(make_client, asking("make"), policy=policy)
    assert result.text == "yes"


async def test_unanswered_question_is_declined(make_client: MakeClient) -> None:
    body = "read(); emit(question='colour?'); emit(text=read()['answer']); emit(done=True); drain()"
    _, result = await run_to_end(make_client, body, policy=Policy(timeout=0.05, on_timeout="allow"))
    assert (result.exit_reason, result.text) == ("completed", "no")


async def test_answer_before_the_timeout_is_used(make_client: MakeClient) -> None:
    with anyio.fail_after(20):
        async with make_client(asking("make")) as mux:
            run = mux.run(prompt="hi", approval_timeout=1000)
            async for event in run:
                if event.type == "approval_request":
                    await run.approve()
            _, result = await watch(run)
    assert result.text == "yes"


async def test_denied_command_run_without_asking_emits_a_warning(make_client: MakeClient) -> None:
    body = "read(); [emit(shell=c) for c in ('git log', 'git push', 'git push')]; emit(done=True); drain()"
    events, _ = await run_to_end(make_client, body, policy=RULES, on_approval_request=lambda _: Deny())
    warnings = [event.message for event in events if event.type == "debug" and event.level == "warn"]
    assert warnings == []  # the tool calls were announced and never ran
    body = body.replace("emit(shell=c)", "emit(ran=c)")
    events, _ = await run_to_end(make_client, body, policy=RULES)
    warnings = [event.message for event in events if event.type == "debug" and event.level == "warn"]
    assert warnings == ["the agent ran `git push` without asking, though the policy denies it: nothing leaves"]


async def test_policy_requires_an_agent_that_asks(make_client: MakeClient) -> None:
    async with make_client("drain()", approval_modes=("yolo", "deny")) as mux:
        with pytest.raises(CapabilityError, match="which a policy needs"):
            mux.run(prompt="hi", policy=RULES)
