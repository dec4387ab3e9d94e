"""Handoffs: who continues, what is kept, the bounds, the order of calls, and how a chain of loops ends."""

from typing import Any

import anyio
import pytest
from msgspec.structs import replace
from tests.unit.embedded.loop.harness import WAIT, agent, kinds, streamed

from agent_loop import (
    PLAN_AGENT,
    Agent,
    AgentRegistry,
    Behavior,
    ConfigurationError,
    ExecutionLimits,
    HandedOff,
    Handoff,
    LoopEnd,
    LoopRecord,
    LoopRunner,
    LoopStart,
    LoopVariant,
    MemorySessionStore,
    Preset,
    ScriptedProvider,
    Session,
    SubAgentEvent,
    SubAgentTool,
    ToolBudget,
    ToolMessage,
    assistant,
    compose_presets,
    fork,
    run_parallel,
    tool,
    tool_message,
    user,
    validate,
)
from agent_loop.errors import AbortedError
from agent_loop.events import LoopEvent
from agent_loop.hooks.contexts import BeforeLoop, ToolGate, ToolTransform
from agent_loop.messages import AssistantMessage, Message, ToolCall
from agent_loop.providers import ModelRequest, ModelResponse, OnChunk
from agent_loop.providers.script import Step, call, say
from agent_loop.sessions.resume import repair_session

pytestmark = pytest.mark.anyio


@tool(read_only=True)
def look() -> str:
    """Look."""
    return "seen"


@tool
def change() -> str:
    """Change."""
    return "changed"


def transfer(name: str, message: str = "take over", **known: Any) -> Step:
    return call("transfer_to_agent", agent=name, message=message, **known)


def reviewer(*answers: Any, **known: Any) -> Handoff:
    """Return a handoff to an agent "reviewer" with its own scripted model."""
    fields = {"name": "reviewer", "description": "Reviews changes.", "system_prompt": "You review.", **known}
    return Handoff(Preset(**fields), provider=ScriptedProvider(answers))


def results(one: Agent) -> list[ToolMessage]:
    return [message for message in one.messages if isinstance(message, ToolMessage)]


def model_of(handoff: Handoff) -> ScriptedProvider:
    assert isinstance(handoff.provider, ScriptedProvider)
    return handoff.provider


async def test_target_continues_the_conversation_and_gives_the_answer() -> None:
    target = reviewer("looks right")
    one = agent(
        ScriptedProvider([transfer("reviewer", "check it")]), look, handoffs=[target], system_prompt="You build."
    )
    received, result = await streamed(one)
    assert (result.text, result.agent, result.status, result.turns) == ("looks right", "reviewer", "completed", 2)
    (request,) = model_of(target).requests
    assert request.system == "You review."
    roles = [type(message).__name__ for message in request.messages]
    assert roles == ["UserMessage", "AssistantMessage", "ToolMessage"]
    assert [each.name for each in request.tools] == ["look"]  # it can hand off to nobody
    assert result.messages == one.messages
    assert len(one.messages) == 4
    validate(one.messages)
    (event,) = [each for each in received if isinstance(each, HandedOff)]
    assert (event.source, event.target, event.message) == ("main", "reviewer", "check it")


async def test_each_agent_has_a_loop_of_its_own_in_the_same_session() -> None:
    one = agent(ScriptedProvider([transfer("reviewer")]), handoffs=[reviewer("done")])
    received, result = await streamed(one)
    names = kinds(received)
    end = names.index("loop_end")
    assert names[end + 1] == "loop_start"
    assert names[names.index("handed_off") - 1 : end] == ["tool_call_end", "handed_off", "turn_end"]
    assert names.count("final") == 1
    starts = [each for each in received if isinstance(each, LoopStart)]
    ends = [each for each in received if isinstance(each, LoopEnd)]
    assert [each.agent for each in starts] == ["main", "reviewer"]
    assert [each.handed_off_to for each in ends] == ["reviewer", None]
    first, second = one.session.loops
    assert (second.parent_loop_id, second.base, second.agent_since) == (first.loop_id, 3, 3)
    assert second.loop_id == result.loop_id == f"{one.session.session_id}.reviewer.1"
    assert (first.handed_off_to, second.handed_off_to) == ("reviewer", None)
    assert one.session.total_usage() == result.usage == first.usage + second.usage
    assert list(one.messages) == one.session.history()


