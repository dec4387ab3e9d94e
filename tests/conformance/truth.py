"""What was really said, from the script of the model, against what the events say was said.

Each script step is one answer of the model: texts, thoughts and calls, in order. The events must say all of it, once
and in order. What becomes of a step follows from the step itself (an HTTP error says nothing, a dropped stream is cut)
and from how the run ended (a run that did not complete leaves steps unused). Everything else that departs from the
script is in `truth_exceptions.toml`, with its reason.
"""

import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent_mux.events import AgentEvent, MessageStopEvent, ThinkingStopEvent
from agent_mux_testing.conformance import Recorded

EXCEPTIONS = tomllib.loads((Path(__file__).parent / "truth_exceptions.toml").read_text("utf-8"))
MADE_UP = re.compile(r"\{\{re:.+?\}\}")
"""A place in a script that is filled in from the conversation: it may be anything."""
DEFAULT = {"blocks": [{"type": "text", "text": "(script exhausted)"}]}
"""What the scripted model answers when no step is left; see `Script.default`."""


@dataclass(frozen=True, slots=True)
class Said:
    """One thing that was said: a text, a thought, or a call of something with some input."""

    kind: str
    what: Any


Parts = Callable[[Mapping[str, Any]], Iterator[Said]]
"""The things that a step says, as far as this agent shows them."""
Calls = Callable[[AgentEvent], Said | None]
"""The call that an event tells of."""


def is_within(expected: Any, actual: Any) -> bool:
    """Everything expected is there; the CLI may have added defaults, and what a script looked up may be anything."""
    match expected:
        case dict():
            has = isinstance(actual, dict)
            return has and all(key in actual and is_within(value, actual[key]) for key, value in expected.items())
        case list():
            return isinstance(actual, list) and len(actual) == len(expected) and all(map(is_within, expected, actual))
        case str() if MADE_UP.search(expected):
            return True
    return bool(expected == actual)


def same_call(expected: Sequence[Any], actual: Sequence[Any]) -> bool:
    """The same name, and everything the model gave."""
    return len(expected) == len(actual) and all(map(is_within, expected, actual))


@dataclass(frozen=True, slots=True)
class Dialect:
    """How one agent's scripts and events are compared."""

    parts: Parts
    call: Calls
    same_call: Callable[[Any, Any], bool] = same_call
    keeps_order: bool = True
    """Calls of one answer are shown in the order the model made them."""


def said_by_events(events: Sequence[AgentEvent], dialect: Dialect) -> Iterator[Said]:
    """What the events say, in order."""
    for event in events:
        if isinstance(event, MessageStopEvent):
            yield Said("text", event.text)
        elif isinstance(event, ThinkingStopEvent):
            yield Said("thought", event.thinking)
        elif (call := dialect.call(event)) is not None:
            yield call


def problem(recorded: Recorded, dialect: Dialect, events: Sequence[AgentEvent] | None = None) -> str | None:
    """Where events and script part; None when they do not. `events`: instead of those that the adapter makes."""
    exception = EXCEPTIONS.get(repr(recorded), {})
    script = recorded.fixture.script
    unseen = exception.get("unseen", [])
    steps = [step | {"is_cut": index in exception.get("cut", [])} for index, step in enumerate(script.get("steps", []))
             if not step.get("first") and index not in unseen]  # fmt: skip
    verdict = recorded.played.verdict
    comparison = _Comparison(
        dialect,
        list(said_by_events(recorded.played.events if events is None else events, dialect))[
            exception.get("made_by_cli", 0) :
        ],
        may_stop=verdict is None or verdict.exit_reason != "completed",
        inputs_differ=exception.get("inputs_differ", False),
    )
    return comparison.run(steps, script.get("default", DEFAULT))


class _Comparison:
    def __init__(self, dialect: Dialect, actual: Sequence[Said], *, may_stop: bool, inputs_differ: bool) -> None:
        self._dialect = dialect
        self._actual = actual
        self._at = 0
        self._may_stop = may_stop
        self._inputs_differ = inputs_differ

    def run(self, steps: Sequence[Mapping[str, Any]], default: Mapping[str, Any]) -> str | None:
        for step in steps:
            missing = self._take(step)
            if missing is not None:
                return None if self._may_stop and self._at == len(self._actual) else missing
            self._take_again(step)
        self._take_again({**default, "repeat": True})
        return None if self._at == len(self._actual) else f"never said by the model: {self._actual[self._at]}"

    def _take_again(self, step: Mapping[str, Any]) -> None:
        repeats = step.get("repeat", 1)
        for _ in range(len(self._actual) if repeats is True else repeats - 1):
            before = self._at
            if self._take(step) is not None or self._at == before:
                self._at = before
                return

    def _take(self, step: Mapping[str, Any]) -> str | None:
        """Tick off what a step says. Returns what is missing."""
        if step.get("error"):
            return None
        left = list(self._dialect.parts(step))
        is_cut = bool(step.get("drop") or step.get("hang") or step.get("is_cut"))
        while left:
            now = self._actual[self._at] if self._at < len(self._actual) else None
            index = self._find(left, now, is_cut=is_cut)
            if index is None:
                return None if step.get("drop") else f"not said: {left[0]}; instead: {now}"
            del left[index]
            self._at += 1
        return None

    def _find(self, left: Sequence[Said], now: Said | None, *, is_cut: bool) -> int | None:
        """Which of the things that are to be said comes now."""
        for index, part in enumerate(left):
            if now is not None and self._is_same(part, now, is_cut=is_cut and index == len(left) - 1):
                return index
            if part.kind != "call" or self._dialect.keeps_order:
                return None
        return None

    def _is_same(self, part: Said, now: Said, *, is_cut: bool) -> bool:
        if part.kind != now.kind:
            return False
        if part.kind == "call":
            return self._inputs_differ or self._dialect.same_call(part.what, now.what)
        text: str = now.what
        return part.what == text or ((is_cut or self._may_stop) and bool(text) and str(part.what).startswith(text))
