"""The union of all events, and the classes in the order of the spec (section 4)."""

from typing import get_args

from agent_mux.events import (
    cost,
    debug,
    error,
    file,
    interaction,
    lifecycle,
    limits,
    mcp,
    multimodal,
    plugin,
    session,
    shell,
    skill,
    subagent,
    text,
    thinking,
    tool,
    turn,
)

AgentEvent = (
    session.SessionStartEvent
    | session.SessionResumeEvent
    | session.SessionForkEvent
    | session.SessionCheckpointEvent
    | session.SessionEndEvent
    | turn.TurnStartEvent
    | turn.TurnEndEvent
    | turn.StepStartEvent
    | turn.StepEndEvent
    | text.MessageStartEvent
    | text.TextDeltaEvent
    | text.MessageStopEvent
    | thinking.ThinkingStartEvent
    | thinking.ThinkingDeltaEvent
    | thinking.ThinkingStopEvent
    | tool.ToolCallStartEvent
    | tool.ToolInputDeltaEvent
    | tool.ToolCallReadyEvent
    | tool.ToolResultEvent
    | tool.ToolErrorEvent
    | file.FileReadEvent
    | file.FileWriteEvent
    | file.FileCreateEvent
    | file.FileDeleteEvent
    | file.FilePatchEvent
    | shell.ShellStartEvent
    | shell.ShellStdoutDeltaEvent
    | shell.ShellStderrDeltaEvent
    | shell.ShellExitEvent
    | mcp.McpToolCallStartEvent
    | mcp.McpToolResultEvent
    | mcp.McpToolErrorEvent
    | subagent.SubagentSpawnEvent
    | subagent.SubagentResultEvent
    | subagent.SubagentErrorEvent
    | plugin.PluginLoadedEvent
    | plugin.PluginInvokedEvent
    | plugin.PluginErrorEvent
    | skill.SkillLoadedEvent
    | skill.SkillInvokedEvent
    | skill.AgentdocReadEvent
    | multimodal.ImageOutputEvent
    | multimodal.ImageInputAckEvent
    | cost.CostEvent
    | cost.TokenUsageEvent
    | interaction.InputRequiredEvent
    | interaction.ApprovalRequestEvent
    | interaction.ApprovalGrantedEvent
    | interaction.ApprovalDeniedEvent
    | limits.RateLimitedEvent
    | limits.ContextLimitWarningEvent
    | limits.ContextCompactedEvent
    | limits.RetryEvent
    | lifecycle.InterruptedEvent
    | lifecycle.AbortedEvent
    | lifecycle.PausedEvent
    | lifecycle.ResumedEvent
    | lifecycle.TimeoutEvent
    | lifecycle.TurnLimitEvent
    | lifecycle.StreamFallbackEvent
    | error.AuthErrorEvent
    | error.RateLimitErrorEvent
    | error.ContextExceededEvent
    | error.CrashEvent
    | error.ErrorEvent
    | debug.DebugEvent
    | debug.LogEvent
)
"""Any of the 67 events; `event.type` tells which."""

ALL_EVENTS: tuple[type[AgentEvent], ...] = get_args(AgentEvent)