async def test_target_has_its_own_model_tools_options_and_what_it_does_not_set_is_that_of_the_first_agent() -> None:
    target = reviewer("ok", tools=[change], behavior=Behavior(temperature=0.5), system_prompt=None)
    first = ScriptedProvider([transfer("reviewer")])
    one = agent(first, look, handoffs=[target], system_prompt="You build.", behavior=Behavior(top_k=7))
    await streamed(one)
    (request,) = model_of(target).requests
    assert [each.name for each in request.tools] == ["look", "change"]
    assert (request.settings.temperature, request.settings.top_k) == (0.5, 7)
    assert request.system == "You build."


async def test_answer_of_the_target_has_the_form_that_the_run_asks_for() -> None:
    schema = {"type": "object", "properties": {"other": {"type": "string"}}, "required": ["other"]}
    own = Behavior(output_schema=schema)
    target = reviewer('{"total": 3}', tools=[look], behavior=own)
    behavior = Behavior(
        output_schema={"type": "object", "properties": {"total": {"type": "integer"}}, "required": ["total"]},
        tool_choice="transfer_to_agent",
    )
    _, result = await streamed(agent(ScriptedProvider([transfer("reviewer")]), handoffs=[target], behavior=behavior))
    assert result.output == {"total": 3}
    assert model_of(target).requests[0].tool_choice == "auto"


async def test_unknown_target_is_an_error_with_the_names() -> None:
    one = agent(ScriptedProvider([transfer("nobody"), say("{{result}}")]), handoffs=[reviewer(), Preset(name="tester")])
    received, result = await streamed(one)
    assert "'reviewer', 'tester'" in result.text
    assert result.agent == "main"
    assert not any(isinstance(each, HandedOff) for each in received)


async def test_tool_names_the_targets_and_what_they_are_for() -> None:
    model = ScriptedProvider(["done"])
    await streamed(agent(model, handoffs=[reviewer(), Handoff(Preset(name="a"), name="tester", description="Tests.")]))
    (definition,) = model.requests[0].tools
    parameter = definition.parameters["properties"]["agent"]
    assert parameter["enum"] == ["reviewer", "tester"]
    assert "- reviewer: Reviews changes.\n- tester: Tests." in parameter["description"]


async def test_calls_before_the_handoff_run_and_later_ones_are_answered() -> None:
    both = Step(
        tool_calls=(
            *call("change").tool_calls,
            *transfer("reviewer").tool_calls,
            *call("change").tool_calls,
            *transfer("reviewer").tool_calls,
        )
    )
    one = agent(ScriptedProvider([both]), change, handoffs=[reviewer("done")])
    _, result = await streamed(one)
    assert result.agent == "reviewer"
    first, handed, second, third = results(one)
    assert first.text == "changed"
    assert not handed.is_error
    for each in (second, third):
        assert each.is_error
        assert "handed off to another agent before this tool was started" in each.text
    validate(one.messages)


def back_and_forth(rounds: int) -> tuple[ScriptedProvider, Handoff]:
    """Return two models of which each hands off to the other, until it cannot."""
    ping: list[Any] = [transfer("reviewer") for _ in range(rounds)]
    pong = [transfer("main") for _ in range(rounds)]
    other = Handoff(Preset(name="reviewer", handoffs=["main"]), provider=ScriptedProvider([*pong, say("{{result}}")]))
    return ScriptedProvider([*ping, say("{{result}}")]), other


async def test_number_of_handoffs_is_bounded() -> None:
    first, other = back_and_forth(9)
    received, result = await streamed(agent(first, handoffs=[other]))
    assert sum(isinstance(each, HandedOff) for each in received) == 10
    assert "the limit of 10 handoffs in one run (max_handoffs) is reached" in result.text
    assert (result.agent, result.status) == ("main", "completed")


