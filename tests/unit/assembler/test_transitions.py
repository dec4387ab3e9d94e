"""The transition table is total and balanced, and facts in an unusual order have the documented effect."""

from collections.abc import Sequence

import pytest

from agent_mux.assembler import Ending, StreamAssembler, StreamContext
from agent_mux.assembler.state_machine import StreamStateMachine
from agent_mux.assembler.transitions import TRANSITIONS, StreamEffect, StreamInput, StreamState, Transition
from agent_mux.events import TurnEndEvent
from agent_mux.sdk import facts

LAWFUL = [
    pytest.param(state, received, transition, id=f"{state}-{received}")
    for state, row in TRANSITIONS.items()
    for received, transition in row.items()
    if transition is not None
]
TURN_OF = {
    StreamState.IDLE: "none",
    StreamState.NOTICED: "open",
    StreamState.WORKING: "open",
    StreamState.HELD: "held",
    StreamState.ENDED: "none",
}
TURN_AFTER = {
    (StreamEffect.OPEN, "none"): "open",
    (StreamEffect.CLOSE, "open"): "none",
    (StreamEffect.HOLD, "open"): "held",
    (StreamEffect.RELEASE, "held"): "none",
}
"""For each effect on a turn, the only turn to which it applies, and the turn after it."""
ON_TURNS = {effect for effect, _ in TURN_AFTER}
of_all_states = pytest.mark.parametrize("state", StreamState)
of_all_transitions = pytest.mark.parametrize(("state", "received", "transition"), LAWFUL)


@of_all_states
def test_every_input_has_an_entry_in_every_state(state: StreamState) -> None:
    assert list(TRANSITIONS[state]) == list(StreamInput)


def test_every_effect_is_used_and_performed() -> None:
    used = {effect for case in LAWFUL for effect in case.values[2].effects}
    assert used == set(StreamEffect) == set(StreamStateMachine.EFFECTS)


@of_all_transitions
def test_turns_are_balanced(state: StreamState, received: StreamInput, transition: Transition) -> None:
    turn = TURN_OF[state]
    for effect in transition.effects:
        if effect in ON_TURNS:
            assert (effect, turn) in TURN_AFTER, f"{effect} in {received} with turn {turn}"
            turn = TURN_AFTER[effect, turn]
    assert turn == TURN_OF[transition.next_state]


@of_all_transitions
def test_transition_without_effects_keeps_the_state(
    state: StreamState, received: StreamInput, transition: Transition
) -> None:
    assert transition.effects or transition.next_state is state, received


@of_all_transitions
def test_work_after_a_closing_message_renews_it_once(
    state: StreamState, received: StreamInput, transition: Transition
) -> None:
    renews = received is StreamInput.RESTART or (received is StreamInput.WORK and state is not StreamState.WORKING)
    assert transition.effects.count(StreamEffect.RENEW) == renews


def test_content_is_settled_or_cut_before_its_turn_closes() -> None:
    for case in LAWFUL:
        effects = case.values[2].effects
        closing = [effect for effect in effects if effect in {StreamEffect.CLOSE, StreamEffect.HOLD}]
        settled = [effect for effect in effects if effect in {StreamEffect.SETTLE, StreamEffect.CUT}]
        assert len(settled) >= len(closing), case.id
        assert not closing or effects.index(settled[0]) < effects.index(closing[0]), case.id


def test_closing_messages_are_handled_while_the_agent_works_only() -> None:
    states = [state for state in StreamState if TRANSITIONS[state][StreamInput.HAND_BACK] is not None]
    assert states == [StreamState.WORKING]
    assert states == [state for state in StreamState if TRANSITIONS[state][StreamInput.DELEGATE] is not None]


def test_nothing_follows_the_end() -> None:
    assert set(TRANSITIONS[StreamState.ENDED].values()) == {None}


# -- facts in an unusual order


def stream(*sequence: facts.Fact) -> StreamAssembler:
    assembler = StreamAssembler(StreamContext(run_id="0" * 26, agent="someone", interactive=True))
    for fact in sequence:
        assembler.receive(fact)
    return assembler


def types(assembler: StreamAssembler) -> list[str]:
    return [event.type for event in assembler.drain()]


TURN = ["turn_start", "turn_end"]
FAILED = facts.TurnFailed(facts.Failure("RATE_LIMITED", "slow down"))
SUBAGENT = facts.SubagentBegin("s1", "explorer", "look")
REPORT = facts.SubagentDone("s1", "found")


