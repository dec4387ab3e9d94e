"""The input of a run, matched with the input of the recording."""

import json
from typing import Any

import pytest

from agent_mux_adapters.replay.playback import lines
from agent_mux_adapters.replay.playback.expectations import Expectations, MismatchError


def data(native: Any) -> bytes:
    return json.dumps(native).encode() + b"\n"


def control(key: str, subtype: str) -> dict[str, Any]:
    return {"type": "control_request", "request_id": key, "request": {"subtype": subtype}}


def answer(key: str, behavior: str) -> dict[str, Any]:
    inner = {"subtype": "success", "request_id": key, "response": {"behavior": behavior}}
    return {"type": "control_response", "response": inner}


REFUSED = {"type": "control_response", "response": {"subtype": "error", "request_id": "k"}}
USER = {"type": "user", "message": {}}


@pytest.mark.parametrize(
    ("native", "line"),
    [
        (USER, lines.ReplayLine("prompt")),
        (control("k", "initialize"), lines.ReplayLine("handshake", "initialize", '"k"')),
        (control("k", "interrupt"), lines.ReplayLine("interrupt", "", '"k"')),
        (control("k", "set_model"), lines.ReplayLine("aside", "set_model", '"k"')),
        (answer("k", "allow"), lines.ReplayLine("answer", "allow", '"k"')),
        (answer("k", "deny"), lines.ReplayLine("answer", "deny", '"k"')),
        (REFUSED, lines.ReplayLine("answer", "error", '"k"')),
        ({"type": "control_response", "response": None}, lines.ReplayLine("answer", "done", None)),
        ({"type": "keep_alive"}, lines.ReplayLine("aside", "keep_alive")),
        ({"id": 1, "method": "initialize"}, lines.ReplayLine("handshake", "initialize", "1")),
        ({"method": "initialized"}, lines.ReplayLine("handshake", "initialized")),
        ({"id": 2, "method": "thread/resume"}, lines.ReplayLine("handshake", "session", "2")),
        ({"id": 3, "method": "turn/start"}, lines.ReplayLine("prompt", "", "3")),
        ({"id": 4, "method": "turn/steer"}, lines.ReplayLine("steer", "", "4")),
        ({"id": 5, "method": "turn/interrupt"}, lines.ReplayLine("interrupt", "", "5")),
        ({"id": 6, "method": "thread/list"}, lines.ReplayLine("aside", "thread/list", "6")),
        ({"id": 0, "result": {"decision": "acceptForSession"}}, lines.ReplayLine("answer", "allow", "0")),
        ({"id": 0, "result": {"decision": {"acceptWithAmendment": {}}}}, lines.ReplayLine("answer", "allow", "0")),
        ({"id": 0, "result": {"decision": "cancel"}}, lines.ReplayLine("answer", "deny", "0")),
        ({"id": 0, "result": {"action": "decline"}}, lines.ReplayLine("answer", "deny", "0")),
        ({"id": "0", "result": {"answers": {}}}, lines.ReplayLine("answer", "done", '"0"')),
        ({"id": 0, "error": {}}, lines.ReplayLine("answer", "error", "0")),
        ([1], lines.ReplayLine("aside", "not a JSON object")),
    ],
)  # fmt: skip
def test_sent_lines_are_classified(native: Any, line: lines.ReplayLine) -> None:
    assert lines.parse_sent(data(native)) == line


def test_invalid_lines_are_asides_and_notices() -> None:
    for noise in (b"", b"not json", b"\xff", b"[" * 100_000, b"null"):
        assert lines.parse_sent(noise).kind == lines.ASIDE
        assert lines.parse_printed(noise).kind == lines.NOTICE


@pytest.mark.parametrize(
    ("native", "renamed"),
    [
        ({"id": 1, "result": {"a": "\u2028é"}}, {"id": 7, "result": {"a": "\u2028é"}}),
        (
            {"type": "control_response", "response": {"request_id": "x", "a": 1}},
            {"type": "control_response", "response": {"request_id": 7, "a": 1}},
        ),
    ],
)
def test_response_gets_the_id_of_this_run(native: Any, renamed: Any) -> None:
    assert json.loads(lines.with_key(data(native), "7")) == renamed


def expectations(*natives: Any) -> Expectations:
    return Expectations([lines.parse_sent(data(native)) for native in natives])


def test_early_lines_match_by_kind() -> None:
    expected = expectations(control("a", "initialize"), USER, answer("q", "allow"), USER)
    assert not any(expected.is_satisfied(index) for index in range(4))
    expected.match(data(control("mux-1", "initialize")))
    expected.match(data(USER))
    expected.match(data(USER))
    assert [expected.is_satisfied(index) for index in range(4)] == [True, True, False, True]
    assert expected.renamed == {'"a"': '"mux-1"'}
    expected.match(data(answer("q", "allow")))
    assert expected.is_satisfied(2)


def test_later_line_satisfies_a_missing_handshake() -> None:
    expected = expectations(control("a", "initialize"), USER)
    expected.match(data(USER))
    assert expected.is_satisfied(0)


def test_asides_are_optional() -> None:
    expected = expectations(control("a", "set_model"), {"type": "nonsense"})
    assert expected.is_satisfied(0)
    assert expected.is_satisfied(1)
    expected.match(data(control("b", "get_settings")))
    assert expected.renamed == {}


@pytest.mark.parametrize(
    ("recorded", "now", "reason"),
    [
        (USER, control("i", "interrupt"), "this run sent: interrupt; the recording expects prompt"),
        (answer("q", "allow"), answer("q", "deny"), r'"q" \(deny\); the recording has: answer .* \(allow\)'),
        (answer("q", "allow"), answer("other", "allow"), 'answer to request "other" .* the recording expects answer'),
        (control("a", "initialize"), USER, "this run sent: prompt; the recording expects nothing more"),
    ],
)  # fmt: skip
def test_unrecorded_input_is_a_mismatch(recorded: Any, now: Any, reason: str) -> None:
    with pytest.raises(MismatchError, match=reason):
        expectations(recorded).match(data(now))


def test_second_prompt_is_a_mismatch() -> None:
    expected = expectations(USER)
    expected.match(data(USER))
    with pytest.raises(MismatchError):
        expected.match(data(USER))