async def test_run_can_set_its_own_bound() -> None:
    first, other = back_and_forth(3)
    received, result = await streamed(agent(first, handoffs=[other]), behavior=Behavior(max_handoffs=1))
    assert sum(isinstance(each, HandedOff) for each in received) == 1
    assert "the limit of 1 handoffs" in result.text
    assert result.agent == "reviewer"


async def test_agent_that_gets_the_conversation_back_has_its_own_settings() -> None:
    other = Handoff(
        Preset(name="reviewer", handoffs=["main"], tools=[change], system_prompt="You review."),
        provider=ScriptedProvider([transfer("main")]),
    )
    first = ScriptedProvider([transfer("reviewer"), "finished"])
    one = agent(first, look, handoffs=[other], system_prompt="You build.")
    _, result = await streamed(one)
    assert (result.text, result.agent) == ("finished", "main")
    begun, again = first.requests
    assert (begun.system, begun.tools) == (again.system, again.tools)
    assert [record.agent for record in one.session.loops] == ["main", "reviewer", "main"]


async def test_limits_count_over_all_agents() -> None:
    target = reviewer(call("look"), call("look"), "never", behavior=Behavior(limits=ExecutionLimits(max_turns=40)))
    one = agent(ScriptedProvider([call("look"), transfer("reviewer")]), look, handoffs=[target])
    _, result = await streamed(one, behavior=Behavior(limits=ExecutionLimits(max_turns=3)))
    assert (result.status, result.limit, result.turns, result.agent) == ("limited", "turns", 3, "reviewer")
    assert "3 of 3 turns were used" in str(one.messages[-1])
    validate(one.messages)


async def test_target_cannot_raise_the_limits_of_the_run_but_lower_them() -> None:
    target = reviewer(call("look"), call("look"), behavior=Behavior(limits=ExecutionLimits(max_turns=2)))
    one = agent(ScriptedProvider([transfer("reviewer")]), look, handoffs=[target])
    _, result = await streamed(one)
    assert (result.limit, result.turns) == ("turns", 2)


async def test_final_summary_counts_the_iterations_of_all_agents() -> None:
    target = reviewer(call("look"), "summary")
    one = agent(ScriptedProvider([transfer("reviewer")]), look, handoffs=[target])
    _, result = await streamed(one, behavior=Behavior(max_iterations=2))
    assert (result.limit, result.text) == ("iterations", "summary")


async def test_gates_of_the_first_agent_decide_about_calls_of_the_target() -> None:
    asked: list[str] = []

    def deny(gate: ToolGate) -> None:
        asked.append(gate.name)
        if gate.name == "change":
            gate.block, gate.reason = True, "not approved"

    target = reviewer(call("change"), say("{{result}}"), tools=[change])
    one = agent(ScriptedProvider([transfer("reviewer")]), handoffs=[target], hooks={"tool:gate": deny})
    _, result = await streamed(one)
    assert result.text == "Blocked: not approved"
    assert asked == ["transfer_to_agent", "change"]


async def test_a_gate_can_refuse_a_handoff() -> None:
    def deny(gate: ToolGate) -> None:
        gate.block = gate.name == "transfer_to_agent"

    one = agent(
        ScriptedProvider([transfer("reviewer"), say("stayed")]), handoffs=[reviewer()], hooks={"tool:gate": deny}
    )
    _, result = await streamed(one)
    assert (result.text, result.agent) == ("stayed", "main")


async def test_restrictions_of_a_target_hold_for_it_only() -> None:
    target = Handoff(
        Preset(name="reviewer", mode="plan", handoffs=["main"]),
        provider=ScriptedProvider([call("change"), transfer("main")]),
    )
    one = agent(ScriptedProvider([transfer("reviewer"), call("change"), "done"]), change, handoffs=[target])
    _, result = await streamed(one)
    assert result.text == "done"
    blocked, back, allowed = results(one)[1:]
    assert "this agent only reads" in blocked.text
    assert not back.is_error
    assert allowed.text == "changed"


