"""Facts about plugins and skills: each becomes its event, at the position that the contract requires."""

import math

import pytest
from test_properties import assemble

from agent_mux.assembler import Ending, StreamContext
from agent_mux.contract import validate
from agent_mux.events import QuotaWindow, TokenUsageEvent
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
