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
from agent_mux.testing.conformance import Recorded

EXCEPTIONS = tomllib.loads((Path(__file__).parent / "truth_exceptions.toml").read_text("utf-8"))
MADE_UP = re.compile(r"\{\{re:.+?\}\}")
"""A place in a script that is filled in from the conversation: it may be anything."""


@dataclass(frozen=True, slots=True)
class Said:
    """One thing that was said: a text, a thought, or a call of something with some input."""

    kind: str
    what: Any


Parts = Callable[[Mapping[str, Any]], Iterator[Said]]
"""The things that a step says, as far as this agent shows them."""
Calls = Callable[[AgentEvent], Said | None]
"""The call that an event tells of."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """How one agent's scripts and events are compared."""

    parts: Parts
    call: Calls
    same_call: Callable[[Any, Any], bool]
    keeps_order: bool
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


def problem(recorded: Recorded, dialect: Dialect) -> str | None:
    """Where events and script part; None when they do not."""
    exception = EXCEPTIONS.get(repr(recorded), {})
    steps = [step for index, step in enumerate(recorded.fixture.script.get("steps", []))
             if not step.get("first") and index not in exception.get("unseen", [])]  # fmt: skip
    steps += [{"blocks": [{"type": "text", "text": text}]} for text in exception.get("added", [])]
    verdict = recorded.played.verdict
    is_complete = verdict is not None and verdict.exit_reason == "completed"
    actual = list(said_by_events(recorded.played.events, dialect))
    return _Comparison(dialect, actual, may_stop=not is_complete).run(steps)


class _Comparison:
    def __init__(self, dialect: Dialect, actual: Sequence[Said], *, may_stop: bool) -> None:
        self._dialect = dialect
        self._actual = actual
        self._at = 0
        self._may_stop = may_stop

    def run(self, steps: Sequence[Mapping[str, Any]]) -> str | None:
        for step in steps:
            repeats = step.get("repeat", 1)
            times = 0
            while times == 0 or ((repeats is True or times < repeats) and self._at < len(self._actual)):
                missing = self._take(step)
                times += 1
                if missing is not None and times == 1:
                    return None if self._may_stop and self._at == len(self._actual) else missing
                if missing is not None:
                    break
        return None if self._at == len(self._actual) else f"never said by the model: {self._actual[self._at]}"

    def _take(self, step: Mapping[str, Any]) -> str | None:
        """Tick off what a step says. Returns what is missing."""
        if step.get("error"):
            return None
        parts = list(self._dialect.parts(step))
        is_cut = bool(step.get("drop") or step.get("hang"))
        for index, part in enumerate(parts):
            cut_here = is_cut and index == len(parts) - 1
            if not self._tick(part, parts[index:], is_cut=cut_here) and not is_cut:
                so_far = self._actual[self._at] if self._at < len(self._actual) else "the end"
                return f"not said: {part}; instead: {so_far}"
        return None

    def _tick(self, part: Said, rest: Sequence[Said], *, is_cut: bool) -> bool:
        if self._at == len(self._actual):
            return False
        now = self._actual[self._at]
        fits = self._fits(part, now, is_cut=is_cut)
        if not fits and part.kind == "call" and not self._dialect.keeps_order:
            fits = any(self._fits(other, now, is_cut=False) for other in rest if other.kind == "call")
        self._at += fits
        return fits

    def _fits(self, part: Said, now: Said, *, is_cut: bool) -> bool:
        if part.kind != now.kind:
            return False
        if part.kind == "call":
            return self._dialect.same_call(part.what, now.what)
        text: str = now.what
        return part.what == text or ((is_cut or self._may_stop) and bool(text) and str(part.what).startswith(text))


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
