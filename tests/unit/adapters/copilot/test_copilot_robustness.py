"""Whatever copilot prints: nothing raises, nothing is dropped, and the events stay lawful."""

import copy
import json
from functools import cache
from typing import Any

import pytest
from copilot_transcript import NAMES, Talk, events_of, new_codec, recording
from hypothesis import given
from hypothesis import strategies as st

from agent_mux.actions import Answer, Approve, Cancel, Close, Deny, Interrupt, Send, Steer
from agent_mux.adapter import Exit, Source
from agent_mux.contract import validate
from agent_mux.effects import Effect
from agent_mux.facts import Fact
from agent_mux.native_json import load_object

PROTOCOLS = ("acp", "headless", "json")
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
ANYTHING = JSON | st.sampled_from([10**30, -1, "\ud800", {}, [], "", {"type": {}}, [["failed"]]])
ACTIONS = (
    Send("x"), Steer("y"), Interrupt(), Close(), Cancel(), Approve("r"), Deny("r", "no"), Answer("question:0", "a"),
)  # fmt: skip


@cache
def lines_of(protocol: str) -> list[bytes]:
    """One line of each kind that a protocol has, from all recordings."""
    found: dict[str, bytes] = {}
    for name in NAMES:
        if recording(name).protocol == protocol:
            for line in recording(name).stdout_lines:
                found.setdefault(kind_of(load_object(line) or {}), line)
    return list(found.values())


def kind_of(line: dict[str, Any]) -> str:
    params = line.get("params") or {}
    event, update = params.get("event") or {}, params.get("update") or {}
    kinds = (line.get("type"), line.get("method"), event.get("type"), update.get("sessionUpdate"), update.get("status"))
    return f"{kinds} {'id' in line} {'agentId' in (event or line)}"


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Where a value has parts."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, part in inner for place in places(part, (*path, key)))]


def with_part(value: Any, path: tuple[Any, ...], part: Any) -> Any:
    if not path:
        return part
    changed = copy.deepcopy(value)
    holder = changed
    for key in path[:-1]:
        holder = holder[key]
    holder[path[-1]] = part
    return changed


@pytest.mark.parametrize("protocol", PROTOCOLS)
@given(data=st.data())
def test_a_line_with_a_strange_part(protocol: str, data: st.DataObject) -> None:
    lines = lines_of(protocol)
    codec = new_codec(protocol)
    for _ in range(3):
        native = json.loads(data.draw(st.sampled_from(lines)))
        strange = with_part(native, data.draw(st.sampled_from(places(native))), data.draw(ANYTHING))
        steps = list(codec.receive(json.dumps(strange).encode("utf-8", "surrogatepass"), Source.STDOUT))
        assert steps
        assert all(isinstance(step, Fact) for step in steps)
    list(codec.finish(Exit(code=1)))


@given(data=st.data())
def test_a_live_conversation_with_a_strange_runtime(data: st.DataObject) -> None:
    talk = Talk(interactive=True)
    lines = lines_of("headless")
    for _ in range(8):
        if data.draw(st.booleans()):
            talk.want(data.draw(st.sampled_from(ACTIONS)))
        else:
            native = json.loads(data.draw(st.sampled_from(lines)))
            talk.says(with_part(native, data.draw(st.sampled_from(places(native))), data.draw(ANYTHING)))
    assert all(isinstance(step, Fact | Effect) for step in talk.steps)


@pytest.mark.parametrize("protocol", PROTOCOLS)
@given(line=st.binary(max_size=40) | st.sampled_from([b"{", b"[]", b"null", b'{"type":5}', b'{"id":[]}', b"\xff\xfe"]))
def test_any_bytes_are_told(protocol: str, line: bytes) -> None:
    codec = new_codec(protocol)
    for source in (Source.STDOUT, Source.STDERR):
        assert list(codec.receive(line, source))


@pytest.mark.parametrize("name", NAMES)
def test_recordings_are_lawful_with_the_insides_of_sub_agents(name: str) -> None:
    assert validate(events_of(name, include_subagent_events=True)) == []


def test_a_long_nesting_is_no_recursion() -> None:
    deep = b'{"type":"assistant.message","data":' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    for protocol in PROTOCOLS:
        assert list(new_codec(protocol).receive(deep, Source.STDOUT))
