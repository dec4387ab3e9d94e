"""Events that open and close nothing: usage, limits, recoverable errors, plugins, images and diagnostics.

See docs/spec/events.md, sections 14 to 17, 19 and 22.
"""

from collections.abc import Callable
from typing import Any

from agent_mux.assembler.costs import CostTally, non_negative, non_negative_or_none, sanitize_cost, sanitize_usage
from agent_mux.assembler.emitter import Emitter
from agent_mux.assembler.quota import QuotaState
from agent_mux.events.base import CostEvent, TokenUsageEvent
from agent_mux.events.content import ImageInputAckEvent, ImageOutputEvent
from agent_mux.events.run import (
    ContextCompactedEvent,
    ContextLimitWarningEvent,
    DebugEvent,
    ErrorEvent,
    LogEvent,
    RateLimitedEvent,
)
from agent_mux.events.session import PluginErrorEvent, PluginInvokedEvent, SkillInvokedEvent
from agent_mux.sdk import facts

_SAME_FIELDS: dict[type, Any] = {
    # fact -> the event that has the same fields in the same order
    facts.PluginInvoked: PluginInvokedEvent,
    facts.PluginFailed: PluginErrorEvent,
    facts.SkillInvoked: SkillInvokedEvent,
    facts.ImageProduced: ImageOutputEvent,
    facts.ImageAccepted: ImageInputAckEvent,
}


class NoticeAssembler:
    """Emits events that are independent of messages and tool calls.

    `StreamAssembler` opens the session or turn in which they must lie.
    """

    def __init__(self, emitter: Emitter, costs: CostTally) -> None:
        self._emitter = emitter
        self._costs = costs
        self.quota = QuotaState()
        """What the provider reported about its quota."""

    def in_turn(self) -> dict[type, Callable[[Any], None]]:
        """Return the handlers of facts whose events must lie inside a turn."""
        return {
            **dict.fromkeys(_SAME_FIELDS, self._emit_same_fields),
            facts.ContextCompacted: self._emit_context_compacted,
            facts.ContextFilling: self._emit_context_filling,
        }

    def in_session(self) -> dict[type, Callable[[Any], None]]:
        """Return the handlers of facts whose events may occur anywhere between `session_start` and `session_end`."""
        return {
            facts.Usage: self._emit_usage,
            facts.RunCost: self._emit_run_cost,
            facts.QuotaReported: self._emit_quota,
            facts.RateLimited: self._emit_rate_limited,
            facts.RecoverableError: self._emit_trouble,
        }

    def anywhere(self) -> dict[type, Callable[[Any], None]]:
        """Return the handlers of diagnostics, which may also occur before the session starts and after it ends."""
        return {facts.Note: self._emit_note, facts.LogLine: self._emit_log, facts.Unknown: self._emit_unknown}

    def _emit_same_fields(self, fact: Any) -> None:
        self._emitter.emit(_SAME_FIELDS[fact.__class__], *(getattr(fact, name) for name in fact.__struct_fields__))

    def _emit_rate_limited(self, fact: facts.RateLimited) -> None:
        self._emitter.emit(RateLimitedEvent, non_negative_or_none(fact.retry_after_ms))

    def _emit_context_compacted(self, fact: facts.ContextCompacted) -> None:
        self._emitter.emit(ContextCompactedEvent, fact.summary, non_negative(fact.tokens_saved))

    def _emit_context_filling(self, fact: facts.ContextFilling) -> None:
        if fact.max_tokens > 0 and fact.used_tokens >= 0:
            share = 100 * fact.used_tokens / fact.max_tokens
            self._emitter.emit(ContextLimitWarningEvent, fact.used_tokens, fact.max_tokens, share)

    def _emit_trouble(self, fact: facts.RecoverableError) -> None:
        self._emitter.emit(ErrorEvent, fact.code, fact.message, True)

    def _emit_usage(self, fact: facts.Usage) -> None:
        usage = sanitize_usage(fact)
        self._costs.add_model_call(usage)
        self._emitter.emit(
            TokenUsageEvent,
            usage.input_tokens, usage.output_tokens, usage.thinking_tokens, usage.cached_tokens,
        )  # fmt: skip

    def _emit_quota(self, fact: facts.QuotaReported) -> None:
        if self.quota.update(fact.windows):
            self._emitter.emit(TokenUsageEvent, 0, 0, None, None, self.quota.windows)

    def _emit_run_cost(self, fact: facts.RunCost) -> None:
        self._emitter.emit(CostEvent, self._costs.set_run_cost(sanitize_cost(fact.cost)))

    def _emit_note(self, fact: facts.Note) -> None:
        self._emitter.emit(DebugEvent, fact.level, fact.message)

    def _emit_log(self, fact: facts.LogLine) -> None:
        self._emitter.emit(LogEvent, fact.source, fact.line)

    def _emit_unknown(self, fact: facts.Unknown) -> None:
        self._emitter.emit(DebugEvent, "warn", f"unknown native line ({fact.kind}): {fact.raw}")
