"""Hook functions of a run whose agent has no hooks for one run: they decide approvals and observe events."""

from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.process.scripted import MakeClient

from agent_mux import AgentMux, Block, CapabilityError, RunResult
from agent_mux.client.remote import RemoteMux
from agent_mux.sdk.hooks import HookCall, HookDecision

pytestmark = pytest.mark.anyio
ASKS = "read(); emit(session='S1'); emit(ask='rm x'); emit(text=read()['answer']); emit(done=1); drain()"
ACTS = "read(); emit(session='S1'); emit(ran='rm x'); emit(text='did'); emit(done=1); drain()"


async def run(make_client: MakeClient, body: str, hooks: Any, **arguments: Any) -> RunResult:
    with anyio.fail_after(60):
        async with make_client(body, **arguments) as mux:
            result: RunResult = await mux.run(prompt="go", approval_mode="yolo", hooks=hooks, collect_events=True)
            return result


def warnings(result: RunResult) -> list[str]:
    return [event.message for event in result.events or () if event.type == "debug" and event.level == "warn"]


async def test_hook_function_denies_what_the_agent_asks_for(make_client: MakeClient) -> None:
    async def guard(call: HookCall) -> Block | None:
        return Block("keep it") if call.command == "rm x" else None

    result = await run(make_client, ASKS, {"pre_tool_use": guard})
    assert (result.text, [denial.reason for denial in result.denials]) == ("no", ["keep it"])


async def test_hook_function_without_opinion_leaves_the_decision_to_the_mode(make_client: MakeClient) -> None:
    assert (await run(make_client, ASKS, {"pre_tool_use": lambda _: None})).text == "yes"


async def test_failing_hook_function_denies_and_is_reported_with_its_name(make_client: MakeClient) -> None:
    def broken(call: HookCall) -> None:
        raise RuntimeError(f"cannot judge {call.tool_name}")

    result = await run(make_client, ASKS, {"pre_tool_use": broken})
    assert result.text == "no"
    message = "the hook pre_tool_use (broken) failed: RuntimeError: cannot judge Shell"
    assert [text for text in warnings(result) if message in text]


async def test_action_without_a_request_is_reported(make_client: MakeClient, tmp_path: Path) -> None:
    reported = tmp_path / "reported"  # the agent ends after the warning: a later one is in the log only
    waits = f"""
import pathlib
read(); emit(session='S1'); emit(ran='rm x'); emit(text='did')
while not pathlib.Path({str(reported)!r}).exists(): time.sleep(0.02)
emit(done=1); drain()
"""
    with anyio.fail_after(60):
        async with make_client(waits) as mux:
            hooks: Any = {"pre_tool_use": lambda _: Block("keep it")}
            handle = mux.run(prompt="go", approval_mode="yolo", hooks=hooks)
            handle.on("debug", lambda event: reported.touch() if "without asking" in event.message else None)
            notes = [event.message async for event in handle if event.type == "debug"]
    assert [text for text in notes if "used Shell without asking, though a hook denies it: keep it" in text]


async def test_hook_functions_observe_the_run_in_order(make_client: MakeClient) -> None:
    seen: list[str] = []
    kinds = ("session_start", "prompt_submit", "post_tool_use", "stop", "session_end")
    result = await run(make_client, ACTS, dict.fromkeys(kinds, lambda call: seen.append(call.hook_type)))
    assert result.exit_reason == "completed"
    assert seen == list(kinds)


async def test_context_of_a_hook_function_that_only_observes_is_a_warning(make_client: MakeClient) -> None:
    result = await run(make_client, ACTS, {"session_start": lambda _: HookDecision(context="it is late")})
    message = "the hook session_start (<lambda>) added context, which scripted cannot accept there"
    assert [text for text in warnings(result) if message in text]


async def test_agent_that_cannot_ask_is_a_capability_error(make_client: MakeClient) -> None:
    for hook_type, reason in (("pre_tool_use", "it cannot ask for approval"), ("pre_compact", "no event reports it")):
        with pytest.raises(CapabilityError, match=f"the hook {hook_type} in Python; {reason}"):
            await run(make_client, ASKS, {hook_type: lambda _: None}, approval_modes=("yolo",))


async def test_remote_client_refuses_functions() -> None:
    async with RemoteMux("http://127.0.0.1:9", token="x") as mux:  # noqa: S106
        with pytest.raises(CapabilityError, match="functions in the option `hooks`"):
            await mux.start(agent="scripted", prompt="go", hooks={"stop": print})


def test_options_of_a_plan_name_the_hooks(make_client: MakeClient) -> None:
    mux: AgentMux = make_client(ASKS)
    plan = mux.plan(prompt="go", hooks={"stop": print})
    assert plan.header.options["hooks"] == ["stop"]