async def test_selected_tools_of_a_target_leave_it_its_handoffs() -> None:
    target = Handoff(
        Preset(name="reviewer", tool_names=["look"], handoffs=["main"]), provider=ScriptedProvider(["done"])
    )
    await streamed(agent(ScriptedProvider([transfer("reviewer")]), look, change, handoffs=[target]))
    assert [each.name for each in model_of(target).requests[0].tools] == ["look", "transfer_to_agent"]


async def test_target_sees_what_its_filter_keeps_and_the_session_keeps_everything() -> None:
    def last_prompt(before: Any) -> list[Message]:
        return [message for message in before if type(message).__name__ == "UserMessage"][-1:]

    filtered = Handoff(
        Preset(name="reviewer"), provider=ScriptedProvider([call("look"), "one", "two"]), history_filter=last_prompt
    )
    store = MemorySessionStore()
    one = agent(ScriptedProvider([transfer("reviewer")]), look, handoffs=[filtered], store=store)
    await streamed(one)
    requests = model_of(filtered).requests
    assert [len(request.messages) for request in requests] == [1, 3]
    again = agent(ScriptedProvider(), look, handoffs=[filtered], session=await store.load(one.session.session_id))
    await streamed(again, "and now")
    assert [type(each).__name__ for each in requests[2].messages] == [
        "UserMessage", "AssistantMessage", "ToolMessage", "AssistantMessage", "UserMessage"
    ]  # fmt: skip
    assert len(again.messages) == 8


async def test_filter_that_separates_calls_from_results_is_an_error() -> None:
    broken = Handoff(
        Preset(name="reviewer"), provider=ScriptedProvider(["never"]), history_filter=lambda before: before[:-1]
    )
    one = agent(ScriptedProvider([transfer("reviewer")]), handoffs=[broken])
    with anyio.fail_after(WAIT), pytest.raises(ConfigurationError, match="history filter of the handoff to 'reviewer'"):
        await one.run("go")
    validate(one.messages)


async def test_next_run_and_resumed_session_continue_with_the_agent_that_had_the_conversation() -> None:
    target = reviewer("one", "two", "three")
    store = MemorySessionStore()
    one = agent(ScriptedProvider([transfer("reviewer")]), handoffs=[target], store=store)
    await streamed(one)
    _, second = await streamed(one, "more")
    assert (second.text, second.agent) == ("two", "reviewer")
    other = agent(ScriptedProvider(), handoffs=[target], session=await store.load(one.session.session_id))
    _, third = await streamed(other, "more")
    assert (third.text, third.agent) == ("three", "reviewer")
    assert [record.agent_since for record in other.session.loops] == [0, 3, 3, 3]


async def test_process_that_ends_after_a_handoff_leaves_the_conversation_with_the_target() -> None:
    store = MemorySessionStore()
    stored: list[Session] = []

    async def keep(event: LoopEvent) -> None:
        if isinstance(event, LoopEnd) and event.handed_off_to is not None:
            stored.append(await store.load(one.session.session_id))

    one = agent(ScriptedProvider([transfer("reviewer")]), handoffs=[reviewer("done")], store=store)
    with anyio.fail_after(WAIT):
        await one.run("go", on_event=keep)
    assert [record.status for record in stored[0].loops] == ["running"]
    other = agent(ScriptedProvider(), handoffs=[reviewer("here")], session=stored[0])
    _, result = await streamed(other, "go on")
    assert (result.text, result.agent) == ("here", "reviewer")
    validate(other.messages)


def test_repair_of_an_earlier_loop_keeps_the_position_of_the_handoff() -> None:
    cut = LoopRecord(loop_id="s.main.1", messages=[user("go"), assistant("", ToolCall("1", "look", {}))], agent="main")
    asked = assistant("", ToolCall("2", "transfer_to_agent", {"agent": "reviewer", "message": "x"}))
    handed = LoopRecord(
        loop_id="s.main.2", parent_loop_id="s.main.1", base=2, agent="main", handed_off_to="reviewer",
        messages=[user("again"), asked, tool_message("2", "transfer_to_agent", "done")],
    )  # fmt: skip
    last = LoopRecord(
        loop_id="s.reviewer.1", parent_loop_id="s.main.2", base=5, agent="reviewer", agent_since=5,
        messages=[assistant("fine")],
    )  # fmt: skip
    repaired = repair_session(Session(session_id="s", agent_id="a", loops=[cut, handed, last]))
    assert repaired.holder(len(repaired.history())) == ("reviewer", 6)  # the result of the cut call was added


