"""Damaged lines, for the tests of pi's dialect that look for what raises."""

import copy
import json
from typing import Any

from hypothesis import strategies as st

from agent_mux.adapter import Step
from agent_mux.effects import Effect
from agent_mux.facts import Fact, Ignored

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
ANYTHING = JSON | st.sampled_from([10**30, -1, "\ud800", {}, [], "", "aborted", {"type": {}}])


@st.composite
def damaged(draw: st.DrawFn, lines: list[bytes]) -> bytes:
    """A real line with a few values replaced by anything."""
    line = json.loads(draw(st.sampled_from(lines)))
    for _ in range(draw(st.integers(1, 3))):
        line = _with_part(line, draw(st.sampled_from(_places(line))), draw(ANYTHING))
    return json.dumps(line, separators=(",", ":")).encode()


def bent(line: bytes, at: int, byte: int) -> bytes:
    """One byte is another."""
    return line[: at % len(line)] + bytes([byte]) + line[at % len(line) + 1 :]


def check(steps: list[Step]) -> None:
    """A line says something, or that it says nothing."""
    assert all(isinstance(step, Fact | Effect) for step in steps)
    told = [step for step in steps if isinstance(step, Fact)]
    assert told
    assert len(told) == 1 or not any(isinstance(fact, Ignored) for fact in told)


def _places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, part in inner for place in _places(part, (*path, key)))]


def _with_part(value: Any, path: tuple[Any, ...], part: Any) -> Any:
    if not path:
        return part
    changed = copy.deepcopy(value)
    holder = changed
    for key in path[:-1]:
        holder = holder[key]
    holder[path[-1]] = part
    return changed
