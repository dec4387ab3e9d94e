"""Sub-agents: isolation, inheritance, limits, gates, events, links, and how they end."""

from typing import Any

import anyio
import pytest
from tests.unit.embedded.loop.harness import WAIT, agent, kinds, streamed

from agent_loop import Agent, Behavior, ExecutionLimits, MemorySessionStore, ScriptedProvider, Usage, tool
from agent_loop.errors import AbortedError, ConfigurationError, ProviderError
from agent_loop.events import LoopEvent, LoopStart, SubAgentEnd, SubAgentEvent, SubAgentStart, TurnStart
from agent_loop.hooks.contexts import SpawnBefore, SpawnEnded, ToolGate
from agent_loop.messages import ToolMessage
from agent_loop.providers.script import Step, call, say
from agent_loop.sessions.session import SpawnRef
from agent_loop.subagents import LoopRunner, SubAgentReport, SubAgentTask, SubAgentTool

pytestmark = pytest.mark.anyio


@tool(read_only=True)
def look() -> str:
    """Look."""
    return "seen"


@tool
def change() -> str:
    """Change."""
    return "changed"


def parent_script(*child: Any) -> ScriptedProvider:
    """Return a model that delegates "count", plays `child` in the sub-agent, and repeats its report."""
    inside = [say(each) if isinstance(each, str) else each for each in child]
    main = [Step(tool_calls=call("delegate", task="count").tool_calls, task="go"), say("{{result}}", task="go")]
    return ScriptedProvider([*(_of_child(step) for step in inside), *main])


def _of_child(step: Step) -> Step:
    import msgspec

    return msgspec.structs.replace(step, task="count")


def result_of(one: Agent) -> ToolMessage:
    return next(message for message in one.messages if isinstance(message, ToolMessage))


async def test_sub_agent_has_an_empty_history_and_the_settings_of_its_parent() -> None:
    model = parent_script(call("look"), "three")
    one = agent(model, look, SubAgentTool(), system_prompt="Be exact.")
    received, result = await streamed(one)
    assert result.text == "three"
    first = model.requests[1]
    assert [message.text for message in first.messages] == ["count"]  # type: ignore[union-attr]
    assert first.system == "Be exact."
    assert [each.name for each in first.tools] == ["look"]
    assert result_of(one).text == "three"
    triggers = [
        event.event.trigger
        for event in received
        if isinstance(event, SubAgentEvent) and isinstance(event.event, TurnStart)
    ]
    assert triggers == ["sub_agent", "continuation"]


async def test_sub_agent_uses_its_own_model_prompt_tools_and_behavior() -> None:
    child = ScriptedProvider(["done"])
    runner = LoopRunner(provider=child, system_prompt="You search.", tools=["look"], behavior=Behavior(temperature=0.5))
    one = agent(parent_script(), look, change, SubAgentTool(runner=runner))
    _, result = await streamed(one)
    assert result.text == "done"
    (request,) = child.requests
    assert request.system == "You search."
    assert [each.name for each in request.tools] == ["look"]
    assert request.settings.temperature == 0.5


async def test_events_of_a_sub_agent_lie_between_its_start_and_its_end() -> None:
    received, _ = await streamed(agent(parent_script("three"), SubAgentTool()))
    names = kinds(received)
    start, end = names.index("sub_agent_start"), names.index("sub_agent_end")
    assert names[start - 1] == "tool_call"
    assert names[end + 1] == "tool_result"
    assert set(names[start + 1 : end]) == {"sub_agent_event"}
    began, ended = received[start], received[end]
    assert isinstance(began, SubAgentStart)
    assert isinstance(ended, SubAgentEnd)
    assert (began.prompt, began.name, began.depth) == ("count", "delegate", 1)
    assert (ended.status, ended.text, ended.subagent_id) == ("completed", "three", began.subagent_id)


async def test_sessions_of_parent_and_sub_agent_link_to_each_other() -> None:
    store = MemorySessionStore()
    one = agent(parent_script("three"), SubAgentTool(), store=store)
    received, result = await streamed(one)
    record = one.session.loops[0]
    (ref,) = record.child_loop_refs
    child = await store.load(ref.child_session_id)
    assert ref.child_loop_id == f"{child.session_id}.sub.1" == child.loops[0].loop_id
    assert child.parent_spawn_ref is not None
    assert child.parent_spawn_ref.parent_loop_id == result.loop_id == child.loops[0].parent_loop_id
    assert child.parent_spawn_ref.parent_session_id == one.session.session_id
    assert child.parent_spawn_ref.tool_call_id == ref.tool_call_id
    assert child.root_loops() == child.loops
    assert [message.text for message in child.history()] == ["count", "three"]  # type: ignore[union-attr]
    starts = [e.event for e in received if isinstance(e, SubAgentEvent) and isinstance(e.event, LoopStart)]
    assert [start.parent_loop_id for start in starts] == [result.loop_id]
    assert not any(isinstance(event, SubAgentEvent) for event in record.events)


