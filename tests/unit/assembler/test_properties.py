"""Properties of the assembler: any facts yield a conforming stream, and the same facts yield the same bytes."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from strategies import ENDINGS, FACTS, RUN_ID, any_facts, contexts, facts_of, plausible_runs

from agent_mux.assembler import Ending, StreamAssembler, StreamContext
from agent_mux.contract import validate
from agent_mux.events import AgentEvent, CostRecord, Rebuilder, encode_event
from agent_mux.sdk import facts

Step = facts.Fact | Callable[[StreamAssembler], None]
UNHURRIED = settings(suppress_health_check=list(HealthCheck))
SHOWN = StreamContext(run_id=RUN_ID, agent="someone", include_subagent_events=True)


def pause(assembler: StreamAssembler) -> None:
    assembler.pause()


def resume(assembler: StreamAssembler) -> None:
    assembler.resume()


def go_back_in_time(assembler: StreamAssembler) -> None:
    assembler.now -= 5


def set_raw(assembler: StreamAssembler) -> None:
    assembler.show_raw("native")


def assemble(
    context: StreamContext, steps: Sequence[Step], ending: Ending | None, *, tick: int = 1, eager: bool = False
) -> list[AgentEvent]:
    """Return the events of some facts. `ending=None`: the run does not end. `eager`: drain after each fact."""
    assembler = StreamAssembler(context)
    assembler.now = 1_763_762_400_000
    events: list[AgentEvent] = []
    for step in steps:
        assembler.now += tick
        if isinstance(step, facts.Fact):
            assembler.receive(step)
        else:
            step(assembler)
        if eager:
            events += assembler.drain()
    if ending is not None:
        assembler.end(ending)
    return events + assembler.drain()


def lines(events: Sequence[AgentEvent]) -> list[bytes]:
    return [encode_event(event) for event in events]


def of_type(events: Sequence[AgentEvent], *kinds: str) -> list[Any]:
    return [event for event in events if event.type in kinds]


# -- conformance


def test_strategies_cover_all_facts() -> None:
    assert len(FACTS) > 40
    assert facts.InSubagent in FACTS


@UNHURRIED
@given(contexts(), any_facts(), ENDINGS)
def test_any_facts_yield_a_conforming_stream(
    context: StreamContext, sequence: list[facts.Fact], ending: Ending
) -> None:
    assert validate(assemble(context, sequence, ending)) == []


@pytest.mark.slow
@UNHURRIED
@given(contexts(), plausible_runs(), ENDINGS)
def test_a_plausible_run_yields_a_conforming_stream(
    context: StreamContext, sequence: list[facts.Fact], ending: Ending
) -> None:
    assert validate(assemble(context, sequence, ending)) == []


@pytest.mark.slow
@UNHURRIED
@given(contexts(), plausible_runs() | any_facts(), ENDINGS, st.data())
def test_a_run_that_ends_after_any_fact_conforms(
    context: StreamContext, sequence: list[facts.Fact], ending: Ending, data: st.DataObject
) -> None:
    length = data.draw(st.integers(0, len(sequence)))
    assert validate(assemble(context, sequence[:length], ending)) == []
    assert validate(assemble(context, sequence[:length], None), complete=False) == []


@pytest.mark.slow
@UNHURRIED
@given(contexts(), plausible_runs() | any_facts(), any_facts(max_size=5), ENDINGS, st.data())
def test_pauses_clock_changes_and_late_facts_conform(
    context: StreamContext, sequence: list[facts.Fact], late: list[facts.Fact], ending: Ending, data: st.DataObject
) -> None:
    steps: list[Step] = list(sequence)
    for disturbance in data.draw(st.lists(st.sampled_from([pause, resume, set_raw, go_back_in_time]), max_size=6)):
        steps.insert(data.draw(st.integers(0, len(steps))), disturbance)

    def end(assembler: StreamAssembler) -> None:
        assembler.end(ending)

    after: list[Step] = [end, *late, pause, end]
    assert validate(assemble(context, [*steps, *after], None, tick=data.draw(st.integers(0, 3)))) == []


@pytest.mark.parametrize("kind", FACTS)
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_a_single_fact_conforms(kind: type[facts.Fact], data: st.DataObject) -> None:
    fact = data.draw(facts_of(kind))
    for context in (SHOWN, StreamContext(run_id=RUN_ID, agent="someone", buffered=True, show_approvals=False)):
        assert validate(assemble(context, [fact], Ending(code=0))) == []
        assert validate(assemble(context, [fact, fact], Ending(code=0))) == []


@pytest.mark.slow
@UNHURRIED
@given(contexts(), plausible_runs() | any_facts(), ENDINGS)
def test_decoded_streams_conform_in_both_forms(
    context: StreamContext, sequence: list[facts.Fact], ending: Ending
) -> None:
    events = assemble(context, sequence, ending)
    rebuilder, compact = Rebuilder(), Rebuilder()
    read = [rebuilder.decode(encode_event(event)) for event in events]
    rebuilt = [compact.decode(encode_event(event, accumulated=False)) for event in events]
    assert read == rebuilt == events
    assert validate(rebuilt) == []


# -- determinism


@pytest.mark.slow
@UNHURRIED
@given(contexts(), plausible_runs() | any_facts(), ENDINGS)
def test_the_same_facts_yield_the_same_bytes(
    context: StreamContext, sequence: list[facts.Fact], ending: Ending
) -> None:
    once = lines(assemble(context, sequence, ending))
    assert once == lines(assemble(context, sequence, ending))
    assert once == lines(assemble(context, sequence, ending, eager=True))


# -- completeness


@UNHURRIED
@given(plausible_runs(), ENDINGS)
def test_text_is_emitted_exactly_once(sequence: list[facts.Fact], ending: Ending) -> None:
    for buffered in (False, True):
        context = StreamContext(run_id=RUN_ID, agent="someone", buffered=buffered)
        events = assemble(context, sequence, ending)
        text = "".join(fact.text for fact in sequence if isinstance(fact, facts.TextDelta | facts.WholeText))
        thinking = "".join(
            fact.text for fact in sequence if isinstance(fact, facts.ThinkingDelta | facts.WholeThinking)
        )
        assert "".join(event.text for event in of_type(events, "message_stop")) == text
        assert "".join(event.delta for event in of_type(events, "text_delta")) == text
        assert "".join(event.thinking for event in of_type(events, "thinking_stop")) == thinking
        assert "".join(event.delta for event in of_type(events, "thinking_delta")) == thinking


@pytest.mark.slow
@UNHURRIED
@given(plausible_runs(), ENDINGS)
def test_interleaved_calls_end_with_their_own_results(sequence: list[facts.Fact], ending: Ending) -> None:
    events = assemble(SHOWN, sequence, ending)
    inner = [fact.fact if isinstance(fact, facts.InSubagent) else fact for fact in sequence]
    done = {fact.call_id: fact for fact in inner if isinstance(fact, facts.ToolDone)}
    ends = of_type(events, "tool_result", "tool_error")
    ready = of_type(events, "tool_call_ready")
    assert sorted(event.tool_call_id for event in ends) == sorted(event.tool_call_id for event in ready)
    for event in ends:
        fact = done.get(event.tool_call_id)
        if fact is not None and event.type == "tool_result":
            assert fact.error is None


@pytest.mark.slow
@UNHURRIED
@given(contexts(buffered=True), plausible_runs() | any_facts(), ENDINGS)
def test_buffered_runs_emit_everything_whole(
    context: StreamContext, sequence: list[facts.Fact], ending: Ending
) -> None:
    events = assemble(context, sequence, ending)
    assert of_type(events, "tool_input_delta", "stream_fallback") == []
    assert len(of_type(events, "text_delta")) == len(of_type(events, "message_start"))
    assert len(of_type(events, "thinking_delta")) == len(of_type(events, "thinking_start"))
    assert [event.accumulated for event in of_type(events, "text_delta")] == [
        event.text for event in of_type(events, "message_stop")
    ]


@pytest.mark.slow
@UNHURRIED
@given(contexts(include_subagent_events=False), plausible_runs() | any_facts(), ENDINGS)
def test_events_inside_sub_agents_are_hidden_by_default(
    context: StreamContext, sequence: list[facts.Fact], ending: Ending
) -> None:
    events = assemble(context, sequence, ending)
    inside = [event for event in events if event.subagent_id is not None and not event.type.startswith("subagent_")]
    assert inside == []


@pytest.mark.slow
@UNHURRIED
@given(contexts(), plausible_runs() | any_facts(), ENDINGS)
def test_turns_are_counted_and_the_session_ends_once(
    context: StreamContext, sequence: list[facts.Fact], ending: Ending
) -> None:
    events = assemble(context, sequence, ending)
    (last,) = of_type(events, "session_end")
    assert last.turn_count >= len(of_type(events, "turn_end")) == len(of_type(events, "turn_start"))
    assert len(of_type(events, "session_start")) == 1


# -- impossible values

BAD_COST = CostRecord(total_usd=-1.0, input_tokens=0, output_tokens=0)


def test_a_call_id_is_used_once_in_a_run() -> None:
    spawn = facts.SubagentBegin("a", "helper", "go")
    inside = facts.InSubagent("a", facts.ToolReady("c", "Bash", {}))
    assert validate(assemble(SHOWN, [facts.ToolReady("c", "Bash", {}), spawn, inside], Ending(code=0))) == []


@pytest.mark.parametrize(
    "fact",
    [
        facts.Usage(-1, 0),
        facts.RunCost(BAD_COST),
        facts.TurnDone(BAD_COST),
        facts.RateLimited(-1),
        facts.ContextCompacted("", -1),
        facts.TurnLimitHit(-1),
        facts.TurnFailed(facts.Failure("RATE_LIMITED", "slow down", retry_after_ms=-1)),
        facts.ToolDone("c", files=(facts.FileWritten("a", -1, created=True),)),
    ],
)
def test_negative_numbers_are_not_emitted(fact: facts.Fact) -> None:
    assert validate(assemble(SHOWN, [fact], Ending(code=0))) == []


@pytest.mark.parametrize("steps", [[pause, pause], [resume], [pause, resume, resume]])
def test_pauses_and_resumptions_alternate(steps: list[Step]) -> None:
    assert validate(assemble(SHOWN, steps, Ending(code=0))) == []


@pytest.mark.parametrize(
    "notice",
    [
        facts.RateLimited(5),
        facts.RecoverableError("RATE_LIMITED", "slow"),
        facts.ContextFilling(1, 2),
        facts.SkillInvoked("s"),
        facts.CheckpointSaved("c"),
        facts.ToolDone("late", "x"),
        facts.Usage(1, 1),
    ],
)
def test_a_notice_after_the_closing_message_does_not_invalidate_it(notice: facts.Fact) -> None:
    assembler = StreamAssembler(SHOWN)
    for fact in (facts.TextDelta("hi"), facts.TurnDone(), notice):
        assembler.receive(fact)
    assert assembler.end(Ending(code=0)).exit_reason == "completed"
    assert validate(assembler.drain()) == []


def test_work_after_the_closing_message_requires_another_one() -> None:
    assembler = StreamAssembler(SHOWN)
    for fact in (facts.TextDelta("hi"), facts.TurnDone(), facts.TextDelta("and")):
        assembler.receive(fact)
    assert assembler.end(Ending(code=0)).exit_reason == "truncated"
