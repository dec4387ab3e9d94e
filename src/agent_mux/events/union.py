"""The union of all events, and the classes in the order of the spec (section 4)."""

from typing import get_args

from agent_mux.events.cost import CostEvent, TokenUsageEvent
from agent_mux.events.debug import DebugEvent, LogEvent
from agent_mux.events.error import AuthErrorEvent, ContextExceededEvent, CrashEvent, ErrorEvent, RateLimitErrorEvent
from agent_mux.events.file import FileCreateEvent, FileDeleteEvent, FilePatchEvent, FileReadEvent, FileWriteEvent
from agent_mux.events.interaction import (
    ApprovalDeniedEvent,
    ApprovalGrantedEvent,
    ApprovalRequestEvent,
    InputRequiredEvent,
)
from agent_mux.events.lifecycle import (
    AbortedEvent,
    InterruptedEvent,
    PausedEvent,
    ResumedEvent,
    StreamFallbackEvent,
    TimeoutEvent,
    TurnLimitEvent,
)
from agent_mux.events.limits import ContextCompactedEvent, ContextLimitWarningEvent, RateLimitedEvent, RetryEvent
from agent_mux.events.mcp import McpToolCallStartEvent, McpToolErrorEvent, McpToolResultEvent
from agent_mux.events.multimodal import ImageInputAckEvent, ImageOutputEvent
from agent_mux.events.plugin import PluginErrorEvent, PluginInvokedEvent, PluginLoadedEvent
from agent_mux.events.session import (
    SessionCheckpointEvent,
    SessionEndEvent,
    SessionForkEvent,
    SessionResumeEvent,
    SessionStartEvent,
)
from agent_mux.events.shell import ShellExitEvent, ShellStartEvent, ShellStderrDeltaEvent, ShellStdoutDeltaEvent
from agent_mux.events.skill import AgentdocReadEvent, SkillInvokedEvent, SkillLoadedEvent
from agent_mux.events.subagent import SubagentErrorEvent, SubagentResultEvent, SubagentSpawnEvent
from agent_mux.events.text import MessageStartEvent, MessageStopEvent, TextDeltaEvent
from agent_mux.events.thinking import ThinkingDeltaEvent, ThinkingStartEvent, ThinkingStopEvent
from agent_mux.events.tool import (
    ToolCallReadyEvent,
    ToolCallStartEvent,
    ToolErrorEvent,
    ToolInputDeltaEvent,
    ToolResultEvent,
)
from agent_mux.events.turn import StepEndEvent, StepStartEvent, TurnEndEvent, TurnStartEvent

AgentEvent = (
    SessionStartEvent
    | SessionResumeEvent
    | SessionForkEvent
    | SessionCheckpointEvent
    | SessionEndEvent
    | TurnStartEvent
    | TurnEndEvent
    | StepStartEvent
    | StepEndEvent
    | MessageStartEvent
    | TextDeltaEvent
    | MessageStopEvent
    | ThinkingStartEvent
    | ThinkingDeltaEvent
    | ThinkingStopEvent
    | ToolCallStartEvent
    | ToolInputDeltaEvent
    | ToolCallReadyEvent
    | ToolResultEvent
    | ToolErrorEvent
    | FileReadEvent
    | FileWriteEvent
    | FileCreateEvent
    | FileDeleteEvent
    | FilePatchEvent
    | ShellStartEvent
    | ShellStdoutDeltaEvent
    | ShellStderrDeltaEvent
    | ShellExitEvent
    | McpToolCallStartEvent
    | McpToolResultEvent
    | McpToolErrorEvent
    | SubagentSpawnEvent
    | SubagentResultEvent
    | SubagentErrorEvent
    | PluginLoadedEvent
    | PluginInvokedEvent
    | PluginErrorEvent
    | SkillLoadedEvent
    | SkillInvokedEvent
    | AgentdocReadEvent
    | ImageOutputEvent
    | ImageInputAckEvent
    | CostEvent
    | TokenUsageEvent
    | InputRequiredEvent
    | ApprovalRequestEvent
    | ApprovalGrantedEvent
    | ApprovalDeniedEvent
    | RateLimitedEvent
    | ContextLimitWarningEvent
    | ContextCompactedEvent
    | RetryEvent
    | InterruptedEvent
    | AbortedEvent
    | PausedEvent
    | ResumedEvent
    | TimeoutEvent
    | TurnLimitEvent
    | StreamFallbackEvent
    | AuthErrorEvent
    | RateLimitErrorEvent
    | ContextExceededEvent
    | CrashEvent
    | ErrorEvent
    | DebugEvent
    | LogEvent
)
"""Any of the 67 events; `event.type` tells which."""

ALL_EVENTS: tuple[type[AgentEvent], ...] = get_args(AgentEvent)