async def test_gates_of_the_parent_decide_about_calls_of_the_sub_agent() -> None:
    asked: list[tuple[str, int]] = []

    def approve(gate: ToolGate) -> None:
        asked.append((gate.name, gate.depth))
        if gate.name == "change":
            gate.block, gate.reason = True, "not approved"

    model = parent_script(call("change"), say("{{result}}"))
    _, result = await streamed(agent(model, change, SubAgentTool(), hooks={"tool:gate": approve}))
    assert asked == [("delegate", 0), ("change", 1)]
    assert result.text == "Blocked: not approved"


async def test_failing_gate_of_the_parent_blocks_the_call_of_the_sub_agent() -> None:
    def broken(gate: ToolGate) -> None:
        if gate.depth:
            raise LookupError("no policy")

    model = parent_script(call("change"), say("{{result}}"))
    _, result = await streamed(agent(model, change, SubAgentTool(), hooks={"tool:gate": broken}))
    assert result.text.startswith("Blocked:")


async def test_hooks_of_the_sub_agent_bubble_up_and_the_gate_can_be_answered() -> None:
    fired: list[str] = []

    def answer(gate: ToolGate) -> None:
        fired.append("child:tool:gate")
        from agent_loop.tools.results import failure

        gate.result = failure("substituted")

    names = ("stream:text", "stream:end", "tool:after", "turn:after")
    hooks: dict[str, Any] = {f"child:{name}": lambda _, name=name: fired.append(f"child:{name}") for name in names}
    model = parent_script(call("look"), say("{{result}}"))
    _, result = await streamed(agent(model, look, SubAgentTool(), hooks={**hooks, "child:tool:gate": answer}))
    assert result.text == "substituted"
    assert set(fired) == {"child:tool:gate", *(f"child:{name}" for name in names)}


async def test_spawn_hooks_change_refuse_and_report_delegations() -> None:
    ended: list[SpawnEnded] = []

    def before(spawn: SpawnBefore) -> None:
        spawn.prompt = f"count {spawn.name}"

    model = parent_script("three")
    hooks = {"spawn:before": before, "spawn:complete": ended.append}
    await streamed(agent(model, SubAgentTool(), hooks=hooks))
    assert model.requests[1].messages[0].text == "count delegate"  # type: ignore[union-attr]
    assert [(each.status, each.text) for each in ended] == [("completed", "three")]

    def refuse(spawn: SpawnBefore) -> None:
        spawn.block, spawn.reason = True, "too expensive"

    received, result = await streamed(agent(parent_script(), SubAgentTool(), hooks={"spawn:before": refuse}))
    assert "too expensive" in result.text
    assert "sub_agent_start" not in kinds(received)


async def test_failure_of_a_sub_agent_is_an_error_result_and_the_parent_continues() -> None:
    failed: list[SpawnEnded] = []
    child = ScriptedProvider([ProviderError("model is down")])
    one = agent(parent_script(), SubAgentTool(runner=LoopRunner(provider=child)), hooks={"spawn:error": failed.append})
    received, result = await streamed(one)
    assert result.status == "completed"
    assert result_of(one).is_error
    assert "model is down" in result.text
    assert [each.error for each in failed] == ["model is down"]
    assert [event.status for event in received if isinstance(event, SubAgentEnd)] == ["failed"]


async def test_usage_of_a_sub_agent_counts_for_its_parent_and_limits_both() -> None:
    spends = Usage(input_tokens=100, cost_usd=0.5)
    model = parent_script(say("three", usage=spends))
    received, result = await streamed(agent(model, SubAgentTool()))
    assert result.usage.input_tokens == 100
    assert [event.usage.cost_usd for event in received if isinstance(event, SubAgentEnd)] == [0.5]

    looks = Step(tool_calls=call("look").tool_calls, usage=spends, repeat=True)
    limits = ExecutionLimits(max_cost_usd=1.0)
    one = agent(parent_script(looks), look, SubAgentTool(), behavior=Behavior(limits=limits))
    received, result = await streamed(one)
    assert (result.status, result.limit, result.usage.cost_usd) == ("limited", "cost", 1.0)
    assert "it stopped at its limit (cost)" in result_of(one).text


async def test_turn_limit_of_a_sub_agent_ends_it_alone_with_its_last_text() -> None:
    looks = Step(text="so far: 2", tool_calls=call("look").tool_calls, repeat=True)
    one = agent(parent_script(looks), look, SubAgentTool(limits=ExecutionLimits(max_turns=2)))
    _, result = await streamed(one)
    assert result.status == "completed"
    assert not result_of(one).is_error
    assert result.text.startswith("so far: 2")
    assert "it stopped at its limit (turns)" in result.text


