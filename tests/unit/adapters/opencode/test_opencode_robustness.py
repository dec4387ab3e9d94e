"""Whatever OpenCode prints: nothing raises, nothing is dropped, and the hot path stays one."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from opencode_transcript import SESSION, Talk, delta, encoded, message, new_codec, text_part

from agent_mux import facts
from agent_mux.adapter import Exit, Source
from agent_mux.facts import Fact
from agent_mux.testing.fixtures import find_fixtures, load_fixture

FIXTURES = Path(__file__).parents[4] / "fixtures"
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
ANYTHING = JSON | st.sampled_from([10**30, -1, "\ud800", {}, [], "", "completed", {"type": {}}])


def lines_of(protocol: str) -> tuple[Any, ...]:
    """One line of each kind that a protocol has, from all recordings."""
    found: dict[str, Any] = {}
    for folder in find_fixtures(FIXTURES, "opencode"):
        fixture = load_fixture(folder)
        if fixture.protocol == protocol:
            for line in fixture.stdout_lines:
                native = json.loads(line)
                found.setdefault(_kind(native), native)
    return tuple(found.values())


def _kind(native: dict[str, Any]) -> str:
    part = native.get("part") or native.get("properties", {}).get("part") or {}
    return f"{native.get('type')} {part.get('type')} {part.get('tool')} {part.get('state', {}).get('status')}"


LINES = {protocol: lines_of(protocol) for protocol in ("serve", "run-json")}


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Where a value has parts."""
    keys: Any = value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    return [place for key in keys for place in ((*path, key), *places(value[key], (*path, key)))]


def with_odd(native: Any, place: tuple[Any, ...], value: Any) -> bytes:
    changed = copy.deepcopy(native)
    inner = changed
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    return json.dumps(changed).encode()


@pytest.mark.parametrize("protocol", LINES)
@settings(deadline=None)  # other tests run at the same time
@given(data=st.data(), value=ANYTHING)
def test_any_value_may_be_of_any_type(protocol: str, data: st.DataObject, value: Any) -> None:
    native = data.draw(st.sampled_from(LINES[protocol]))
    place = data.draw(st.sampled_from(places(native)))
    codec = new_codec(protocol)
    told = [step for step in codec.receive(with_odd(native, place, value), Source.STDOUT) if isinstance(step, Fact)]
    assert told
    assert len(told) == 1 or not any(isinstance(fact, facts.Ignored | facts.Unknown) for fact in told)
    list(codec.finish(Exit(code=0)))


@given(answer=ANYTHING)
def test_any_answer_may_be_anything(answer: Any) -> None:
    talk = Talk()
    talk.connects()
    for request_id in (1, 2, 3):
        assert talk.says(json.dumps({"id": request_id, "status": 200, "body": answer}).encode())


@given(status=ANYTHING, request_id=ANYTHING)
def test_an_answer_may_have_any_status_and_any_id(status: Any, request_id: Any) -> None:
    talk = Talk()
    talk.connects()
    assert talk.says(json.dumps({"id": request_id, "status": status}).encode())


def test_a_fragment_that_the_hot_path_cannot_read_is_read_the_long_way() -> None:
    talk = Talk().running()
    talk.says(message("m1"), text_part("m1", "", complete=False))
    odd = delta("m1", "x")
    odd["properties"]["delta"] = None
    [told] = talk.says(odd)
    assert isinstance(told, facts.Unknown | facts.Ignored)
    assert talk.says(b"\xff" + encoded(delta("m1", "x")))


def test_a_fragment_of_a_field_that_is_not_text_is_not_told() -> None:
    talk = Talk().running()
    odd = delta("m1", "x")
    odd["properties"]["field"] = "metadata"
    assert talk.says(odd) == [facts.Ignored("message.part.delta", "a field that is not shown")]


def test_fragments_of_other_sessions_are_not_told() -> None:
    talk = Talk().running()
    [told] = talk.says(delta("m1", "x", session="ses_x"))
    assert isinstance(told, facts.Ignored)
    talk.rests()
    [told] = talk.says(delta("m1", "x", session=SESSION))
    assert isinstance(told, facts.Ignored)
