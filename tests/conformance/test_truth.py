"""The events say what the model and the CLI said: all of it, once, in order."""

from collections import Counter
from pathlib import Path

import pytest
from tests.conformance import truth_claude, truth_codex
from tests.conformance.truth import EXCEPTIONS, Dialect, problem, said_by_events

from agent_mux.adapter import Adapter
from agent_mux.events import McpToolErrorEvent, McpToolResultEvent, ToolErrorEvent, ToolResultEvent
from agent_mux.testing.conformance import Recorded
from agent_mux.testing.fixtures import find_fixtures
from agent_mux_adapters.claude import ADAPTER as CLAUDE
from agent_mux_adapters.codex import ADAPTER as CODEX

FIXTURES = Path(__file__).parents[2] / "fixtures"
DIALECTS = {"claude": truth_claude.DIALECT, "codex": truth_codex.DIALECT}


def _recordings(adapter: Adapter) -> list[Recorded]:
    return [Recorded(adapter, folder) for folder in find_fixtures(FIXTURES, adapter.agent)]


OF_CLAUDE, OF_CODEX = _recordings(CLAUDE), _recordings(CODEX)
of_claude = pytest.mark.parametrize("recorded", OF_CLAUDE, ids=repr)
of_codex = pytest.mark.parametrize("recorded", OF_CODEX, ids=repr)
of_both = pytest.mark.parametrize("recorded", [*OF_CLAUDE, *OF_CODEX], ids=repr)


def dialect_of(recorded: Recorded) -> Dialect:
    return DIALECTS[recorded.adapter.agent]


@of_both
def test_everything_the_model_said_is_there_once_and_in_order(recorded: Recorded) -> None:
    found = problem(recorded, dialect_of(recorded))
    assert found is None, found


@of_both
def test_every_exception_is_needed(recorded: Recorded, monkeypatch: pytest.MonkeyPatch) -> None:
    if repr(recorded) in EXCEPTIONS:
        assert EXCEPTIONS[repr(recorded)]["reason"]
        monkeypatch.delitem(EXCEPTIONS, repr(recorded))
        assert problem(recorded, dialect_of(recorded)) is not None


def test_every_exception_is_of_a_recording() -> None:
    assert EXCEPTIONS.keys() <= {repr(recorded) for recorded in (*OF_CLAUDE, *OF_CODEX)}


@of_claude
def test_every_result_that_claude_told_the_model_is_there_once(recorded: Recorded) -> None:
    native = truth_claude.native_results(recorded.fixture)
    ended = _ended(recorded)
    assert max(Counter(call_id for call_id, _ in ended).values(), default=1) == 1
    told = dict(ended)
    delegated = {event.subagent_id for event in recorded.played.events if event.type == "subagent_spawn"}
    assert native.keys() - delegated <= told.keys()
    for call_id, text in native.items():
        if call_id in told and text:
            assert told[call_id].rstrip("\n") == text.rstrip("\n")


@of_codex
def test_every_output_that_codex_showed_is_there_once(recorded: Recorded) -> None:
    ended = _ended(recorded)
    assert max(Counter(call_id for call_id, _ in ended).values(), default=1) == 1
    told = dict(ended)
    late = set(EXCEPTIONS.get(repr(recorded), {}).get("late_results", []))
    for call_id, output in truth_codex.native_results(recorded.fixture).items():
        if output and call_id not in late:
            assert told[call_id] == output


@of_both
def test_what_sub_agents_say_is_inside_of_them(recorded: Recorded) -> None:
    dialect = dialect_of(recorded)
    inner = [part for step in recorded.fixture.script.get("steps", []) if step.get("first") for part in dialect.parts(step)]
    if not inner:
        return
    shown = recorded.play(recorded.records, include_subagent_events=True).events
    inside = list(said_by_events([e for e in shown if e.subagent_id and e.type != "subagent_spawn"], dialect))
    outside = list(said_by_events([e for e in shown if not e.subagent_id], dialect))
    for part in inner:
        assert part not in outside
        count = sum(other.kind == part.kind and dialect.same_call(part.what, other.what) if part.kind == "call" else other == part for other in inside)
        assert count <= 1
    if any(part.kind == "text" for part in inside):  # the CLI was told to forward them
        assert {part.kind for part in inner} == {part.kind for part in inside}


def _ended(recorded: Recorded) -> list[tuple[str, str]]:
    """The calls that ended, with what they told the model."""
    ended = []
    for event in recorded.played.events:
        match event:
            case ToolResultEvent() | McpToolResultEvent():
                ended.append((event.tool_call_id, event.output if isinstance(event.output, str) else ""))
            case ToolErrorEvent() | McpToolErrorEvent():
                ended.append((event.tool_call_id, event.error))
    return ended
