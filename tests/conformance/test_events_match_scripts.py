"""The events contain every part of the model's script and every result of the CLI, once and in order."""

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from tests.conformance.script_comparison import DEFAULT, EXCEPTIONS, Dialect, find_difference, parts_of_events

from agent_mux.events import McpToolErrorEvent, McpToolResultEvent, ToolErrorEvent, ToolResultEvent
from agent_mux.sdk.adapter import Adapter
from agent_mux.sdk.registry import AdapterRegistry
from agent_mux_testing.conformance import Recorded
from agent_mux_testing.fixtures import find_fixtures

HERE = Path(__file__).parent
FIXTURES = HERE.parents[1] / "fixtures"
DIALECTS = {
    path.stem.removeprefix("scripts_"): import_module(f"tests.conformance.{path.stem}")
    for path in sorted(HERE.glob("scripts_*.py"))
}
"""By agent: the module that reads its scripts and results, independently of its adapter."""


def _recordings(adapter: Adapter) -> list[Recorded]:
    """Return the recordings of an agent that have a script."""
    recorded = (Recorded(adapter, folder) for folder in find_fixtures(FIXTURES, adapter.agent))
    return [one for one in recorded if one.fixture.script]


ALL = [recorded for agent in DIALECTS for recorded in _recordings(AdapterRegistry().get(agent))]
of_all = pytest.mark.parametrize("recorded", ALL, ids=repr)


def dialect_of(recorded: Recorded) -> Dialect:
    dialect: Dialect = DIALECTS[recorded.adapter.agent].DIALECT
    return dialect


@of_all
def test_events_contain_each_part_of_the_script_once_and_in_order(recorded: Recorded) -> None:
    found = find_difference(recorded, dialect_of(recorded))
    assert found is None, found


@pytest.mark.parametrize("recorded", [one for one in ALL if repr(one) in EXCEPTIONS], ids=repr)
def test_every_exception_is_needed(recorded: Recorded, monkeypatch: pytest.MonkeyPatch) -> None:
    assert EXCEPTIONS[repr(recorded)]["reason"]
    monkeypatch.delitem(EXCEPTIONS, repr(recorded))
    assert find_difference(recorded, dialect_of(recorded)) or list(result_problems(recorded))


def test_every_exception_names_a_recording() -> None:
    assert EXCEPTIONS.keys() <= set(map(repr, ALL))


@of_all
def test_missing_and_repeated_parts_are_found(recorded: Recorded) -> None:
    script, events, dialect = recorded.fixture.script, recorded.played.events, dialect_of(recorded)
    reporting = [index for index, event in enumerate(events) if list(parts_of_events([event], dialect))]
    is_ambiguous = any(step.get("repeat") or step.get("drop") for step in script.get("steps", []))
    defaults = [part.content for part in dialect.parts(script.get("default", DEFAULT))]
    verdict = recorded.played.verdict
    if is_ambiguous or verdict is None or verdict.exit_reason != "completed" or repr(recorded) in EXCEPTIONS:
        return
    for index in reporting:
        if getattr(events[index], "text", None) not in defaults:
            assert find_difference(recorded, dialect, [*events[:index], *events[index + 1 :]]), (
                "a missing part was not found"
            )
            assert find_difference(recorded, dialect, [*events[: index + 1], *events[index:]]), (
                "a repeated part was not found"
            )


@of_all
def test_events_contain_each_result_once(recorded: Recorded) -> None:
    assert list(result_problems(recorded)) == []


def result_problems(recorded: Recorded) -> Iterator[str]:
    """Yield the differences between the results that the CLI printed and those of the events."""
    ended = _ended(recorded)
    reported = dict(ended)
    if len(reported) != len(ended):
        yield "a call ended twice"
    delegated = {event.subagent_id for event in recorded.played.events if event.type == "subagent_spawn"}
    results_differ = EXCEPTIONS.get(repr(recorded), {}).get("results_differ", [])
    for call_id, text in DIALECTS[recorded.adapter.agent].native_results(recorded.fixture).items():
        if call_id in delegated or call_id in results_differ:
            continue
        if call_id not in reported:
            yield f"{call_id} has no result event; printed: {text}"
        elif text and reported[call_id].rstrip("\n") != text.rstrip("\n"):
            yield f"{call_id}: printed {text}; in the events: {reported[call_id]}"


def _of_sub_agents(recorded: Recorded) -> list[dict[str, Any]]:
    """Return the steps that answer sub-agents."""
    return [step for step in recorded.fixture.script.get("steps", []) if step.get("first")]


@pytest.mark.parametrize("recorded", [one for one in ALL if _of_sub_agents(one)], ids=repr)
def test_parts_of_sub_agents_have_their_id(recorded: Recorded) -> None:
    dialect, steps = dialect_of(recorded), _of_sub_agents(recorded)
    inner = [part for step in steps for part in dialect.parts(step) for _ in range(int(step.get("repeat", 1)))]
    shown = recorded.play(recorded.records, include_subagent_events=True).events
    inside = list(parts_of_events([e for e in shown if e.subagent_id and e.type != "subagent_spawn"], dialect))
    outside = list(parts_of_events([e for e in shown if not e.subagent_id], dialect))
    assert not [part for part in inner if part in outside]
    for actual in inside:
        expected = [part for part in inner if part.kind == actual.kind]
        match = next(
            (part for part in expected if part == actual or dialect.same_call(part.content, actual.content)), None
        )
        assert match is not None
        inner.remove(match)
    if any(part.kind == "text" for part in inside):  # the CLI forwards all parts of sub-agents
        assert inner == []


def _ended(recorded: Recorded) -> list[tuple[str, str]]:
    """Return the ids of the finished calls, with the results that the model received."""
    ended = []
    for event in recorded.played.events:
        match event:
            case ToolResultEvent() | McpToolResultEvent():
                ended.append((event.tool_call_id, event.output if isinstance(event.output, str) else ""))
            case ToolErrorEvent() | McpToolErrorEvent():
                ended.append((event.tool_call_id, event.error))
    return ended
