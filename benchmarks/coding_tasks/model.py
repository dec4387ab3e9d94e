"""The model of one run: it gives the answers of a task, and reacts to results as real models do, in each harness alike.

It judges a step by its result: whether an edit was applied, and whether the text that it needs is visible.
"""

import json
import re
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from msgspec.structs import replace as replace_fields

from agent_mux_testing.live import refuse
from agent_mux_testing.model_server import (
    ChosenStep,
    HttpError,
    RequestContent,
    ScriptStep,
    ScriptText,
    ToolUse,
    say,
)
from benchmarks.coding_tasks.harnesses import NEXT_OFFSET, Harness, compile_step, cut_off
from benchmarks.coding_tasks.steps import Change, Create, Fault, Look, Mistake, MultiChange, Step, Task

DONE = "The task is done."
MAX_PAGES = 40
"""The most pages of a file that the model reads."""
MAX_RETRIES = 2
"""How often the model repeats an edit that failed."""
SHOWN = 300
"""The most characters of a result in a reason."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """A step that the model makes, for the first time or again."""

    step: Step
    count: int = 0
    """Edits: the earlier attempts. Reading: the earlier pages."""
    offset: int | None = None
    """The first line of the page to read."""


@dataclass(frozen=True, slots=True)
class _Turn:
    attempts: tuple[Attempt, ...]
    faults: tuple[Fault, ...] = ()


class CodingModel:
    """The answers to the requests of one run."""

    def __init__(self, task: Task, harness: Harness, workspace: Path) -> None:
        self.reason = ""
        """Why the model gave up; empty: it did not."""
        self.finished = False
        """Whether the model has stated that the task is done."""
        self.calls = 0
        """The number of model calls."""
        self._harness, self._workspace = harness, workspace
        self._turns = deque(_Turn(tuple(map(Attempt, answer.steps)), answer.faults) for answer in task.answers)
        self._pending: list[tuple[Attempt, tuple[str, ...]]] = []  # the ids of the calls for each attempt

    @property
    def unused(self) -> tuple[ScriptStep, ...]:
        """Nothing: `finished` states whether all answers were used."""
        return ()

    def choose(self, content: RequestContent, *, aux: bool) -> ChosenStep:
        """Return the next answer, which depends on the results in the request."""
        if aux:
            return ChosenStep(say("A title"), None)
        self.calls += 1
        self._react(_results(json.loads(content.whole)))
        return ChosenStep(self._next(), self.calls)

    # -- answers

    def _next(self) -> ScriptStep:
        if self.reason:
            return say(f"I give up. {self.reason}")
        if not self._turns:
            self.finished = True
            return say(DONE)
        turn = self._turns[0]
        if turn.faults:
            self._turns[0] = replace(turn, faults=turn.faults[1:])
            return _faulty(turn.faults[0], self._calls(turn))
        self._turns.popleft()
        calls = self._calls(turn)
        ids = iter(call.id for call in calls)
        self._pending = [(attempt, tuple(next(ids) for _ in self._compiled(attempt))) for attempt in turn.attempts]
        return ScriptStep(blocks=(ScriptText("Next step."), *calls))

    def _calls(self, turn: _Turn) -> tuple[ToolUse, ...]:
        calls = [call for attempt in turn.attempts for call in self._compiled(attempt)]
        return tuple(replace_fields(call, id=f"call_{self.calls}_{number}") for number, call in enumerate(calls))

    def _compiled(self, attempt: Attempt) -> tuple[ToolUse, ...]:
        return compile_step(self._harness, attempt.step, self._workspace, attempt.offset)

    # -- reactions

    def _react(self, results: Mapping[str, str]) -> None:
        pending, self._pending = self._pending, []
        reactions: list[_Turn] = []
        for attempt, ids in pending:
            texts = [results.get(call_id) for call_id in ids]
            failed = [number for number, text in enumerate(texts) if not self._succeeded(attempt.step, text)]
            if isinstance(attempt.step, Look) and any(attempt.step.shows in text for text in results.values()):
                continue  # the text is visible in an earlier result, to which this one may refer
            if failed:
                reactions += self._reaction(attempt, failed, texts)
        self._turns.extendleft(reversed(reactions))

    def _succeeded(self, step: Step, text: str | None) -> bool:
        if text is None:
            return False
        if isinstance(step, Mistake):
            return self._succeeded(step.step, text)
        if isinstance(step, Change | Create | MultiChange):
            return re.match(self._harness.changed, text) is not None
        return step.shows in text

    def _reaction(self, attempt: Attempt, failed: Sequence[int], texts: Sequence[str | None]) -> list[_Turn]:
        """Return the answers after a step that failed, or give up."""
        step = attempt.step
        again: list[Attempt] = []
        match step:
            case Mistake():
                again = [Attempt(step.step)]
            case Look() if attempt.count < MAX_PAGES and (pages := NEXT_OFFSET.findall(texts[-1] or "")):
                again = [Attempt(step, attempt.count + 1, int(pages[-1]))]
            case Change() if attempt.count < MAX_RETRIES:
                exact = step if step.repeats else replace(step, wrong="")
                again = [Attempt(Look(step.name)), Attempt(exact, attempt.count + 1)]
            case MultiChange():
                left = step.changes if len(texts) == 1 else [step.changes[number] for number in failed]
                again = [Attempt(Look(step.name)), *(Attempt(Change(step.name, old, new), 1) for old, new in left)]
        again = again or [Attempt(each) for each in step.otherwise]
        if not again:
            self.reason = _reason(step, texts[failed[0]])
        return [_Turn((each,)) for each in again]


def _faulty(fault: Fault, calls: tuple[ToolUse, ...]) -> ScriptStep:
    match fault:
        case "rate limited":
            return refuse("chat", "rate_limited")
        case "overloaded":
            return ScriptStep(error=HttpError(529, {"error": {"message": "Overloaded", "type": "overloaded_error"}}))
        case "empty":
            return ScriptStep(blocks=())
        case "cut" | "broken stream":
            blocks = (ScriptText("Next step."), *calls[:-1], cut_off(calls[-1]))
            if fault == "cut":
                return ScriptStep(blocks=blocks, stop_reason="length")
            return ScriptStep(blocks=blocks, drop=True)


def _results(messages: Sequence[Any]) -> dict[str, str]:
    """Return the results in a request of the chat API by call id."""
    return {
        message["tool_call_id"]: _text(message.get("content"))
        for message in messages
        if isinstance(message, dict) and message.get("role") == "tool"
    }


def _text(content: Any) -> str:
    if isinstance(content, list):
        return "\n".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return str(content or "")


def _reason(step: Step, text: str | None) -> str:
    result = "no result" if text is None else repr(text if len(text) <= SHOWN else f"{text[:SHOWN]}...")
    wanted = f" does not show {step.shows!r}" if step.shows else " failed"
    return f"{type(step).__name__} {getattr(step, 'name', getattr(step, 'command', ''))}{wanted}: {result}"
