"""Comparison of the events of a recording with the script of its model.

Each script step is one answer of the model: texts, thinking and calls, in order. The events must contain all of them,
once and in order. Two deviations are derived: an HTTP error has no parts and a dropped stream is cut; a run that did
not complete leaves steps unused. Every other deviation is listed in `script_exceptions.toml`, with its reason.
"""

import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent_mux.events import AgentEvent, MessageStopEvent, ThinkingStopEvent
from agent_mux_testing.conformance import Recorded

EXCEPTIONS = tomllib.loads((Path(__file__).parent / "script_exceptions.toml").read_text("utf-8"))
PLACEHOLDER = re.compile(r"\{\{re:.+?\}\}")
"""A placeholder in a script, replaced by text of the conversation; it matches any value."""
DEFAULT = {"blocks": [{"type": "text", "text": "(script exhausted)"}]}
"""The answer of the scripted model after its last step; see `Script.default`."""


@dataclass(frozen=True, slots=True)
class TranscriptPart:
    """One part of an answer: a text, thinking, or a call with its input."""

    kind: str
    """`text`, `thinking` or `call`."""
    content: Any


Parts = Callable[[Mapping[str, Any]], Iterator[TranscriptPart]]
"""Yields the parts of a step that this agent reports."""
Calls = Callable[[AgentEvent], TranscriptPart | None]
"""Returns the call of an event, or None."""


def is_within(expected: Any, actual: Any) -> bool:
    """Return whether the actual value contains the expected one. A placeholder matches anything."""
    match expected:
        case dict():
            has = isinstance(actual, dict)
            return has and all(key in actual and is_within(value, actual[key]) for key, value in expected.items())
        case list():
            return isinstance(actual, list) and len(actual) == len(expected) and all(map(is_within, expected, actual))
        case str() if PLACEHOLDER.search(expected):
            return True
    return bool(expected == actual)


def same_call(expected: Sequence[Any], actual: Sequence[Any]) -> bool:
    """Return whether two calls have the same name and the actual input contains the expected one."""
    return len(expected) == len(actual) and all(map(is_within, expected, actual))


@dataclass(frozen=True, slots=True)
class Dialect:
    """How the scripts and events of one agent are compared."""

    parts: Parts
    call: Calls
    same_call: Callable[[Any, Any], bool] = same_call
    keeps_order: bool = True
    """Whether the calls of one answer are reported in the order of the script."""


def parts_of_events(events: Sequence[AgentEvent], dialect: Dialect) -> Iterator[TranscriptPart]:
    """Yield the parts that the events report, in order."""
    for event in events:
        if isinstance(event, MessageStopEvent):
            yield TranscriptPart("text", event.text)
        elif isinstance(event, ThinkingStopEvent):
            yield TranscriptPart("thinking", event.thinking)
        elif (call := dialect.call(event)) is not None:
            yield call


def find_difference(recorded: Recorded, dialect: Dialect, events: Sequence[AgentEvent] | None = None) -> str | None:
    """Return the first difference between script and events, or None. `events` replaces those of the recording."""
    exception = EXCEPTIONS.get(repr(recorded), {})
    script = recorded.fixture.script
    unseen = exception.get("unseen", [])
    steps = [step | {"is_cut": index in exception.get("cut", [])} for index, step in enumerate(script.get("steps", []))
             if not step.get("first") and index not in unseen]  # fmt: skip
    verdict = recorded.played.verdict
    comparison = _Comparison(
        dialect,
        list(parts_of_events(recorded.played.events if events is None else events, dialect))[
            exception.get("made_by_cli", 0) :
        ],
        may_stop=verdict is None or verdict.exit_reason != "completed",
        inputs_differ=exception.get("inputs_differ", False),
    )
    return comparison.run(steps, script.get("default", DEFAULT))


class _Comparison:
    def __init__(
        self, dialect: Dialect, actual: Sequence[TranscriptPart], *, may_stop: bool, inputs_differ: bool
    ) -> None:
        self._dialect = dialect
        self._actual = actual
        self._at = 0
        self._may_stop = may_stop
        self._inputs_differ = inputs_differ

    def run(self, steps: Sequence[Mapping[str, Any]], default: Mapping[str, Any]) -> str | None:
        for step in steps:
            missing = self._match_step(step)
            if missing is not None:
                return None if self._may_stop and self._at == len(self._actual) else missing
            self._match_repeats(step)
        self._match_repeats({**default, "repeat": True})
        return None if self._at == len(self._actual) else f"not in the script: {self._actual[self._at]}"

    def _match_repeats(self, step: Mapping[str, Any]) -> None:
        repeats = step.get("repeat", 1)
        for _ in range(len(self._actual) if repeats is True else repeats - 1):
            before = self._at
            if self._match_step(step) is not None or self._at == before:
                self._at = before
                return

    def _match_step(self, step: Mapping[str, Any]) -> str | None:
        """Match the parts of a step with the next parts of the events. Return the first missing part, or None."""
        if step.get("error"):
            return None
        left = list(self._dialect.parts(step))
        is_cut = bool(step.get("drop") or step.get("hang") or step.get("is_cut"))
        while left:
            actual = self._actual[self._at] if self._at < len(self._actual) else None
            index = self._find(left, actual, is_cut=is_cut)
            if index is None:
                return None if step.get("drop") else f"missing: {left[0]}; found: {actual}"
            del left[index]
            self._at += 1
        return None

    def _find(self, left: Sequence[TranscriptPart], actual: TranscriptPart | None, *, is_cut: bool) -> int | None:
        """Return the index of the expected part that the next actual part matches, or None."""
        for index, part in enumerate(left):
            if actual is not None and self._is_same(part, actual, is_cut=is_cut and index == len(left) - 1):
                return index
            if part.kind != "call" or self._dialect.keeps_order:
                return None
        return None

    def _is_same(self, part: TranscriptPart, actual: TranscriptPart, *, is_cut: bool) -> bool:
        if part.kind != actual.kind:
            return False
        if part.kind == "call":
            return self._inputs_differ or self._dialect.same_call(part.content, actual.content)
        text: str = actual.content
        return part.content == text or (
            (is_cut or self._may_stop) and bool(text) and str(part.content).startswith(text)
        )
