"""Limits of a run that follow from its events."""

from agent_mux.events import AgentEvent, MessageStopEvent, StepEndEvent, StepStartEvent, TokenUsageEvent, TurnStartEvent
from agent_mux.run.budget import Budget, ExceededLimit
from agent_mux.sdk.options import RunOptions

RUN_ID = "0" * 26


def call(number: int, at: int, *content: AgentEvent) -> list[AgentEvent]:
    """Return the events of one model call."""
    who = (RUN_ID, "scripted", at)
    usage = TokenUsageEvent(*who, 100, 12)
    return [StepStartEvent(*who, 0, number, "generation"), *content, usage, StepEndEvent(*who, 0, number)]


def budget(seconds: float) -> Budget:
    limits = Budget(RunOptions(agent="scripted", prompt="hi", inactivity_timeout=seconds), agent_counts_turns=False)
    assert limits.observe([TurnStartEvent(RUN_ID, "scripted", 0, 0)]) is None
    return limits


def test_model_that_answers_with_nothing_is_inactive() -> None:
    limits = budget(5)
    assert [limits.observe(call(number, number * 1000)) for number in range(5)] == [None] * 5
    assert limits.observe(call(5, 5000)) == ExceededLimit("inactivity")


def test_model_that_answers_is_active() -> None:
    limits = budget(5)
    for number in range(20):
        answer = MessageStopEvent(RUN_ID, "scripted", number * 3000, "more")
        assert limits.observe(call(number, number * 3000, answer)) is None


def test_one_slow_model_call_is_left_to_the_timer() -> None:
    assert budget(5).observe(call(0, 60_000)) is None


def test_empty_model_calls_are_no_silence_without_a_limit() -> None:
    limits = budget(0)
    assert not limits.is_set
    assert [limits.observe(call(number, number * 60_000)) for number in range(5)] == [None] * 5