async def test_sub_agents_delegate_down_to_the_depth_limit() -> None:
    deep = SubAgentTool(max_depth=2)
    main = [Step(tool_calls=call("delegate", task="outer").tool_calls, task="go"), say("{{result}}", task="go")]
    outer = [Step(tool_calls=call("delegate", task="inner").tool_calls, task="outer"), say("{{result}}", task="outer")]
    model = ScriptedProvider([*main, *outer, say("deepest", task="inner", usage=Usage(input_tokens=7))])
    asked: list[tuple[str, int]] = []
    one = agent(model, look, deep, hooks={"tool:gate": lambda gate: asked.append((gate.name, gate.depth))})
    received, result = await streamed(one)
    assert result.text == "deepest"
    tools = [[each.name for each in request.tools] for request in model.requests]
    assert tools[:3] == [["look", "delegate"], ["look", "delegate"], ["look"]]
    assert asked == [("delegate", 0), ("delegate", 1)]
    assert result.usage.input_tokens == 7
    inner = [e.event for e in received if isinstance(e, SubAgentEvent) and isinstance(e.event, SubAgentStart)]
    assert [event.depth for event in inner] == [2]


async def test_delegation_at_the_depth_limit_is_refused() -> None:
    """The tool is not offered there, but an agent of one's own can have it at any depth."""
    spawned_by = SpawnRef(parent_session_id="s", parent_loop_id="l", tool_call_id="c", tool_name="delegate")
    model = ScriptedProvider([call("delegate", task="more"), say("{{result}}")])
    _, result = await streamed(agent(model, SubAgentTool(max_depth=1)), spawned_by=spawned_by)
    assert "sub-agents of depth 1 cannot delegate further" in result.text


async def test_gate_for_calls_of_sub_agents_fires_once_at_each_depth() -> None:
    main = [Step(tool_calls=call("delegate", task="outer").tool_calls, task="go"), say("{{result}}", task="go")]
    outer = [Step(tool_calls=call("delegate", task="inner").tool_calls, task="outer"), say("{{result}}", task="outer")]
    inner = [Step(tool_calls=call("look").tool_calls, task="inner"), say("{{result}}", task="inner")]
    asked: list[tuple[str, int]] = []
    hooks = {"child:tool:gate": lambda gate: asked.append((gate.name, gate.depth))}
    one = agent(ScriptedProvider([*main, *outer, *inner]), look, SubAgentTool(max_depth=2), hooks=hooks)
    _, result = await streamed(one)
    assert result.text == "seen"
    assert asked == [("delegate", 1), ("look", 2)]


async def test_abort_of_the_parent_ends_the_sub_agent_and_stores_both() -> None:
    store = MemorySessionStore()
    child = ScriptedProvider([say("never", wait="gate")])
    one = agent(parent_script(), SubAgentTool(runner=LoopRunner(provider=child)), store=store)
    received: list[LoopEvent] = []

    async def on_event(event: LoopEvent) -> None:
        received.append(event)

    with anyio.fail_after(WAIT):
        async with anyio.create_task_group() as tasks:

            async def abort() -> None:
                await child.reached("gate")
                one.abort("enough")

            tasks.start_soon(abort)
            with pytest.raises(AbortedError):
                await one.run("go", on_event=on_event)
    (ended,) = [event for event in received if isinstance(event, SubAgentEnd)]
    assert ended.status == "aborted"
    stored = await store.load(ended.subagent_id)
    assert [loop.status for loop in stored.loops] == ["aborted"]
    assert one.session.loops[0].status == "aborted"


async def test_runner_can_be_any_program() -> None:
    tasks: list[SubAgentTask] = []

    async def other_agent(task: SubAgentTask) -> SubAgentReport:
        tasks.append(task)
        task.spend(Usage(input_tokens=11))
        return SubAgentReport(status="completed", text="from elsewhere")

    _, result = await streamed(agent(parent_script(), SubAgentTool(runner=other_agent)))
    assert result.text == "from elsewhere"
    assert result.usage.input_tokens == 11
    assert [(task.prompt, task.spawned_by.depth) for task in tasks] == [("count", 1)]

    async def broken(task: SubAgentTask) -> SubAgentReport:
        raise LookupError("no such program")

    one = agent(parent_script(), SubAgentTool(runner=broken))
    received, result = await streamed(one)
    assert "no such program" in result.text
    assert kinds(received).count("sub_agent_end") == 1


async def test_read_only_sub_agents_run_concurrently() -> None:
    inside = 0
    both = anyio.Event()

    async def meeting(task: SubAgentTask) -> SubAgentReport:
        nonlocal inside
        inside += 1
        if inside == 2:
            both.set()
        await both.wait()
        return SubAgentReport(status="completed", text=task.prompt)

    calls = (*call("delegate", task="a").tool_calls, *call("delegate", task="b").tool_calls)
    model = ScriptedProvider([Step(tool_calls=calls), "done"])
    _, result = await streamed(agent(model, SubAgentTool(runner=meeting, read_only=True)))
    assert result.text == "done"


async def test_unusable_settings_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="max_depth"):
        SubAgentTool(max_depth=0)
    _, result = await streamed(agent(parent_script(), SubAgentTool(runner=LoopRunner(tools=["missing"]))))
    assert "which its parent lacks" in result.text
