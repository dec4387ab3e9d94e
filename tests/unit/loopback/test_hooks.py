"""Hook functions: what they may return, and what a failing one does."""

import asyncio
import sys
from itertools import pairwise
from typing import Any

import anyio
import pytest

from agent_mux import Block, ValidationError
from agent_mux.loopback import hooks as module
from agent_mux.loopback.hooks import FunctionHooks, join_outcomes
from agent_mux.sdk.hooks import GUARDED_HOOK_TYPES, HookCall, HookDecision, HookOutcome, HookType
from agent_mux.sdk.options import RunOptions, validate_options

pytestmark = pytest.mark.anyio
TOOL = HookCall(agent="x", hook_type="pre_tool_use", tool_name="Bash", tool_input={"command": "ls", "cwd": "/"})


async def call(function: Any, hook_type: HookType = "pre_tool_use", *, is_native: bool = True) -> HookOutcome:
    hooks = FunctionHooks({hook_type: function}, GUARDED_HOOK_TYPES, is_native)
    given = TOOL if hook_type == "pre_tool_use" else HookCall(agent="x", hook_type=hook_type)
    with anyio.fail_after(20):
        return await hooks.call(given)


@pytest.mark.parametrize(
    ("returned", "decision"),
    [
        (None, HookDecision()),
        (Block("no"), HookDecision(behavior="deny", reason="no")),
        (Block(), HookDecision(behavior="deny")),
        (HookDecision(behavior="allow"), HookDecision(behavior="allow")),
        ({"command": "pwd"}, HookDecision(modified_input={"command": "pwd", "cwd": "/"})),
    ],
)
async def test_returned_value_is_the_decision(returned: Any, decision: HookDecision) -> None:
    async def asynchronous(_: HookCall) -> Any:
        return returned

    assert await call(lambda _: returned) == HookOutcome(decision)
    assert await call(asynchronous) == HookOutcome(decision)


def fail(_: HookCall) -> None:
    raise RuntimeError("not today")


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (fail, "the hook pre_tool_use (fail) failed: RuntimeError: not today"),
        (lambda _: True, "it returned bool; allowed: None, Block"),
        (lambda: None, "TypeError"),
    ],
)
async def test_failing_hook_denies_the_tool_and_is_named(function: Any, message: str) -> None:
    outcome = await call(function)
    assert outcome.decision.behavior == "deny"
    assert message in str(outcome.decision.reason)
    assert message in outcome.warnings[0]


def leave(_: HookCall) -> None:
    sys.exit("no such rule")


async def time_out(_: HookCall) -> None:
    raise TimeoutError("the policy server did not answer")


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (leave, "the hook pre_tool_use (leave) failed: SystemExit: no such rule"),
        (time_out, "the hook pre_tool_use (time_out) failed: TimeoutError: the policy server did not answer"),
    ],
)
async def test_hook_is_denied_with_the_exception_that_it_raised(function: Any, message: str) -> None:
    assert await call(function) == HookOutcome(HookDecision(behavior="deny", reason=message), (message,))


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_hook_that_cancels_itself_denies_the_tool() -> None:
    async def wait_for_cancelled(_: HookCall) -> None:
        future = asyncio.get_running_loop().create_future()
        future.cancel()
        await future

    outcome = await call(wait_for_cancelled)
    assert outcome.decision.behavior == "deny"
    assert "failed: CancelledError" in outcome.warnings[0]


async def test_cancelled_hook_stays_cancelled() -> None:
    async def wait(_: HookCall) -> None:
        await anyio.sleep_forever()

    with anyio.move_on_after(0.05) as scope:
        await call(wait)
        pytest.fail("the call returned")
    assert scope.cancelled_caught


async def test_added_context_without_effect_is_a_warning() -> None:
    decision = HookDecision(behavior="allow", context="it is late")
    assert await call(lambda _: decision) == HookOutcome(decision)
    outcome = await call(lambda _: decision, is_native=False)
    assert outcome.decision == HookDecision(behavior="allow")
    assert outcome.warnings == ("the hook pre_tool_use (<lambda>) added context, which x cannot accept there",)


async def test_failing_hook_that_guards_nothing_is_a_warning() -> None:
    outcome = await call(fail, "stop")
    assert outcome.decision == HookDecision()
    assert outcome.warnings == ("the hook stop (fail) failed: RuntimeError: not today",)


async def test_hook_that_does_not_return_denies_the_tool(monkeypatch: pytest.MonkeyPatch) -> None:
    async def wait(_: HookCall) -> None:
        await anyio.sleep_forever()

    monkeypatch.setattr(module, "HOOK_TIMEOUT", 0.05)
    outcome = await call(wait)
    assert outcome.decision.behavior == "deny"
    assert "did not return within 0.05 s" in outcome.warnings[0]


async def test_decision_without_effect_is_a_warning() -> None:
    outcome = await call(lambda _: Block("stay"), "stop")
    assert outcome.decision == HookDecision()
    assert "decided deny, which x cannot do there" in outcome.warnings[0]


async def test_changed_input_that_cannot_be_passed_on_denies_the_tool() -> None:
    outcome = await call(lambda _: {"command": "pwd"}, is_native=False)
    assert outcome.decision.behavior == "deny"
    assert "changed the input of Bash, which x cannot accept" in outcome.warnings[0]


@pytest.mark.parametrize("order", [1, -1])
def test_denial_takes_precedence_over_question_and_approval(order: int) -> None:
    outcomes = [HookOutcome(HookDecision(behavior=it)) for it in ("deny", "ask", "allow", None)]
    for stronger, weaker in pairwise(outcomes):
        assert join_outcomes(*(stronger, weaker)[::order]).decision == stronger.decision


@pytest.mark.parametrize(
    ("hooks", "named"),
    [
        ({"user_prompt_submit": print}, "did you mean"),
        ({"pre_tool_use": "x"}, "a function"),
        ([print], "a mapping from hook types to functions"),
    ],
)
def test_invalid_option_is_reported(hooks: Any, named: str) -> None:
    with pytest.raises(ValidationError, match=named):
        validate_options(RunOptions(agent="x", prompt="hi", hooks=hooks))