async def test_rerun_and_branch_belong_to_the_agent_that_had_that_part() -> None:
    first = ScriptedProvider([transfer("reviewer"), "alone"])
    target = reviewer("one", "again", "four")
    one = agent(first, handoffs=[target])
    with anyio.fail_after(WAIT):
        await one.run("go")
        branched = await one.continue_run("branch", at=3)
        assert (branched.text, branched.agent) == ("again", "reviewer")
        rerun = await one.continue_run("rerun")
        assert (rerun.text, rerun.agent) == ("alone", "main")


async def test_session_whose_agent_is_unknown_continues_with_the_first_one() -> None:
    store = MemorySessionStore()
    one = agent(ScriptedProvider([transfer("reviewer")]), handoffs=[reviewer("one")], store=store)
    await streamed(one)
    session = await store.load(one.session.session_id)
    received, result = await streamed(
        agent(ScriptedProvider(["mine"]), handoffs=[Preset(name="tester")], session=session), "more"
    )
    assert (result.text, result.agent) == ("mine", "main")
    assert "'reviewer', which is no handoff of this agent" in str([e for e in received if kinds([e]) == ["noted"]])


async def test_abort_while_the_target_runs_ends_the_run() -> None:
    one: Agent

    class Stops(ScriptedProvider):
        async def respond(self, _request: ModelRequest, _on_chunk: OnChunk) -> ModelResponse:
            one.abort("enough")
            await anyio.sleep_forever()
            raise AssertionError

    one = agent(ScriptedProvider([transfer("reviewer")]), handoffs=[Handoff(Preset(name="reviewer"), provider=Stops())])
    received, result = await streamed(one)
    assert isinstance(result.error, AbortedError)
    assert (result.status, result.agent) == ("aborted", "reviewer")
    assert kinds(received)[-1] == "loop_end"


async def test_abort_between_two_loops_ends_the_run() -> None:
    one: Agent
    target = reviewer("never")

    async def stop(event: LoopEvent) -> None:
        if isinstance(event, LoopEnd) and event.handed_off_to is not None:
            one.abort("enough")

    one = agent(ScriptedProvider([transfer("reviewer")]), handoffs=[target])
    with anyio.fail_after(WAIT), pytest.raises(AbortedError, match="enough"):
        await one.run("go", on_event=stop)
    assert [record.status for record in one.session.loops] == ["completed", "aborted"]


async def test_handoff_whose_result_becomes_an_error_does_not_count() -> None:
    def refuse(context: ToolTransform) -> None:
        if context.name == "transfer_to_agent":
            context.result = replace(context.result, is_error=True)

    one = agent(
        ScriptedProvider([transfer("reviewer"), "stayed"]), handoffs=[reviewer()], hooks={"tool:transform": refuse}
    )
    received, result = await streamed(one)
    assert (result.text, result.agent) == ("stayed", "main")
    assert "handed_off" not in kinds(received)


async def test_abort_after_a_handoff_leaves_the_conversation_with_the_target() -> None:
    one: Agent

    async def stop(event: LoopEvent) -> None:
        if isinstance(event, HandedOff):
            one.abort("enough")

    target = Handoff(Preset(name="reviewer"), provider=ScriptedProvider(closing="here"))
    one = agent(ScriptedProvider([transfer("reviewer")]), handoffs=[target])
    with anyio.fail_after(WAIT):
        result = await one.attempt("go", on_event=stop)
    assert (result.status, result.text) == ("aborted", "")
    _, result = await streamed(one, "go on")
    assert (result.text, result.agent) == ("here", "reviewer")
    validate(one.messages)


