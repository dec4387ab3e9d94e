"""The version of the agent's program in the event stream, in errors and in the verdict."""

from typing import Any

import pytest

from agent_mux.assembler import Ending, StreamAssembler, StreamContext
from agent_mux.events import AgentEvent
from agent_mux.sdk import facts

TESTED = ("1.2.0", "1.9.0")
DONE = (facts.TurnBegin(), facts.WholeText("hi"), facts.TurnDone())


def assembler(**context: Any) -> StreamAssembler:
    values = {"agent": "wombat", "display_name": "Wombat", "tested_versions": TESTED, **context}
    return StreamAssembler(StreamContext(run_id="0" * 26, **values))


def played(stream: StreamAssembler, *received: facts.Fact, ending: Ending | None = None) -> list[AgentEvent]:
    for fact in received:
        stream.receive(fact)
    stream.end(ending or Ending(code=0))
    return stream.drain()


def notes(events: list[AgentEvent]) -> list[tuple[str, str]]:
    return [(event.level, event.message) for event in events if event.type == "debug"]


def test_version_known_before_the_start_is_in_session_start() -> None:
    events = played(assembler(agent_version="1.9.0"), facts.SessionKnown("s"), *DONE)
    assert events[0].agent_version == "1.9.0"  # type: ignore[union-attr]
    assert notes(events) == []


def test_version_that_the_agent_reports_wins() -> None:
    stream = assembler(agent_version="1.0.0")
    events = played(stream, facts.AgentVersion("1.9.0"), facts.SessionKnown("s"), *DONE)
    assert events[0].agent_version == stream.agent_version == "1.9.0"  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("version", "level", "words"),
    [("1.3.0", "verbose", "within"), ("2.0.0", "info", "newer"), ("1.0.0", "warn", "amux update wombat")],
)
def test_untested_version_is_reported_once(version: str, level: str, words: str) -> None:
    known = facts.AgentVersion(version)
    [(reported, message)] = notes(played(assembler(), known, facts.SessionKnown("s"), known, *DONE))
    assert reported == level
    assert words in message


def test_version_that_is_reported_late_is_in_the_result_only() -> None:
    stream = assembler()
    events = played(stream, facts.SessionKnown("s"), facts.AgentVersion("2.0.0"), *DONE)
    assert events[0].agent_version is None  # type: ignore[union-attr]
    assert (stream.agent_version, len(notes(events))) == ("2.0.0", 1)


def test_program_of_any_version_is_never_reported() -> None:
    assert notes(played(assembler(agent_version="9.9.9", tested_versions=()), *DONE)) == []


def test_crash_names_the_version_and_the_next_step() -> None:
    stream = assembler(agent_version="1.0.0")
    verdict = stream.end(Ending(code=1, stderr="no such option"))
    assert verdict.failure is not None
    assert verdict.failure.message == (
        "Wombat 1.0.0 exited with code 1 before its closing message: no such option "
        "(version 1.0.0 is older than the tested range, 1.2.0 to 1.9.0; update it: amux update wombat)"
    )


def test_refused_handshake_of_an_old_release_names_the_next_step() -> None:
    failed = facts.TurnFailed(facts.Failure("AGENT_CRASH", "Unhandled method"))
    events = played(assembler(agent_version="1.0.0"), failed)
    [error] = [event for event in events if event.type == "error"]
    assert "Unhandled method (version 1.0.0 is older" in error.message


@pytest.mark.parametrize(
    ("version", "code"), [("1.3.0", "AGENT_CRASH"), ("2.0.0", "AGENT_CRASH"), ("1.0.0", "AUTH_ERROR")]
)
def test_error_that_the_version_does_not_explain_stays_as_it_is(version: str, code: Any) -> None:
    stream = assembler(agent_version=version)
    stream.receive(facts.TurnFailed(facts.Failure(code, "the provider refused")))
    verdict = stream.end(Ending(code=0))
    assert verdict.failure is not None
    assert verdict.failure.message == "the provider refused"


def test_fallback_to_another_agent_has_its_own_version() -> None:
    stream = assembler(agent_version="1.9.0")
    stream.receive(facts.SessionKnown("s"))
    stream.receive(facts.TurnBegin())
    other = StreamContext(run_id="0" * 26, agent="badger", agent_version="7.0.0", tested_versions=("6.0.0",))
    stream.restart(facts.Retrying(1, 1, "limited"), other)
    events = played(stream, *DONE)
    assert stream.agent_version == "7.0.0"
    assert [message for _, message in notes(events) if message.startswith("badger 7.0.0 is newer")]
