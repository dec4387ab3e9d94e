"""Whatever Hermes prints: nothing raises, nothing is dropped."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from hermes_transcript import LIVE, USAGE, Talk, event, line_of, new_codec
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_mux import actions, facts
from agent_mux.adapter import Source, Step
from agent_mux.effects import Effect
from agent_mux.native_json import load_object
from agent_mux.testing.fixtures import find_fixtures, load_fixture
from agent_mux_adapters.hermes import ADAPTER
from agent_mux_adapters.hermes.silent import SILENT

RECORDINGS = [load_fixture(folder) for folder in find_fixtures(Path(__file__).parents[4] / "fixtures", "hermes")]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
ANYTHING = JSON | st.sampled_from([10**30, -1, "\ud800", {}, [], "", "complete", {"type": {}}, float("nan")])


def lines_of(protocol: str) -> list[bytes]:
    """One line of each kind that a protocol has, from all recordings."""
    found: dict[str, bytes] = {}
    for fixture in RECORDINGS:
        for line in fixture.stdout_lines if fixture.protocol == protocol else ():
            native = load_object(line) or {}
            params = native.get("params") or {}
            update = params.get("update") or {}
            kind = f"{native.get('method')} {params.get('type')} {update.get('sessionUpdate')} {'id' in native}"
            found.setdefault(kind, line)
    return list(found.values())


LINES = [(protocol, line) for protocol in ADAPTER.protocols for line in lines_of(protocol)]


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
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


@st.composite
def damaged(draw: st.DrawFn) -> tuple[str, bytes]:
    """A real line with some values replaced by anything."""
    protocol, line = draw(st.sampled_from([pair for pair in LINES if pair[1].startswith(b"{")]))
    native = json.loads(line)
    for _ in range(draw(st.integers(1, 3))):
        native = with_part(native, draw(st.sampled_from(places(native))), draw(ANYTHING))
    return protocol, json.dumps(native).encode()


def check(steps: list[Step]) -> None:
    assert all(isinstance(step, facts.Fact | Effect) for step in steps)
    told = [step for step in steps if isinstance(step, facts.Fact)]
    assert told
    assert len(told) == 1 or not any(isinstance(fact, facts.Ignored | facts.Unknown) for fact in told)


@settings(deadline=None)
@given(damaged())
def test_damaged_lines_are_survived(pair: tuple[str, bytes]) -> None:
    protocol, line = pair
    for prompt in (None, "hello"):
        codec = new_codec(protocol, prompt=prompt)
        list(codec.start())
        for _ in range(2):
            check(list(codec.receive(line, Source.STDOUT)))


@settings(deadline=None)
@given(kind=st.sampled_from(["message.complete", "tool.start", "tool.complete", "approval.request", "clarify.request",
                             "session.info", "status.update", "error", "subagent.start", "subagent.complete"]),
       payload=st.dictionaries(st.sampled_from(["text", "usage", "status", "tool_id", "name", "args", "result", "goal",
                                                "command", "choices", "request_id", "question", "mcp_servers", "kind",
                                                "subagent_id", "inline_diff", "running", "duration_s", "args_text",
                                                "stored_session_id", "message"]), ANYTHING))  # fmt: skip
def test_events_with_any_payload_are_survived(kind: str, payload: dict[str, Any]) -> None:
    line = json.dumps(event(kind, LIVE, **payload)).encode()
    talk = Talk()
    talk.opens()
    check(list(talk.codec.receive(line, Source.STDOUT)))
    check(list(talk.codec.receive(line, Source.STDOUT)))


@pytest.mark.parametrize("line", [b"", b"null", b"[]", b"{", b'{"jsonrpc": "2.0"}', b"\xff\xfe", b"Traceback:", b"{}"])
@pytest.mark.parametrize("source", list(Source))
def test_lines_of_no_protocol_are_shown(line: bytes, source: Source) -> None:
    for protocol in ADAPTER.protocols:
        check(list(new_codec(protocol).receive(line, source)))


def test_a_new_kind_of_event_is_unknown() -> None:
    (fact,) = new_codec().receive(line_of(event("weather.changed", text="rain")), Source.STDOUT)
    assert isinstance(fact, facts.Unknown)
    assert fact.kind == "weather.changed"


def test_a_silent_event_says_why() -> None:
    for kind, reason in SILENT.items():
        assert list(new_codec().receive(line_of(event(kind, None)), Source.STDOUT)) == [facts.Ignored(kind, reason)]


def test_fragments_are_read_alike_however_they_are_spelled() -> None:
    quick = line_of(event("message.delta", text="é\u2028"))
    slow = json.dumps(event("message.delta", text="é\u2028"), separators=(",", ":")).encode()
    assert quick.startswith(b'{"jsonrpc": "2.0", "method": "event", "params": {"type": "message.delta", ')
    assert list(new_codec().receive(quick, Source.STDOUT)) == list(new_codec().receive(slow, Source.STDOUT))


def test_actions_before_anything_happened_are_survived() -> None:
    for action in (
        actions.Interrupt(),
        actions.Steer("x"),
        actions.Deny("approval-1"),
        actions.Cancel(),
        actions.Close(),
    ):
        for prompt in (None, "hello"):
            assert all(isinstance(step, facts.Fact | Effect) for step in new_codec(prompt=prompt).request(action))


def test_a_turn_that_ends_twice_is_survived() -> None:
    talk = Talk()
    talk.opens()
    talk.begins()
    talk.ends("Yes.")
    talk.tells("message.complete", text="Yes.", usage=USAGE, status="complete")
    assert talk.is_closed
