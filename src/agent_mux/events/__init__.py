"""The 67 event types, their union, and how they travel as JSON. Source: agent-events spec.

One module per family; `ALL_EVENTS` lists the classes in the order of the spec.
"""

from agent_mux.events.accumulated import Accumulated, GrowingText
from agent_mux.events.base import BaseEvent
from agent_mux.events.cost import CostEvent, CostRecord, CostSource, TokenUsageEvent
from agent_mux.events.debug import DebugEvent, LogEvent
from agent_mux.events.error import AuthErrorEvent, ContextExceededEvent, CrashEvent, ErrorEvent, RateLimitErrorEvent
from agent_mux.events.file import FileCreateEvent, FileDeleteEvent, FilePatchEvent, FileReadEvent, FileWriteEvent
from agent_mux.events.guards import (
    CATEGORIES,
    category_of,
    has_correlation_key,
    is_cost_event,
    is_debug_event,
    is_error_event,
    is_event_type,
    is_file_event,
    is_interaction_event,
    is_mcp_event,
    is_multimodal_event,
    is_plugin_event,
    is_rate_limit_event,
    is_run_lifecycle_event,
    is_session_event,
    is_shell_event,
    is_skill_event,
    is_subagent_event,
    is_terminal_event,
    is_text_event,
    is_thinking_event,
    is_tool_event,
    is_turn_event,
)
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
from agent_mux.events.rebuilder import Rebuilder
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
from agent_mux.events.types import AgentEventType
from agent_mux.events.union import ALL_EVENTS, AgentEvent
from agent_mux.events.wire import (
    UnknownEvent,
    decode_event,
    encode_event,
    event_from_dict,
    event_to_dict,
    json_schema,
)

__all__ = [
    "ALL_EVENTS",
    "CATEGORIES",
    "AbortedEvent",
    "Accumulated",
    "AgentEvent",
    "AgentEventType",
    "AgentdocReadEvent",
    "ApprovalDeniedEvent",
    "ApprovalGrantedEvent",
    "ApprovalRequestEvent",
    "AuthErrorEvent",
    "BaseEvent",
    "ContextCompactedEvent",
    "ContextExceededEvent",
    "ContextLimitWarningEvent",
    "CostEvent",
    "CostRecord",
    "CostSource",
    "CrashEvent",
    "DebugEvent",
    "ErrorEvent",
    "FileCreateEvent",
    "FileDeleteEvent",
    "FilePatchEvent",
    "FileReadEvent",
    "FileWriteEvent",
    "GrowingText",
    "ImageInputAckEvent",
    "ImageOutputEvent",
    "InputRequiredEvent",
    "InterruptedEvent",
    "LogEvent",
    "McpToolCallStartEvent",
    "McpToolErrorEvent",
    "McpToolResultEvent",
    "MessageStartEvent",
    "MessageStopEvent",
    "PausedEvent",
    "PluginErrorEvent",
    "PluginInvokedEvent",
    "PluginLoadedEvent",
    "RateLimitErrorEvent",
    "RateLimitedEvent",
    "Rebuilder",
    "ResumedEvent",
    "RetryEvent",
    "SessionCheckpointEvent",
    "SessionEndEvent",
    "SessionForkEvent",
    "SessionResumeEvent",
    "SessionStartEvent",
    "ShellExitEvent",
    "ShellStartEvent",
    "ShellStderrDeltaEvent",
    "ShellStdoutDeltaEvent",
    "SkillInvokedEvent",
    "SkillLoadedEvent",
    "StepEndEvent",
    "StepStartEvent",
    "StreamFallbackEvent",
    "SubagentErrorEvent",
    "SubagentResultEvent",
    "SubagentSpawnEvent",
    "TextDeltaEvent",
    "ThinkingDeltaEvent",
    "ThinkingStartEvent",
    "ThinkingStopEvent",
    "TimeoutEvent",
    "TokenUsageEvent",
    "ToolCallReadyEvent",
    "ToolCallStartEvent",
    "ToolErrorEvent",
    "ToolInputDeltaEvent",
    "ToolResultEvent",
    "TurnEndEvent",
    "TurnLimitEvent",
    "TurnStartEvent",
    "UnknownEvent",
    "category_of",
    "decode_event",
    "encode_event",
    "event_from_dict",
    "event_to_dict",
    "has_correlation_key",
    "is_cost_event",
    "is_debug_event",
    "is_error_event",
    "is_event_type",
    "is_file_event",
    "is_interaction_event",
    "is_mcp_event",
    "is_multimodal_event",
    "is_plugin_event",
    "is_rate_limit_event",
    "is_run_lifecycle_event",
    "is_session_event",
    "is_shell_event",
    "is_skill_event",
    "is_subagent_event",
    "is_terminal_event",
    "is_text_event",
    "is_thinking_event",
    "is_tool_event",
    "is_turn_event",
    "json_schema",
]