async def test_messages_that_arrive_during_a_handoff_reach_the_target() -> None:
    one: Agent

    async def steer(event: LoopEvent) -> None:
        if isinstance(event, HandedOff):
            one.steer("be brief")

    target = reviewer("ok")
    one = agent(ScriptedProvider([transfer("reviewer")]), handoffs=[target])
    with anyio.fail_after(WAIT):
        result = await one.run("go", on_event=steer)
    assert result.agent == "reviewer"
    assert "be brief" in str(model_of(target).requests[0].messages[-1])


async def test_target_whose_model_cannot_be_used_is_an_error_for_the_model() -> None:
    unusable = Preset(name="reviewer", model="no-such-provider:x")
    _, result = await streamed(agent(ScriptedProvider([transfer("reviewer"), say("{{result}}")]), handoffs=[unusable]))
    assert "no-such-provider" in result.text
    assert result.agent == "main"


async def test_loop_of_the_target_continues_the_one_before_without_a_prompt() -> None:
    seen: list[tuple[int, int]] = []

    def note(context: BeforeLoop) -> None:
        seen.append((context.loop_index, len(context.messages)))

    one = agent(ScriptedProvider([transfer("reviewer")]), handoffs=[reviewer("done")], hooks={"loop:before": note})
    received, _ = await streamed(one)
    assert seen == [(0, 0), (1, 3)]
    assert [each.continuation_kind for each in received if isinstance(each, LoopStart)] == [None, "default"]


async def test_fork_continues_with_the_agent_that_had_the_conversation() -> None:
    target = reviewer("one", "two")
    one = agent(ScriptedProvider([transfer("reviewer")]), handoffs=[target])
    await streamed(one)
    forked = agent(ScriptedProvider(), handoffs=[target], session=fork(one.session, "other"))
    _, result = await streamed(forked, "more")
    assert (result.text, result.agent) == ("two", "reviewer")


async def test_budget_of_a_tool_counts_over_all_agents() -> None:
    raised = Behavior(tool_budgets={"look": ToolBudget(max_calls=9)})
    target = reviewer(call("look"), say("{{result}}"), behavior=raised)
    behavior = Behavior(tool_budgets={"look": ToolBudget(max_calls=1)})
    one = agent(ScriptedProvider([call("look"), transfer("reviewer")]), look, handoffs=[target], behavior=behavior)
    await streamed(one)
    assert [each.is_error for each in results(one)] == [False, False, True]


async def test_target_that_only_reads_does_so_after_a_plan_that_another_agent_presented() -> None:
    async def accept(_question: str, _options: tuple[str, ...]) -> str:
        return "accept"

    target = Handoff(
        Preset(name="reviewer", mode="plan"), provider=ScriptedProvider([call("change"), say("{{result}}")])
    )
    planner = compose_presets(PLAN_AGENT, Preset(name="planner", tools=[change]))
    model = ScriptedProvider([call("present_plan", plan="change it"), call("change"), transfer("reviewer")])
    _, result = await streamed(planner.create(model, ask=accept, handoffs=[target]))
    assert "this agent only reads" in result.text


async def test_sub_agent_hands_off_inside_and_reports_the_answer_of_its_target() -> None:
    runner = LoopRunner(provider=ScriptedProvider([transfer("reviewer")]), handoffs=[reviewer("Reviewed")])
    parent = ScriptedProvider([call("delegate", task="look into it"), say("{{result}}")])
    one = agent(parent, SubAgentTool(runner=runner))
    received, result = await streamed(one)
    assert (result.text, result.agent) == ("Reviewed", "main")
    inside = [each.event for each in received if isinstance(each, SubAgentEvent)]
    assert [each.agent for each in inside if isinstance(each, LoopStart)] == ["delegate", "reviewer"]
    assert not any(isinstance(each, HandedOff) for each in received)
    assert len(one.session.loops) == 1


