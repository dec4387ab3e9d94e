"""Loop events as facts of the event contract, without clock or random ids. The assembler ensures a conforming order.

A run (everything for one prompt: a loop, or several after handoffs) is a turn of the contract; a turn of the loop (a
model call and its tools) is a step.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import msgspec

from agent_loop import events as loop
from agent_loop.cli.outcomes import cost_record, outcome_of
from agent_loop.cli.tool_calls import ABANDONED, NOT_EXECUTED, ToolCallFacts
from agent_loop.messages import StopReason
from agent_loop.usage import Usage
from agent_mux._util.sanitize import to_json
from agent_mux.sdk import facts

Handler = Callable[[Any], Iterable[facts.Fact]]


class LoopProjection:
    """Converts the loop events of one conversation to facts."""

    def __init__(self, delegating: frozenset[str] = frozenset()) -> None:
        """Create a projection; `delegating` has the names of the tools that start sub-agents."""
        self._delegating = delegating
        self._inside: dict[str, LoopProjection] = {}
        """The projections of the open sub-agents by id."""
        self.tool_calls = ToolCallFacts(delegating)
        self._text = ""
        """The text of the current model message that was emitted so far."""
        self._thinking = ""
        """The thinking of the current model message that was emitted so far."""
        self._earlier_usage = Usage()
        """The usage of the loops before this one."""
        self._limit: loop.LimitReached | None = None
        self._structured: Any = None
        self._stop_reason: StopReason | None = None
        """Why the last answer of the model ended."""
        self._context = (0, 0)
        self._handlers: dict[type, Handler] = {
            loop.LoopStart: self._loop_start,
            loop.InputRejected: lambda e: [facts.Note(f"the prompt was rejected: {e.reason}", "warn")],
            loop.InputWarning: lambda e: [facts.Note(f"prompt warning: {e.message}", "warn")],
            loop.TurnStart: self._turn_start,
            loop.MessageInjected: _injected,
            loop.TextDelta: self._text_delta,
            loop.ThinkingDelta: self._thinking_delta,
            loop.ToolInputDelta: self.tool_calls.add_input,
            loop.MessageAbandoned: self._abandoned,
            loop.Reasoning: self._reasoning,
            loop.TextSaid: self._text_complete,
            loop.ToolCallStart: lambda _: [],  # emitted with its arguments, after the gates
            loop.ToolCalled: self.tool_calls.add_arguments,
            loop.ToolUpdate: self.tool_calls.add_output,
            loop.ToolProgress: lambda e: [facts.Note(f"{e.name}: {e.text}", "verbose")],
            loop.ToolResulted: self.tool_calls.add_result,
            loop.ToolCallEnd: self.tool_calls.end,
            loop.SubAgentStart: self._sub_agent_start,
            loop.SubAgentEvent: self._sub_agent_event,
            loop.SubAgentEnd: self._sub_agent_end,
            loop.HandedOff: lambda e: [facts.Note(f"{e.source} hands off to {e.target}: {e.message}")],
            loop.UsageReported: self._usage,
            loop.Retrying: self._retrying,
            loop.ModelChanged: self._model_changed,
            loop.ContextFilling: self._context_filling,
            loop.ContextCompacted: _context_compacted,
            loop.BudgetExceeded: _budget_exceeded,
            loop.LimitReached: self._limit_reached,
            loop.HookFailed: lambda e: [facts.Note(f"hook {e.hook} failed: {e.error}", "warn")],
            loop.Noted: lambda e: [facts.Note(e.text, "warn")],
            loop.McpBootstrapped: _mcp_bootstrapped,
            loop.OutputProduced: self._output,
            loop.TurnEnd: self._turn_end,
            loop.Final: self._final,
            loop.LoopEnd: self._loop_end,
        }

    @property
    def mapped(self) -> frozenset[type]:
        """The event classes that have a handler; a test requires all of them."""
        return frozenset(self._handlers)

    def facts_of(self, event: loop.LoopEvent) -> Iterable[facts.Fact]:
        """Return the facts of an event. Consume them before the next call: handlers are generators that share state."""
        return self._handlers[type(event)](event)

    # -- loop and turns

    def _loop_start(self, _: loop.LoopStart) -> Iterator[facts.Fact]:
        self._limit, self._structured, self._context, self._stop_reason = None, None, (0, 0), None
        self._text = self._thinking = ""
        self.tool_calls.clear()
        yield facts.TurnBegin()

    def _turn_start(self, _: loop.TurnStart) -> Iterator[facts.Fact]:
        self._text = self._thinking = ""
        yield facts.StepBegin()

    def _turn_end(self, event: loop.TurnEnd) -> Iterator[facts.Fact]:
        self._stop_reason = event.messages[-1].stop_reason if event.messages else None
        yield from self.tool_calls.abandon(NOT_EXECUTED)
        yield facts.StepDone()

    def _loop_end(self, event: loop.LoopEnd) -> Iterator[facts.Fact]:
        self._earlier_usage += event.usage
        yield from self.tool_calls.abandon(NOT_EXECUTED)
        self.tool_calls.clear()
        if event.handed_off_to is not None:  # the turn continues with the loop of that agent
            return
        yield outcome_of(
            event, self._limit, structured=self._structured, context=self._context, stop_reason=self._stop_reason
        )

    # -- sub-agents

    def _sub_agent_start(self, event: loop.SubAgentStart) -> Iterator[facts.Fact]:
        self.tool_calls.begin_delegation(event.call_id)
        self._inside[event.subagent_id] = LoopProjection(self._delegating)
        yield facts.SubagentBegin(event.subagent_id, event.name, event.prompt)

    def _sub_agent_event(self, event: loop.SubAgentEvent) -> Iterator[facts.Fact]:
        """Yield the facts inside of a sub-agent; those of its own sub-agents name the innermost one."""
        for fact in self._inside[event.subagent_id].facts_of(event.event):
            is_own = isinstance(fact, facts.SubagentBegin | facts.SubagentDone | facts.InSubagent)
            yield fact if is_own else facts.InSubagent(event.subagent_id, fact)

    def _sub_agent_end(self, event: loop.SubAgentEnd) -> Iterator[facts.Fact]:
        self._inside.pop(event.subagent_id, None)
        error = (event.error or "it returned no text") if event.is_error else None
        yield facts.SubagentDone(event.subagent_id, event.text, error, cost_record(event.usage))

    # -- text and thinking

    def _text_delta(self, event: loop.TextDelta) -> Iterator[facts.Fact]:
        self._text += event.text
        yield facts.TextDelta(event.text)

    def _thinking_delta(self, event: loop.ThinkingDelta) -> Iterator[facts.Fact]:
        self._thinking += event.text
        yield facts.ThinkingDelta(event.text)

    def _abandoned(self, _: loop.MessageAbandoned) -> Iterator[facts.Fact]:
        self._text = self._thinking = ""
        yield facts.ThinkingEnd()
        yield from self.tool_calls.abandon(ABANDONED)

    def _reasoning(self, event: loop.Reasoning) -> Iterator[facts.Fact]:
        if self._thinking:
            yield facts.ThinkingEnd()
        else:
            yield facts.WholeThinking(event.text)
        self._thinking = event.text

    def _text_complete(self, event: loop.TextSaid) -> Iterator[facts.Fact]:
        yield facts.TextEnd()
        if not self._text:
            yield facts.WholeText(event.text)
        self._text = event.text

    def _final(self, event: loop.Final) -> Iterator[facts.Fact]:
        yield facts.TextEnd()
        if event.output is not None:
            self._structured = event.output
        text = event.text if event.output is None else _as_json(event.output, event.text)
        if _without_whitespace(text) != _without_whitespace(self._text):
            yield facts.WholeText(text)
        self._text = text

    # -- usage and limits

    def _usage(self, event: loop.UsageReported) -> Iterator[facts.Fact]:
        usage = event.usage
        yield facts.Usage(
            usage.input_tokens,
            usage.output_tokens,
            usage.thinking_tokens,
            usage.cache_read_tokens,
            usage.cache_write_tokens,
        )
        cost = cost_record(self._earlier_usage + event.total)
        if cost is not None:
            yield facts.RunCost(cost)

    def _retrying(self, event: loop.Retrying) -> Iterator[facts.Fact]:
        delay = round(event.delay * 1000)
        yield from self._abandoned(loop.MessageAbandoned(loop_id=event.loop_id))
        if event.kind == "rate_limited":
            yield facts.RateLimited(delay)
        # The contract counts retries from 1; the loop counts calls, and its first call is not a retry.
        yield facts.Retrying(event.attempt - 1, event.max_attempts - 1, f"{event.kind}: {event.message}", delay)

    def _model_changed(self, event: loop.ModelChanged) -> Iterator[facts.Fact]:
        yield from self._abandoned(loop.MessageAbandoned(loop_id=event.loop_id))
        yield facts.Note(
            f"using {event.provider}:{event.model}, because the model before failed: {event.reason}", "warn"
        )

    def _context_filling(self, event: loop.ContextFilling) -> Iterator[facts.Fact]:
        self._context = (event.used_tokens, event.max_tokens)
        yield facts.ContextFilling(event.used_tokens, event.max_tokens)

    def _limit_reached(self, event: loop.LimitReached) -> Iterator[facts.Fact]:
        self._limit = event
        if event.limit == "output":  # the assembler reports a cut answer
            return
        yield facts.Note(f"limit reached ({event.limit}): {event.reason}", "warn")

    def _output(self, event: loop.OutputProduced) -> Iterator[facts.Fact]:
        self._structured = event.value
        yield facts.Note("structured answer complete", "verbose")


def _injected(event: loop.MessageInjected) -> Iterator[facts.Fact]:
    if event.message.origin != "user":  # the sender of a prompt knows it
        yield facts.Note(f"{event.message.origin} message: {event.message.text}", "verbose")


def _as_json(output: Any, text: str) -> str:
    """Return the structured answer as JSON: the text of the model if it is equivalent, otherwise the output encoded."""
    try:
        decoded = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError):
        return to_json(output)
    return text if decoded == output else to_json(output)


def _context_compacted(event: loop.ContextCompacted) -> Iterator[facts.Fact]:
    saved = max(event.tokens_before - event.tokens_after, 0)
    yield facts.ContextCompacted(event.summary or f"context compacted ({event.tier})", saved)


def _budget_exceeded(event: loop.BudgetExceeded) -> Iterator[facts.Fact]:
    of = f" of {event.tool}" if event.tool else ""
    unit = "bytes of tool output" if event.budget == "tool_output" else "calls"
    yield facts.Note(f"budget exceeded: {event.used} {unit}{of}, limit {event.limit}", "warn")


def _mcp_bootstrapped(event: loop.McpBootstrapped) -> Iterator[facts.Fact]:
    took = f"{event.duration_ms / 1000:.1f} s"
    if event.error is None:
        yield facts.Note(f"MCP server {event.server}: {event.tools} tools after {took}", "verbose")
    else:
        yield facts.Note(f"MCP server {event.server} is not available ({took}): {event.error}", "warn")


def _without_whitespace(text: str) -> str:
    """Return the text without whitespace, which differs between a final answer and the parts it was joined from."""
    return "".join(text.split())
