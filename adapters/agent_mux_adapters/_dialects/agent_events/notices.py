"""Events to facts: sub-agents, plugins, skills, images, usage, interactions, limits and logs.

These events neither open nor close a scope, so each is converted alone.
"""

from collections.abc import Callable, Mapping
from typing import Any

from agent_mux.events.base import TokenUsageEvent
from agent_mux.events.content import ImageInputAckEvent, ImageOutputEvent
from agent_mux.events.run import (
    ApprovalDeniedEvent,
    ApprovalGrantedEvent,
    ApprovalRequestEvent,
    ContextCompactedEvent,
    ContextLimitWarningEvent,
    DebugEvent,
    InputRequiredEvent,
    LogEvent,
    PausedEvent,
    RateLimitedEvent,
    ResumedEvent,
    RetryEvent,
    StreamFallbackEvent,
)
from agent_mux.events.session import (
    AgentdocReadEvent,
    PluginErrorEvent,
    PluginInvokedEvent,
    PluginLoadedEvent,
    SessionCheckpointEvent,
    SessionForkEvent,
    SkillInvokedEvent,
    SkillLoadedEvent,
)
from agent_mux.events.tools import SubagentErrorEvent, SubagentResultEvent, SubagentSpawnEvent
from agent_mux.sdk import facts
from agent_mux_adapters._dialects.agent_events.content import Facts
from agent_mux_adapters._dialects.tolerant import optional_whole, text


def _usage(event: TokenUsageEvent, native: Mapping[str, Any]) -> Facts:
    written = optional_whole(native.get("cacheCreationTokens"))
    return (facts.Usage(event.input_tokens, event.output_tokens, event.thinking_tokens, event.cached_tokens, written),)


def _texts(value: Any) -> tuple[str, ...]:
    return tuple(item for item in value if isinstance(item, str)) if isinstance(value, list) else ()


def _approval(event: ApprovalRequestEvent, native: Mapping[str, Any]) -> Facts:
    return (
        facts.ApprovalRequested(
            event.interaction_id,
            event.action,
            event.detail,
            event.risk_level,
            event.tool_name,
            text(native.get("toolCallId")) or None,
            text(native.get("command")) or None,
            _texts(native.get("paths")),
        ),
    )


def _question(event: InputRequiredEvent, native: Mapping[str, Any]) -> Facts:
    options = _texts(native.get("options"))
    return (facts.InputRequested(event.interaction_id, event.question, event.context, options, event.source),)


def _debug(event: DebugEvent, _: Mapping[str, Any]) -> Facts:
    # The stop reason of the turn yields this warning again.
    return () if event.message == facts.CUT_ANSWER else (facts.Note(event.message, event.level),)


def _silent(*_: Any) -> Facts:
    return ()


NOTICES: Mapping[type, Callable[[Any, Mapping[str, Any]], Facts]] = {
    SessionForkEvent: _silent,
    SessionCheckpointEvent: lambda event, _: (facts.CheckpointSaved(event.checkpoint_id),),
    SubagentSpawnEvent: lambda event, _: (facts.SubagentBegin(event.subagent_id, event.agent_name, event.prompt),),
    SubagentResultEvent: lambda event, _: (facts.SubagentDone(event.subagent_id, event.summary, cost=event.cost),),
    SubagentErrorEvent: lambda event, _: (facts.SubagentDone(event.subagent_id, error=event.error),),
    PluginLoadedEvent: lambda event, _: (facts.PluginLoaded(event.plugin_id, event.plugin_name, event.version),),
    PluginInvokedEvent: lambda event, _: (facts.PluginInvoked(event.plugin_id, event.plugin_name),),
    PluginErrorEvent: lambda event, _: (facts.PluginFailed(event.plugin_id, event.plugin_name, event.error),),
    SkillLoadedEvent: lambda event, _: (facts.SkillLoaded(event.skill_name, event.source),),
    SkillInvokedEvent: lambda event, _: (facts.SkillInvoked(event.skill_name),),
    AgentdocReadEvent: lambda event, _: (facts.AgentdocRead(event.path),),
    ImageOutputEvent: lambda event, _: (facts.ImageProduced(event.mime_type, event.base64, event.file_path),),
    ImageInputAckEvent: lambda event, _: (facts.ImageAccepted(event.mime_type),),
    TokenUsageEvent: _usage,
    InputRequiredEvent: _question,
    ApprovalRequestEvent: _approval,
    ApprovalGrantedEvent: lambda event, _: (facts.RequestResolved(event.interaction_id, granted=True),),
    ApprovalDeniedEvent: lambda event, _: (
        facts.RequestResolved(event.interaction_id, granted=False, reason=event.reason),
    ),
    RateLimitedEvent: lambda event, _: (facts.RateLimited(event.retry_after_ms),),
    ContextLimitWarningEvent: lambda event, _: (facts.ContextFilling(event.used_tokens, event.max_tokens),),
    ContextCompactedEvent: lambda event, _: (facts.ContextCompacted(event.summary, event.tokens_saved),),
    RetryEvent: lambda event, _: (facts.Retrying(event.attempt, event.max_attempts, event.reason, event.delay_ms),),
    PausedEvent: _silent,
    ResumedEvent: _silent,
    StreamFallbackEvent: _silent,
    DebugEvent: _debug,
    LogEvent: lambda event, _: (facts.LogLine(event.line, event.source),),
}