async def test_sub_agent_does_not_inherit_the_handoffs_of_its_parent() -> None:
    child = ScriptedProvider(["done"])
    parent = ScriptedProvider([call("delegate", task="look into it"), say("{{result}}")])
    await streamed(agent(parent, look, SubAgentTool(runner=LoopRunner(provider=child)), handoffs=[reviewer()]))
    assert [each.name for each in parent.requests[0].tools] == ["look", "delegate", "transfer_to_agent"]
    assert [each.name for each in child.requests[0].tools] == ["look"]


async def test_sub_agent_of_a_registry_hands_off_to_the_agents_that_it_names() -> None:
    registry = AgentRegistry(
        [Preset(name="searcher", description="Searches.", handoffs=["reader"]), Preset(name="reader")]
    )
    model = ScriptedProvider(
        [
            call("delegate", task="find it", agent="searcher"),
            transfer("reader"),
            say("read"),
            say("It was {{result}}."),
        ]
    )
    received, result = await streamed(agent(model, SubAgentTool(kinds=registry.sub_agents())))
    assert result.text == "It was read."
    inside = [each.event for each in received if isinstance(each, SubAgentEvent)]
    assert [each.target for each in inside if isinstance(each, HandedOff)] == ["reader"]


async def test_parallel_loops_do_not_hand_off() -> None:
    one = agent(ScriptedProvider(), handoffs=[reviewer()])
    model = ScriptedProvider(["alone"])
    with anyio.fail_after(WAIT):
        result = await run_parallel(one, "go", [LoopVariant(provider=model)], strategy="pick-first")
    assert result.selected is not None
    assert model.requests[0].tools == ()


INVALID: list[tuple[list[Any], str]] = [
    ([Preset(description="no name")], "needs a name"),
    ([Preset(name="a"), Preset(name="a")], "two agents of the handoffs are named 'a'"),
    ([Preset(name="main")], "two agents of the handoffs are named 'main'"),
    ([Preset(name="a", handoffs=["a"])], "names itself"),
    ([Preset(name="a", handoffs=["b"])], "hands off to 'b', which this agent does not know; known: a, main"),
]


@pytest.mark.parametrize(("handoffs", "message"), INVALID, ids=[message for _, message in INVALID])
async def test_invalid_handoffs_are_errors(handoffs: list[Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        Agent(ScriptedProvider(), handoffs=handoffs)


async def test_registry_creates_agents_with_the_handoffs_that_they_name() -> None:
    registry = AgentRegistry(
        [
            Preset(name="triage", handoffs=["billing"]),
            Preset(name="billing", handoffs=["refunds", "triage"]),
            Preset(name="refunds", system_prompt="You refund."),
        ]
    )
    model = ScriptedProvider([transfer("billing"), transfer("refunds"), "refunded"])
    one = registry.create("triage", model)
    _, result = await streamed(one)
    assert (result.text, result.agent) == ("refunded", "refunds")
    assert model.requests[-1].system == "You refund."
    assert [record.agent for record in one.session.loops] == ["triage", "billing", "refunds"]


@pytest.mark.parametrize("first", ["triage", "billing"])
def test_registry_reports_a_handoff_to_an_unknown_agent(first: str) -> None:
    registry = AgentRegistry([Preset(name="triage", handoffs=["billing"]), Preset(name="billing", handoffs=["nobody"])])
    with pytest.raises(ConfigurationError, match="handoffs of the agent 'billing': no agent is named 'nobody'"):
        registry.create(first, ScriptedProvider())


def test_preset_with_handoffs_needs_the_agents() -> None:
    with pytest.raises(ConfigurationError, match="AgentRegistry"):
        Preset(name="triage", handoffs=["billing"]).create(ScriptedProvider())


def test_call_of_the_tool_is_kept_with_its_message() -> None:
    (given,) = transfer("reviewer", "check it").tool_calls
    one = agent(ScriptedProvider([transfer("reviewer", "check it")]), handoffs=[reviewer("done")])
    one.run_sync("go")
    (answer,) = [each for each in one.messages if isinstance(each, AssistantMessage) and each.tool_calls]
    (made,) = [block for block in answer.content if isinstance(block, ToolCall)]
    assert made.arguments == given.arguments == {"agent": "reviewer", "message": "check it"}
