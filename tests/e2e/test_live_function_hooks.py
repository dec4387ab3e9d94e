"""Hook functions of the caller: they block and observe on every agent, and change inputs where the agent calls them."""

from typing import Any

import pytest
from tests.e2e.harness import LiveAgent
from tests.e2e.ways import ALL_AGENTS, BOTH_WAYS, WAYS

from agent_mux import Block
from agent_mux.sdk.hooks import HookCall
from agent_mux_testing.live import Say, Shell

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
