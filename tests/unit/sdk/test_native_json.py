"""Parsing native JSON: any bytes yield an object that can be encoded again, or None."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agent_mux.sdk.native_json import MAX_DEPTH, load_object


def nested(depth: int, bottom: bytes = b"1") -> bytes:
    """Return an object with `depth` levels."""
    return b'{"a":' * depth + bottom + b"}" * depth


@given(st.dictionaries(st.text(), st.none() | st.integers(-(2**63), 2**63) | st.text() | st.lists(st.booleans())))
def test_valid_object_is_parsed_unchanged(value: dict[str, Any]) -> None:
    assert load_object(json.dumps(value).encode()) == value
    assert load_object(json.dumps(value, ensure_ascii=False, indent=1).encode()) == value


@given(st.binary() | st.text().map(str.encode) | st.binary().map(lambda noise: b'{"a":"' + noise + b'"}'))
@example(nested(100_000))
@example(b'{"a":' * 100_000)
@example(b"[" * 100_000)
@example(b'{"a":' + b"9" * 10_000 + b"}")
@example(b"")
def test_any_bytes_yield_none_or_an_encodable_object(line: bytes) -> None:
    value = load_object(line)
    assert value is None or isinstance(value, dict)
    msgspec.json.encode(value)


@pytest.mark.parametrize("line", [b"", b"hello", b"[1]", b"3", b'"text"', b"null", b'{"a":1', b'{"a":1} {', b"{'a':1}"])
def test_other_values_and_noise_yield_none(line: bytes) -> None:
    assert load_object(line) is None


@pytest.mark.parametrize(
    ("line", "value"),
    [
        (b'\xef\xbb\xbf{"a":1}', {"a": 1}),
        (b'{"a":"\xff"}', {"a": "\ufffd"}),
        (b'{"a":"\\ud83d"}', {"a": "\ufffd"}),
        (b'{"a":["\\ud83d\\ude00","\\ude00\\ud83d"]}', {"a": ["\U0001f600", "\ufffd\ufffd"]}),
        (b'{"\\udcff":{"\\udcff":["x\\udcff"]}}', {"\ufffd": {"\ufffd": ["x\ufffd"]}}),
        (b'{"a":1}\x00\x00', {"a": 1}),
        (b'{"a":"tab\there"}', {"a": "tab\there"}),
        (b'  {"a":1}\r', {"a": 1}),
        (b'{"a":-Infinity}', {"a": float("-inf")}),
    ],
)
def test_damaged_objects_are_repaired(line: bytes, value: dict[str, Any]) -> None:
    assert load_object(line) == value


def test_nan_is_parsed() -> None:
    value = load_object(b'{"a":NaN}')
    assert value is not None
    assert value["a"] != value["a"]  # only NaN differs from itself


@pytest.mark.parametrize("bottom", [b"1", b'"\\ud83d"', b'"\xff"', b"NaN"])
def test_objects_above_the_maximum_depth_yield_none(bottom: bytes) -> None:
    assert load_object(nested(MAX_DEPTH, bottom)) is not None
    assert load_object(nested(MAX_DEPTH + 1, bottom)) is None
    assert load_object(nested(900, bottom)) is None


def test_many_brackets_do_not_count_as_depth() -> None:
    line = b'{"a":[' + b",".join([b"[{}]"] * 1000) + b"]}"
    assert load_object(line) == {"a": [[{}]] * 1000}
    assert load_object(b'{"a":"' + b"[" * 1000 + b'"}') == {"a": "[" * 1000}
