"""The events say what the model and the CLI said: all of it, once, in order."""

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from tests.conformance.truth import DEFAULT, EXCEPTIONS, Dialect, problem, said_by_events

from agent_mux.events import McpToolErrorEvent, McpToolResultEvent, ToolErrorEvent, ToolResultEvent
from agent_mux.sdk.adapter import Adapter
from agent_mux.sdk.registry import AdapterRegistry
from agent_mux_testing.conformance import Recorded
from agent_mux_testing.fixtures import find_fixtures

HERE = Path(__file__).parent
FIXTURES = HERE.parents[1] / "fixtures"
TRUTHS = {
    path.stem.removeprefix("truth_"): import_module(f"tests.conformance.{path.stem}")
    for path in sorted(HERE.glob("truth_*.py"))
}
"""By agent: how its scripts and its results are read, by other means than its adapter's."""


def _recordings(adapter: Adapter) -> list[Recorded]:
    """Those whose script is known."""
    recorded = (Recorded(adapter, folder) for folder in find_fixtures(FIXTURES, adapter.agent))
    return [one for one in recorded if one.fixture.script]


ALL = [recorded for agent in TRUTHS for recorded in _recordings(AdapterRegistry().get(agent))]
of_all = pytest.mark.parametrize("recorded", ALL, ids=repr)


def dialect_of(recorded: Recorded) -> Dialect:
    dialect: Dialect = TRUTHS[recorded.adapter.agent].DIALECT
    return dialect


@of_all
def test_everything_the_model_said_is_there_once_and_in_order(recorded: Recorded) -> None:
    found = problem(recorded, dialect_of(recorded))
    assert found is None, found


@pytest.mark.parametrize("recorded", [one for one in ALL if repr(one) in EXCEPTIONS], ids=repr)
def test_every_exception_is_needed(recorded: Recorded, monkeypatch: pytest.MonkeyPatch) -> None:
    assert EXCEPTIONS[repr(recorded)]["reason"]
    monkeypatch.delitem(EXCEPTIONS, repr(recorded))
    assert problem(recorded, dialect_of(recorded)) or list(result_problems(recorded))


def test_every_exception_is_of_a_recording() -> None:
    assert EXCEPTIONS.keys() <= set(map(repr, ALL))


@of_all
def test_a_lie_would_be_found(recorded: Recorded) -> None:
    script, events, dialect = recorded.fixture.script, recorded.played.events, dialect_of(recorded)
    said = [index for index, event in enumerate(events) if list(said_by_events([event], dialect))]
    is_free = any(step.get("repeat") or step.get("drop") for step in script.get("steps", []))
    defaults = [part.what for part in dialect.parts(script.get("default", DEFAULT))]
    verdict = recorded.played.verdict
    if is_free or verdict is None or verdict.exit_reason != "completed" or repr(recorded) in EXCEPTIONS:
        return
    for index in said:
        if getattr(events[index], "text", None) not in defaults:
            assert problem(recorded, dialect, [*events[:index], *events[index + 1 :]]), "it was left out"
            assert problem(recorded, dialect, [*events[: index + 1], *events[index:]]), "it was said twice"


@of_all
def test_every_result_is_there_once(recorded: Recorded) -> None:
    assert list(result_problems(recorded)) == []


def result_problems(recorded: Recorded) -> Iterator[str]:
    """What the CLI printed as the results of calls, read by other means than the adapter's, against the events."""
    ended = _ended(recorded)
    told = dict(ended)
    if len(told) != len(ended):
        yield "a call ended twice"
    delegated = {event.subagent_id for event in recorded.played.events if event.type == "subagent_spawn"}
    told_otherwise = EXCEPTIONS.get(repr(recorded), {}).get("told_otherwise", [])
    for call_id, text in TRUTHS[recorded.adapter.agent].native_results(recorded.fixture).items():
        if call_id in delegated or call_id in told_otherwise:
            continue
        if call_id not in told:
            yield f"{call_id} never ended; it was told: {text}"
        elif text and told[call_id].rstrip("\n") != text.rstrip("\n"):
            yield f"{call_id} was told: {text}; the events say: {told[call_id]}"


def _of_sub_agents(recorded: Recorded) -> list[dict[str, Any]]:
    """The answers of the model that sub-agents get."""
    return [step for step in recorded.fixture.script.get("steps", []) if step.get("first")]


@pytest.mark.parametrize("recorded", [one for one in ALL if _of_sub_agents(one)], ids=repr)
def test_what_sub_agents_say_is_inside_of_them(recorded: Recorded) -> None:
    dialect, steps = dialect_of(recorded), _of_sub_agents(recorded)
    inner = [part for step in steps for part in dialect.parts(step) for _ in range(int(step.get("repeat", 1)))]
    shown = recorded.play(recorded.records, include_subagent_events=True).events
    inside = list(said_by_events([e for e in shown if e.subagent_id and e.type != "subagent_spawn"], dialect))
    outside = list(said_by_events([e for e in shown if not e.subagent_id], dialect))
    assert not [part for part in inner if part in outside]
    for said in inside:
        expected = [part for part in inner if part.kind == said.kind]
        match = next((part for part in expected if part == said or dialect.same_call(part.what, said.what)), None)
        assert match is not None
        inner.remove(match)
    if any(said.kind == "text" for said in inside):  # the CLI was told to forward all of it
        assert inner == []


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
