"""Damaged lines, for tests that nothing raises."""

import copy
import json
from collections.abc import Sequence
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from agent_mux.sdk.codec import CodecOutput, Effect
from agent_mux.sdk.facts import Fact, Ignored, Unknown

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
WORDS = ("completed", "complete", "pending", "aborted")  # states with a meaning, in unexpected places
ANYTHING = JSON | st.sampled_from(
    [10**30, -1, float("nan"), "\ud800", "", *WORDS, {}, {"type": {}}, [], [[]], [["failed"]]]
)

patient = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
"""Settings for damage that takes long while other tests run at the same time."""


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the paths of all parts of a value; the first path is the whole value."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, part in inner for place in places(part, (*path, key)))]


def with_part(value: Any, path: tuple[Any, ...], part: Any) -> Any:
    """Return the value with another part at this path."""
    if not path:
        return part
    changed = copy.deepcopy(value)
    _holder(changed, path)[path[-1]] = part
    return changed


def without_part(value: Any, path: tuple[Any, ...]) -> Any:
    changed = copy.deepcopy(value)
    del _holder(changed, path)[path[-1]]
    return changed


def _holder(value: Any, path: tuple[Any, ...]) -> Any:
    for key in path[:-1]:
        value = value[key]
    return value


@st.composite
def strange(draw: st.DrawFn, native: Any) -> Any:
    """Draw the value with one part replaced by anything, or removed."""
    path = draw(st.sampled_from(places(native)))
    return without_part(native, path) if path and draw(st.booleans()) else with_part(native, path, draw(ANYTHING))


@st.composite
def damaged(draw: st.DrawFn, lines: Sequence[bytes]) -> bytes:
    """Draw a real line with a few strange parts; with or without blanks, because some codecs parse one form faster."""
    native = json.loads(draw(st.sampled_from(lines)))
    for _ in range(draw(st.integers(1, 3))):
        native = draw(strange(native))
    return json.dumps(native, separators=draw(st.sampled_from([(",", ":"), (", ", ": ")]))).encode()


def with_byte(line: bytes, at: int, byte: int) -> bytes:
    """Return the line with one byte replaced."""
    return line[: at % len(line)] + bytes([byte]) + line[at % len(line) + 1 :]


def check(steps: list[CodecOutput]) -> None:
    """Assert that the steps of a line contain facts, and `Ignored` or `Unknown` only as the single fact."""
    assert all(isinstance(step, Fact | Effect) for step in steps)
    emitted = [step for step in steps if isinstance(step, Fact)]
    assert emitted
    assert len(emitted) == 1 or not any(isinstance(fact, Ignored | Unknown) for fact in emitted)
