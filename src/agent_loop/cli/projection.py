"""What a run tells, as facts of the AgentEvent contract. No clock, no ids of its own; lawful order is the assembler's.

A loop is a turn of the contract: one prompt, whatever it takes. A turn of the loop (a model call and its tools) is a
step there.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import msgspec

from agent_loop import events as loop
from agent_loop.cli.calls import ABANDONED, NOT_TAKEN_UP, Calls
from agent_loop.cli.outcomes import cost_record, outcome_of
from agent_loop.usage import Usage
from agent_mux import facts
from agent_mux.plain_json import to_json

Handler = Callable[[Any], Iterable[facts.Fact]]


class Projection:
    """The facts of one conversation, loop after loop."""

    def __init__(self) -> None:
        self.calls = Calls()
        self._said = ""
        """Text of the last answer, as far as it was told."""
        self._thought = ""
        self._before = Usage()
        """Of the loops before this one."""
        self._limit: loop.LimitReached | None = None
        self._structured: Any = None
        self._context = (0, 0)
        self._handlers: dict[type, Handler] = {
            loop.LoopStart: self._loop_start,
            loop.InputRejected: lambda e: [facts.Note(f"the prompt was refused: {e.reason}", "warn")],
            loop.InputWarning: lambda e: [facts.Note(f"about the prompt: {e.message}", "warn")],
            loop.TurnStart: self._turn_start,
            loop.MessageInjected: _injected,
            loop.TextDelta: self._text_delta,
            loop.ThinkingDelta: self._thinking_delta,
            loop.ToolInputDelta: self.calls.add_input,
            loop.MessageAbandoned: self._abandoned,
            loop.Reasoning: self._reasoning,
            loop.TextSaid: self._text_said,
            loop.ToolCallStart: lambda _: [],  # gates come first; with its arguments it is told
            loop.ToolCalled: self.calls.make_ready,
            loop.ToolUpdate: self.calls.add_output,
            loop.ToolProgress: lambda e: [facts.Note(f"{e.name}: {e.text}", "verbose")],
            loop.ToolResulted: self.calls.end,
            loop.ToolCallEnd: self.calls.is_over,
            loop.UsageReported: self._usage,
            loop.Retrying: self._retrying,
            loop.ContextFilling: self._context_filling,
            loop.ContextCompacted: _context_compacted,
            loop.BudgetExceeded: _budget_exceeded,
            loop.LimitReached: self._limit_reached,
            loop.HookFailed: lambda e: [facts.Note(f"the hook {e.hook} failed: {e.error}", "warn")],
            loop.Noted: lambda e: [facts.Note(e.text, "warn")],
            loop.OutputProduced: self._output,
            loop.TurnEnd: self._turn_end,
            loop.Final: self._final,
            loop.LoopEnd: self._loop_end,
        }

    @property
    def mapped(self) -> frozenset[type]:
        """The classes of events that something was decided about: all of them."""
        return frozenset(self._handlers)

    def facts_of(self, event: loop.LoopEvent) -> Iterable[facts.Fact]:
        """What the event says. To be used up before the next event."""
        return self._handlers[type(event)](event)

    # -- loop and turns

    def _loop_start(self, _: loop.LoopStart) -> Iterator[facts.Fact]:
        self._limit, self._structured, self._context = None, None, (0, 0)
        self._said = self._thought = ""
        self.calls.forget_all()
        yield facts.TurnBegin()

    def _turn_start(self, _: loop.TurnStart) -> Iterator[facts.Fact]:
        self._said = self._thought = ""
        yield facts.StepBegin()

    def _turn_end(self, _: loop.TurnEnd) -> Iterator[facts.Fact]:
        yield from self.calls.abandon(NOT_TAKEN_UP)
        yield facts.StepDone()

    def _loop_end(self, event: loop.LoopEnd) -> Iterator[facts.Fact]:
        self._before += event.usage
        yield from self.calls.abandon(NOT_TAKEN_UP)
        self.calls.forget_all()
        yield outcome_of(event, self._limit, structured=self._structured, context=self._context)

    # -- prose

    def _text_delta(self, event: loop.TextDelta) -> Iterator[facts.Fact]:
        self._said += event.text
        yield facts.TextDelta(event.text)

    def _thinking_delta(self, event: loop.ThinkingDelta) -> Iterator[facts.Fact]:
        self._thought += event.text
        yield facts.ThinkingDelta(event.text)

    def _abandoned(self, _: loop.MessageAbandoned) -> Iterator[facts.Fact]:
        self._said = self._thought = ""
        yield facts.ThinkingEnd()
        yield facts.TextEnd()
        yield from self.calls.abandon(ABANDONED)

    def _reasoning(self, event: loop.Reasoning) -> Iterator[facts.Fact]:
        if self._thought:
            yield facts.ThinkingEnd()
        else:
            yield facts.Thinking(event.text)
        self._thought = event.text

    def _text_said(self, event: loop.TextSaid) -> Iterator[facts.Fact]:
        yield facts.TextEnd()
        if not self._said:
            yield facts.Text(event.text)
        self._said = event.text

    def _final(self, event: loop.Final) -> Iterator[facts.Fact]:
        yield facts.TextEnd()
        if event.output is not None:
            self._structured = event.output
        text = event.text if event.output is None else _as_json(event.output, event.text)
        if _bare(text) != _bare(self._said):
            yield facts.Text(text)
        self._said = text

    # -- what it takes

    def _usage(self, event: loop.UsageReported) -> Iterator[facts.Fact]:
        usage = event.usage
        yield facts.Usage(
            usage.input_tokens,
            usage.output_tokens,
            usage.thinking_tokens,
            usage.cache_read_tokens,
            usage.cache_write_tokens,
        )
        cost = cost_record(self._before + event.total)
        if cost is not None:
            yield facts.RunCost(cost)

    def _retrying(self, event: loop.Retrying) -> Iterator[facts.Fact]:
        delay = round(event.delay * 1000)
        yield from self._abandoned(loop.MessageAbandoned(loop_id=event.loop_id))
        if event.kind == "rate_limited":
            yield facts.RateLimited(delay)
        # The contract counts what is repeated, from 1; the loop counts calls, the first of which is no repetition.
        yield facts.Retrying(event.attempt - 1, event.max_attempts - 1, f"{event.kind}: {event.message}", delay)

    def _context_filling(self, event: loop.ContextFilling) -> Iterator[facts.Fact]:
        self._context = (event.used_tokens, event.max_tokens)
        yield facts.ContextFilling(event.used_tokens, event.max_tokens)

    def _limit_reached(self, event: loop.LimitReached) -> Iterator[facts.Fact]:
        self._limit = event
        yield facts.Note(f"a limit was reached ({event.limit}): {event.reason}", "warn")

    def _output(self, event: loop.OutputProduced) -> Iterator[facts.Fact]:
        self._structured = event.value
        yield facts.Note("the structured answer is complete", "verbose")


def _injected(event: loop.MessageInjected) -> Iterator[facts.Fact]:
    if event.message.origin != "user":  # whoever sent a prompt knows it
        yield facts.Note(f"{event.message.origin} message: {event.message.text}", "verbose")


def _as_json(output: Any, text: str) -> str:
    """The structured answer as JSON text: that of the model, where it says the same."""
    try:
        said = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError):
        return to_json(output)
    return text if said == output else to_json(output)


def _context_compacted(event: loop.ContextCompacted) -> Iterator[facts.Fact]:
    saved = max(event.tokens_before - event.tokens_after, 0)
    yield facts.ContextCompacted(event.summary or f"the context was made smaller ({event.tier})", saved)


def _budget_exceeded(event: loop.BudgetExceeded) -> Iterator[facts.Fact]:
    of = f" of {event.tool}" if event.tool else ""
    unit = "bytes of tool output" if event.budget == "tool_output" else "calls"
    yield facts.Note(f"over budget: {event.used} {unit}{of}, where {event.limit} are allowed", "warn")


def _bare(text: str) -> str:
    """Without white space: the whole of an answer is joined from its parts in ways of its own."""
    return "".join(text.split())
