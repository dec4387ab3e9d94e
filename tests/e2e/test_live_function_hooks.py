"""Hook functions of the caller: they block and observe on every agent, and change inputs where the agent calls them."""

from typing import Any

import anyio
import pytest
from tests.e2e.harness import LiveAgent, finish, wait_for_event
from tests.e2e.ways import ALL_AGENTS, BOTH_WAYS, HEAVY, TWO_WAY, WAYS

from agent_mux import Block, CapabilityError, Choice, Deny
from agent_mux.client.hook_selection import function_hook_support
from agent_mux.sdk.hooks import HookCall, HookDecision
from agent_mux_testing.live import Ask, Say, Shell

pytestmark = pytest.mark.anyio
OBSERVED = ("session_start", "prompt_submit", "post_tool_use", "stop", "session_end")


@ALL_AGENTS
async def test_hook_function_blocks_a_command(live: LiveAgent) -> None:
    live.script(live.answer(Shell("touch denied", asks=True)), live.answer(Say("Done.")))
    calls: list[HookCall] = []

    async def guard(call: HookCall) -> Block | None:
        calls.append(call)
        return Block("nothing may be touched") if "touch" in (call.command or "") else None

    done = await live.run(hooks={"pre_tool_use": guard})
    assert done.result.exit_reason == "completed"
    assert not live.file("denied").exists()
    assert [call.command is not None and "touch denied" in call.command for call in calls] == [True]
    is_native = "pre_tool_use" in live.adapter.hooks_for_run
    reasons = [event.reason for event in done.all("approval_denied")]
    assert live.model.received("nothing may be touched") if is_native else reasons == ["nothing may be touched"]


@ALL_AGENTS
@BOTH_WAYS
async def test_hook_functions_observe_a_run(live: LiveAgent, way: str) -> None:
    live.script(live.answer(Shell("echo seen")), live.answer(Say("As you like.")))
    kinds: list[str] = []

    def observe(call: HookCall) -> None:
        kinds.append(call.hook_type)

    hooks: dict[Any, Any] = dict.fromkeys(OBSERVED, observe)
    done = await live.run(hooks=hooks, **WAYS[way])
    assert done.result.exit_reason == "completed"
    assert sorted(kinds) == sorted(OBSERVED)
    assert kinds.index("prompt_submit") < kinds.index("post_tool_use") < kinds.index("stop")


@BOTH_WAYS
async def test_hook_functions_of_native_hooks_decide_everything(live: LiveAgent, way: str) -> None:
    if "pre_tool_use" not in live.adapter.hooks_for_run:
        pytest.skip("the agent has no hooks that are configured for one run")
    live.script(live.answer(Shell("touch first")), live.answer(Say("As you like.")), live.answer(Say("Still here.")))
    stops: list[HookCall] = []

    def change(_: HookCall) -> dict[str, str]:
        return {"command": "touch changed"}

    def stay(call: HookCall) -> Block | None:
        stops.append(call)
        return Block("say more") if len(stops) == 1 else None

    done = await live.run(hooks={"pre_tool_use": change, "stop": stay}, **WAYS[way])
    assert done.result.exit_reason == "completed"
    assert live.file("changed").exists()
    assert not live.file("first").exists()
    assert live.model.received("say more")
    assert len(stops) == 2


@ALL_AGENTS
@pytest.mark.parametrize("hook_type", ["pre_tool_use", pytest.param("permission_request", marks=HEAVY)])
async def test_hook_function_decides_instead_of_the_callback(live: LiveAgent, hook_type: str) -> None:
    live.script(
        live.answer(Shell("touch allowed", asks=True)), live.answer(Shell("touch denied", asks=True)),
        live.answer(Say("As you like.")),
    )  # fmt: skip
    asked: list[Any] = []

    def decide(call: HookCall) -> HookDecision:
        behavior = "deny" if "touch denied" in (call.command or "") else "allow"
        return HookDecision(behavior=behavior, reason="the hook decides")

    def answer(detail: Any) -> Deny:
        asked.append(detail)
        return Deny("the callback decides")

    done = await live.run(approval_mode="prompt", on_approval_request=answer, hooks={hook_type: decide})
    assert done.result.exit_reason == "completed"
    assert asked == []
    assert live.file("allowed").exists()
    assert not live.file("denied").exists()


@ALL_AGENTS
@HEAVY
async def test_changed_input_reaches_the_tool_or_the_call_is_denied(live: LiveAgent) -> None:
    live.script(live.answer(Shell("touch first", asks=True)), live.answer(Say("As you like.")))

    async def change(_: HookCall) -> dict[str, str]:
        return {"command": "touch changed"}

    done = await live.run(hooks={"pre_tool_use": change})
    assert done.result.exit_reason == "completed"
    assert not live.file("first").exists()
    is_native = function_hook_support(live.adapter, "pre_tool_use") == "native"
    assert live.file("changed").exists() == is_native
    denials = [str(event.reason) for event in done.all("approval_denied")]
    assert ["changed the input of" in reason for reason in denials] == ([] if is_native else [True])


@ALL_AGENTS
@HEAVY
async def test_hook_functions_observe_a_sub_agent(live: LiveAgent) -> None:
    live.script(
        live.delegation("count the files", Shell("echo from-sub"), Say("There are 3 files.")),
        live.answer(Say("The sub-agent found 3 files."), repeat=True),
    )
    calls: list[HookCall] = []
    hooks: dict[Any, Any] = dict.fromkeys(("subagent_start", "subagent_stop"), calls.append)
    done = await live.run(hooks=hooks, **TWO_WAY)
    assert done.result.exit_reason == "completed"
    assert [call.hook_type for call in calls] == ["subagent_start", "subagent_stop"]


@ALL_AGENTS
@HEAVY
async def test_hook_function_is_notified_of_a_question(live: LiveAgent) -> None:
    live.script(live.answer(Ask("Which one?", ("Red", "Blue"))), live.answer(Say("Blue it is.")))
    calls: list[HookCall] = []
    notified = anyio.Event()

    async def note(call: HookCall) -> None:
        calls.append(call)
        notified.set()

    async def answer(_: Any) -> Choice:
        await notified.wait()  # Claude Code notifies after six seconds
        return Choice(1)

    done = await live.run(approval_mode="prompt", on_input_required=answer, hooks={"notification": note})
    assert done.result.exit_reason == "completed"
    is_native = function_hook_support(live.adapter, "notification") == "native"
    assert [call.message == "Which one?" for call in calls] == [not is_native]


@ALL_AGENTS
async def test_hook_before_compaction_is_called_or_refused(live: LiveAgent) -> None:
    live.script(live.answer(Say("Hello.")), live.answer(Say("<summary>They greeted.</summary>"), repeat=True))
    calls: list[HookCall] = []
    hooks: dict[Any, Any] = {"pre_compact": calls.append}
    if function_hook_support(live.adapter, "pre_compact") is None:
        with pytest.raises(CapabilityError, match="no event reports it"):
            await live.run(hooks=hooks)
        return
    async with live.running(interactive=True, hooks=hooks) as run:
        await wait_for_event(run, "turn_end")
        await run.send("/compact")
        await wait_for_event(run, "turn_end", 2)
        await run.close()
    await finish(run)
    assert [call.hook_type for call in calls] == ["pre_compact"]
