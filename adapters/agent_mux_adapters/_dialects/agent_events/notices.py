"""Events to facts: sub-agents, plugins, skills, images, usage, interactions, limits and logs.

These events neither open nor close a scope, so each is converted alone.
"""

from collections.abc import Callable, Mapping
from typing import Any

from agent_mux import facts
from agent_mux.events import (
    cost,
    debug,
    interaction,
    lifecycle,
    limits,
    multimodal,
    plugin,
    session,
    skill,
    subagent,
)
from agent_mux_adapters._dialects.agent_events.content import Facts
from agent_mux_adapters._dialects.tolerant import optional_whole, text


def _usage(event: cost.TokenUsageEvent, native: Mapping[str, Any]) -> Facts:
    written = optional_whole(native.get("cacheCreationTokens"))
    return (facts.Usage(event.input_tokens, event.output_tokens, event.thinking_tokens, event.cached_tokens, written),)


def _texts(value: Any) -> tuple[str, ...]:
    return tuple(item for item in value if isinstance(item, str)) if isinstance(value, list) else ()


def _approval(event: interaction.ApprovalRequestEvent, native: Mapping[str, Any]) -> Facts:
    return (
        facts.ApprovalAsked(
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


def _question(event: interaction.InputRequiredEvent, native: Mapping[str, Any]) -> Facts:
    options = _texts(native.get("options"))
    return (facts.InputAsked(event.interaction_id, event.question, event.context, options, event.source),)


def _silent(*_: Any) -> Facts:
    return ()


NOTICES: Mapping[type, Callable[[Any, Mapping[str, Any]], Facts]] = {
    session.SessionForkEvent: _silent,
    session.SessionCheckpointEvent: lambda event, _: (facts.CheckpointSaved(event.checkpoint_id),),
    subagent.SubagentSpawnEvent: lambda event, _: (
        facts.SubagentBegin(event.subagent_id, event.agent_name, event.prompt),
    ),
    subagent.SubagentResultEvent: lambda event, _: (
        facts.SubagentDone(event.subagent_id, event.summary, cost=event.cost),
    ),
    subagent.SubagentErrorEvent: lambda event, _: (facts.SubagentDone(event.subagent_id, error=event.error),),
    plugin.PluginLoadedEvent: lambda event, _: (facts.PluginLoaded(event.plugin_id, event.plugin_name, event.version),),
    plugin.PluginInvokedEvent: lambda event, _: (facts.PluginInvoked(event.plugin_id, event.plugin_name),),
    plugin.PluginErrorEvent: lambda event, _: (facts.PluginFailed(event.plugin_id, event.plugin_name, event.error),),
    skill.SkillLoadedEvent: lambda event, _: (facts.SkillLoaded(event.skill_name, event.source),),
    skill.SkillInvokedEvent: lambda event, _: (facts.SkillInvoked(event.skill_name),),
    skill.AgentdocReadEvent: lambda event, _: (facts.AgentdocRead(event.path),),
    multimodal.ImageOutputEvent: lambda event, _: (
        facts.ImageProduced(event.mime_type, event.base64, event.file_path),
    ),
    multimodal.ImageInputAckEvent: lambda event, _: (facts.ImageTaken(event.mime_type),),
    cost.TokenUsageEvent: _usage,
    interaction.InputRequiredEvent: _question,
    interaction.ApprovalRequestEvent: _approval,
    interaction.ApprovalGrantedEvent: lambda event, _: (facts.RequestSettled(event.interaction_id, granted=True),),
    interaction.ApprovalDeniedEvent: lambda event, _: (
        facts.RequestSettled(event.interaction_id, granted=False, reason=event.reason),
    ),
    limits.RateLimitedEvent: lambda event, _: (facts.RateLimited(event.retry_after_ms),),
    limits.ContextLimitWarningEvent: lambda event, _: (facts.ContextFilling(event.used_tokens, event.max_tokens),),
    limits.ContextCompactedEvent: lambda event, _: (facts.ContextCompacted(event.summary, event.tokens_saved),),
    limits.RetryEvent: lambda event, _: (
        facts.Retrying(event.attempt, event.max_attempts, event.reason, event.delay_ms),
    ),
    lifecycle.PausedEvent: _silent,
    lifecycle.ResumedEvent: _silent,
    lifecycle.StreamFallbackEvent: _silent,
    debug.DebugEvent: lambda event, _: (facts.Note(event.message, event.level),),
    debug.LogEvent: lambda event, _: (facts.LogLine(event.line, event.source),),
}
