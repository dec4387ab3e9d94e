"""Why the last answer of a turn ended, and what follows from it."""

import pytest

from agent_mux.assembler import Ending, Verdict
from agent_mux.assembler.emitter import StreamContext
from agent_mux.assembler.stream import StreamAssembler
from agent_mux.events import AgentEvent, DebugEvent, TurnEndEvent
from agent_mux.sdk import facts

RUN = "01JD0000000000000000000000"


def run(*sequence: facts.Fact, interactive: bool = False) -> tuple[list[AgentEvent], Verdict]:
    assembler = StreamAssembler(StreamContext(run_id=RUN, agent="test", interactive=interactive))
    for fact in sequence:
        assembler.receive(fact)
    verdict = assembler.end(Ending(code=0))
    return assembler.drain(), verdict


def warnings(events: list[AgentEvent]) -> list[str]:
    return [event.message for event in events if isinstance(event, DebugEvent) and event.level == "warn"]


def reasons(events: list[AgentEvent]) -> list[str | None]:
    return [event.stop_reason for event in events if isinstance(event, TurnEndEvent)]


@pytest.mark.parametrize("reason", ["end", "tool_use", None])
def test_usual_reason_is_in_the_end_of_the_turn(reason: facts.StopReason | None) -> None:
    events, verdict = run(facts.WholeText("hi"), facts.TurnDone(stop_reason=reason))
    assert (reasons(events), warnings(events), verdict.exit_reason) == ([reason], [], "completed")


def test_cut_answer_completes_with_a_warning() -> None:
    events, verdict = run(facts.TextDelta("so f"), facts.TurnDone(stop_reason="length"))
    assert (reasons(events), warnings(events)) == (["length"], [facts.CUT_ANSWER])
    assert verdict == Verdict(exit_reason="completed")


def test_failed_turn_has_its_reason() -> None:
    filtered = facts.Failure("CONTENT_FILTERED", "blocked")
    events, verdict = run(facts.WholeText("I can"), facts.TurnFailed(filtered))
    assert (reasons(events), verdict) == (["filtered"], Verdict(exit_reason="failed", failure=filtered))


def test_reason_belongs_to_its_turn() -> None:
    events, _ = run(facts.TurnDone(stop_reason="length"), facts.WholeText("more"))
    assert reasons(events) == ["length", None]