@pytest.mark.parametrize(
    ("sequence", "expected"),
    [
        ((facts.TurnDone(),), TURN),
        ((facts.TurnDone(), facts.TurnDone()), [*TURN, *TURN]),
        ((facts.TurnBegin(), facts.TurnBegin(), facts.TurnDone()), TURN),
        ((facts.StepDone(), facts.TurnDone()), TURN),
        ((REPORT, facts.TurnDone()), TURN),
        ((facts.TurnDone(), facts.RunClosed(facts.TurnDone())), TURN),
        ((facts.RunClosed(facts.TurnDone()),), []),
        ((facts.TurnBegin(), facts.RunClosed(facts.TurnDone())), TURN),
        ((facts.TurnBegin(), facts.RunClosed(None)), ["turn_start"]),
        ((FAILED, facts.TurnBegin()), ["turn_start", "error", "turn_end", "turn_start"]),
        ((SUBAGENT, facts.TurnDone()), ["turn_start", "subagent_spawn"]),
        ((SUBAGENT, facts.TurnDone(), REPORT), ["turn_start", "subagent_spawn", "subagent_result", "turn_end"]),
        ((SUBAGENT, facts.TurnDone(), facts.TurnBegin()), ["turn_start", "subagent_spawn", "turn_end", "turn_start"]),
        ((facts.ToolDone("t1"), facts.ToolDone("t1")), ["turn_start"]),
        ((facts.RequestResolved("r1", granted=True),), None),
        ((facts.SkillLoaded("s", "/s"), facts.TurnDone(), facts.SkillLoaded("t", "/t")), ["skill_loaded", *TURN]),
    ],
)  # fmt: skip
def test_order_of_facts_is_repaired(sequence: Sequence[facts.Fact], expected: list[str] | None) -> None:
    kinds = types(stream(*sequence))
    tool_events = {"tool_call_start", "tool_call_ready", "tool_result"}
    if expected is None:
        assert kinds == []
    else:
        shown = [kind for kind in kinds if kind not in {"session_start", *tool_events}]
        assert shown == expected


def test_only_diagnostics_follow_the_end() -> None:
    assembler = stream(facts.TextDelta("hello"))
    assembler.end(Ending(code=0))
    assembler.drain()
    for fact in (facts.TextDelta("late"), facts.TurnDone(), facts.StepBegin(), SUBAGENT, facts.Usage(1, 1)):
        assembler.receive(fact)
    assembler.pause()
    assembler.resume()
    assembler.restart(facts.Retrying(1, 2, "again"))
    assert types(assembler) == []
    assembler.receive(facts.Note("after all", "info"))
    assert types(assembler) == ["debug"]


@pytest.mark.parametrize("sequence", [(), (facts.TextDelta("hello"),), (facts.TurnDone(),), (facts.RunClosed(None),)])
def test_second_end_emits_nothing_and_returns_the_same_verdict(sequence: Sequence[facts.Fact]) -> None:
    assembler, ending = stream(*sequence), Ending(code=0, cause="close")
    verdict = assembler.end(ending)
    assert "session_end" in types(assembler)
    assert assembler.end(ending) == verdict
    assert types(assembler) == []


def test_pauses_do_not_nest() -> None:
    assembler = stream()
    assembler.resume()
    assert types(assembler) == []
    for action in (assembler.pause, assembler.pause, assembler.resume, assembler.resume):
        action()
    assert types(assembler) == ["session_start", "paused", "resumed"]


@pytest.mark.parametrize(
    ("sequence", "reason"),
    [
        ((), "completed"),
        ((facts.TurnDone(),), "completed"),
        ((facts.TurnBegin(),), "truncated"),
        ((facts.TurnDone(), facts.RunClosed(None)), "truncated"),
        ((facts.TurnDone(), facts.RunClosed(None), facts.TurnDone()), "completed"),
        ((facts.TurnDone(), facts.ContextCompacted("short", 1)), "completed"),
        ((FAILED,), "failed"),
        ((FAILED, facts.TurnBegin()), "truncated"),
    ],
)
def test_verdict_follows_the_last_closing_message(sequence: Sequence[facts.Fact], reason: str) -> None:
    assembler = stream(*sequence)
    assert assembler.determine_verdict(Ending(code=0, cause="close")).exit_reason == reason
    assert assembler.end(Ending(code=0, cause="close")).exit_reason == reason


def verdict_of(fact: facts.Fact, ending: Ending) -> str:
    return stream(facts.TurnBegin(), fact).end(ending).exit_reason


def test_interruption_that_a_child_of_a_killed_agent_reports_is_a_kill() -> None:
    assert verdict_of(facts.TurnStopped(), Ending(signal=9)) == "killed"
    assert verdict_of(facts.TurnStopped(), Ending(signal=15)) == "interrupted"
    assert verdict_of(facts.TurnStopped(), Ending(code=0)) == "interrupted"
    assert verdict_of(facts.TurnStopped(), Ending(signal=9, cause="interrupt")) == "interrupted"
    assert verdict_of(facts.TurnStopped(), Ending(signal=9, cause="abort")) == "aborted"
    assert verdict_of(facts.TurnDone(), Ending(signal=9)) == "completed"


def test_tokens_after_the_closing_message_count_for_the_turn_that_waits_for_its_sub_agent() -> None:
    assembler = stream(
        facts.SubagentBegin("a", "helper", "go"), facts.Usage(1, 2), facts.TurnDone(), facts.Usage(3, 4),
        facts.SubagentDone("a", "done"), facts.WholeText("next"), facts.TurnDone(),
    )  # fmt: skip
    costs = [event.cost for event in assembler.drain() if isinstance(event, TurnEndEvent)]
    assert [(cost.input_tokens, cost.output_tokens) if cost else None for cost in costs] == [(4, 6), None]
