"""Facts beside the content of a turn: each becomes its event, at the position that the contract requires."""

import math

import pytest
from test_properties import assemble

from agent_mux.assembler import Ending, StreamContext
from agent_mux.contract import validate
from agent_mux.events import ErrorEvent, MessageStopEvent, QuotaWindow, TokenUsageEvent
from agent_mux.sdk import facts

CONTEXT = StreamContext(run_id="01ARZ3NDEKTSV4RRFFQ69G5FAV", agent="wombat")


@pytest.mark.parametrize(
    ("fact", "event_type", "is_in_turn"),
    [
        (facts.PluginLoaded("p", "plugin"), "plugin_loaded", False),
        (facts.SkillLoaded("dig"), "skill_loaded", False),
        (facts.AgentdocRead("/p/AGENTS.md"), "agentdoc_read", False),
        (facts.PluginInvoked("p", "plugin"), "plugin_invoked", True),
        (facts.PluginFailed("p", "plugin", "it broke"), "plugin_error", True),
        (facts.SkillInvoked("dig"), "skill_invoked", True),
        (facts.ImageAccepted("image/png"), "image_input_ack", True),
        (facts.ImageProduced("image/png", file_path="/p/a.png"), "image_output", True),
        (facts.ContextCompacted("shorter"), "context_compacted", True),
    ],
)
def test_fact_is_emitted_inside_or_before_the_turn(fact: facts.Fact, event_type: str, is_in_turn: bool) -> None:
    events = assemble(CONTEXT, [fact, facts.WholeText("a"), facts.TurnDone()], Ending(code=0))
    assert validate(events) == []
    types = [event.type for event in events]
    assert (types.index("turn_start") < types.index(event_type)) is is_in_turn


def test_report_of_the_quota_is_an_event_only_if_it_changes_something() -> None:
    first, other = QuotaWindow("five_hour", 0.5, 1000), QuotaWindow("seven_day", 0.1)
    reports = [(first,), (first,), (other,), (first, other), (QuotaWindow("five_hour", 0.6),)]
    events = assemble(CONTEXT, [*map(facts.QuotaReported, reports), facts.TurnDone()], Ending(code=0))
    assert validate(events) == []
    usage = [event for event in events if isinstance(event, TokenUsageEvent)]
    assert [event.quota for event in usage] == [(first,), (first, other), (QuotaWindow("five_hour", 0.6), other)]
    assert {(event.input_tokens, event.output_tokens) for event in usage} == {(0, 0)}
    assert not [event for event in events if event.type in {"cost", "rate_limited"}]


def test_impossible_numbers_of_the_quota_are_replaced() -> None:
    windows = (QuotaWindow("a", 1.7, -5), QuotaWindow("b", -0.1), QuotaWindow("c", math.nan))
    events = assemble(CONTEXT, [facts.QuotaReported(windows)], Ending(code=0))
    (usage,) = (event for event in events if isinstance(event, TokenUsageEvent))
    assert usage.quota == (QuotaWindow("a", 1.0), QuotaWindow("b", 0.0), QuotaWindow("c"))


def test_message_of_a_repeated_model_call_is_abandoned() -> None:
    inputs = [
        facts.TextDelta("half an"),
        facts.Retrying(1, 3, "dropped", 0),
        facts.WholeText("answer"),
        facts.TurnDone(),
    ]
    events = assemble(CONTEXT, inputs, Ending(code=0))
    assert validate(events) == []
    stops = [event for event in events if isinstance(event, MessageStopEvent)]
    assert [(event.text, event.abandoned) for event in stops] == [("half an", True), ("answer", None)]


USED = facts.Usage(100, 12)
THOUGHT = facts.WholeThinking("hm")


@pytest.mark.parametrize("content", [(), (THOUGHT,), (facts.Retrying(1, 3, "dropped", 0),)])
def test_turn_with_output_tokens_and_without_an_answer_fails(content: tuple[facts.Fact, ...]) -> None:
    events = assemble(CONTEXT, [facts.StepBegin(), *content, USED, facts.TurnDone()], Ending(code=0))
    assert validate(events) == []
    errors = [(event.code, event.message) for event in events if isinstance(event, ErrorEvent)]
    assert errors == [
        ("EMPTY_ANSWER", "wombat ended the turn without an answer, although the model produced 12 tokens")
    ]


@pytest.mark.parametrize(
    "content",
    [
        (facts.WholeText("done"), USED),
        (facts.TextDelta("done"), USED),
        (facts.ToolReady("c", "Read", {}), facts.ToolDone("c", "text"), USED),
        (facts.ContextCompacted("shorter"), USED),
        (facts.Usage(100, 0),),
        (),
    ],
)
@pytest.mark.parametrize("buffered", [False, True])
def test_turn_that_shows_something_completes(content: tuple[facts.Fact, ...], buffered: bool) -> None:
    context = StreamContext(run_id=CONTEXT.run_id, agent="wombat", buffered=buffered)
    events = assemble(context, [facts.StepBegin(), *content, facts.TurnDone()], Ending(code=0))
    assert [event for event in events if isinstance(event, ErrorEvent)] == []


def test_structured_answer_without_a_message_completes() -> None:
    events = assemble(CONTEXT, [USED, facts.TurnDone(structured_output={"a": 1})], Ending(code=0))
    assert [event for event in events if isinstance(event, ErrorEvent)] == []
