"""The categories of events and the predicates on events. See docs/spec/events.md, sections 23, 28 and 29."""

from typing import TypeGuard, TypeVar, get_args

from agent_mux.events.base import BaseEvent, CostEvent, TokenUsageEvent
from agent_mux.events.content import (
    ImageInputAckEvent,
    ImageOutputEvent,
    MessageStartEvent,
    MessageStopEvent,
    TextDeltaEvent,
    ThinkingDeltaEvent,
    ThinkingStartEvent,
    ThinkingStopEvent,
)
from agent_mux.events.run import (
    AbortedEvent,
    ApprovalDeniedEvent,
    ApprovalGrantedEvent,
    ApprovalRequestEvent,
    AuthErrorEvent,
    ContextCompactedEvent,
    ContextExceededEvent,
    ContextLimitWarningEvent,
    CrashEvent,
    DebugEvent,
    ErrorEvent,
    InputRequiredEvent,
    InterruptedEvent,
    LogEvent,
    PausedEvent,
    RateLimitedEvent,
    RateLimitErrorEvent,
    ResumedEvent,
    RetryEvent,
    StreamFallbackEvent,
    TimeoutEvent,
    TurnLimitEvent,
)
from agent_mux.events.session import (
    AgentdocReadEvent,
    PluginErrorEvent,
    PluginInvokedEvent,
    PluginLoadedEvent,
    SessionCheckpointEvent,
    SessionEndEvent,
    SessionForkEvent,
    SessionResumeEvent,
    SessionStartEvent,
    SkillInvokedEvent,
    SkillLoadedEvent,
    StepEndEvent,
    StepStartEvent,
    TurnEndEvent,
    TurnStartEvent,
)
from agent_mux.events.tools import (
    FileCreateEvent,
    FileDeleteEvent,
    FilePatchEvent,
    FileReadEvent,
    FileWriteEvent,
    McpToolCallStartEvent,
    McpToolErrorEvent,
    McpToolResultEvent,
    ShellExitEvent,
    ShellStartEvent,
    ShellStderrDeltaEvent,
    ShellStdoutDeltaEvent,
    SubagentErrorEvent,
    SubagentResultEvent,
    SubagentSpawnEvent,
    ToolCallReadyEvent,
    ToolCallStartEvent,
    ToolErrorEvent,
    ToolInputDeltaEvent,
    ToolResultEvent,
)
from agent_mux.events.union import ALL_EVENTS, AgentEvent

E = TypeVar("E", bound=BaseEvent)

SessionEvent = SessionStartEvent | SessionResumeEvent | SessionForkEvent | SessionCheckpointEvent | SessionEndEvent
TurnEvent = TurnStartEvent | TurnEndEvent | StepStartEvent | StepEndEvent
TextEvent = MessageStartEvent | TextDeltaEvent | MessageStopEvent
ThinkingEvent = ThinkingStartEvent | ThinkingDeltaEvent | ThinkingStopEvent
ToolEvent = ToolCallStartEvent | ToolInputDeltaEvent | ToolCallReadyEvent | ToolResultEvent | ToolErrorEvent
FileEvent = FileReadEvent | FileWriteEvent | FileCreateEvent | FileDeleteEvent | FilePatchEvent
ShellEvent = ShellStartEvent | ShellStdoutDeltaEvent | ShellStderrDeltaEvent | ShellExitEvent
McpEvent = McpToolCallStartEvent | McpToolResultEvent | McpToolErrorEvent
SubagentEvent = SubagentSpawnEvent | SubagentResultEvent | SubagentErrorEvent
PluginEvent = PluginLoadedEvent | PluginInvokedEvent | PluginErrorEvent
SkillEvent = SkillLoadedEvent | SkillInvokedEvent | AgentdocReadEvent
MultimodalEvent = ImageOutputEvent | ImageInputAckEvent
CostOrTokenEvent = CostEvent | TokenUsageEvent
InteractionEvent = InputRequiredEvent | ApprovalRequestEvent | ApprovalGrantedEvent | ApprovalDeniedEvent
RateLimitEvent = RateLimitedEvent | ContextLimitWarningEvent | ContextCompactedEvent | RetryEvent
RunLifecycleEvent = (
    InterruptedEvent | AbortedEvent | PausedEvent | ResumedEvent | TimeoutEvent | TurnLimitEvent | StreamFallbackEvent
)
FailureEvent = AuthErrorEvent | RateLimitErrorEvent | ContextExceededEvent | CrashEvent | ErrorEvent
DiagnosticEvent = DebugEvent | LogEvent

CATEGORIES: dict[str, tuple[type[AgentEvent], ...]] = {
    "session": get_args(SessionEvent),
    "turn": get_args(TurnEvent),
    "text": get_args(TextEvent),
    "thinking": get_args(ThinkingEvent),
    "tool": get_args(ToolEvent),
    "file": get_args(FileEvent),
    "shell": get_args(ShellEvent),
    "mcp": get_args(McpEvent),
    "subagent": get_args(SubagentEvent),
    "plugin": get_args(PluginEvent),
    "skill": get_args(SkillEvent),
    "multimodal": get_args(MultimodalEvent),
    "cost": get_args(CostOrTokenEvent),
    "interaction": get_args(InteractionEvent),
    "rate_limit": get_args(RateLimitEvent),
    "run_lifecycle": get_args(RunLifecycleEvent),
    "error": get_args(FailureEvent),
    "debug": get_args(DiagnosticEvent),
}
"""The event classes of each of the 18 categories, in the order of the specification (section 29)."""

_CATEGORY_BY_TYPE: dict[str, str] = {event.type: name for name, events in CATEGORIES.items() for event in events}
_TERMINAL = frozenset({"interrupted", "aborted", "timeout", "turn_limit", "auth_error", "context_exceeded", "crash"})
_FIELDS_BY_WIRE_NAME: dict[str, dict[str, str]] = {
    event.type: dict(zip(event.__struct_encode_fields__, event.__struct_fields__, strict=True)) for event in ALL_EVENTS
}


def category_of(event_type: str) -> str | None:
    """Return the category of a type literal, or None for a type that this version does not know."""
    return _CATEGORY_BY_TYPE.get(event_type)


def is_event_type(event: BaseEvent, kind: type[E]) -> TypeGuard[E]:
    """Return whether the event is of this class, and narrow its type."""
    return isinstance(event, kind)


def is_session_event(event: BaseEvent) -> TypeGuard[SessionEvent]:
    """Return whether the event belongs to the `session` category."""
    return isinstance(event, SessionEvent)


def is_turn_event(event: BaseEvent) -> TypeGuard[TurnEvent]:
    """Return whether the event belongs to the `turn` category."""
    return isinstance(event, TurnEvent)


def is_text_event(event: BaseEvent) -> TypeGuard[TextEvent]:
    """Return whether the event belongs to the `text` category."""
    return isinstance(event, TextEvent)


def is_thinking_event(event: BaseEvent) -> TypeGuard[ThinkingEvent]:
    """Return whether the event belongs to the `thinking` category."""
    return isinstance(event, ThinkingEvent)


def is_tool_event(event: BaseEvent) -> TypeGuard[ToolEvent]:
    """Return whether the event belongs to the `tool` category."""
    return isinstance(event, ToolEvent)


def is_file_event(event: BaseEvent) -> TypeGuard[FileEvent]:
    """Return whether the event belongs to the `file` category."""
    return isinstance(event, FileEvent)


def is_shell_event(event: BaseEvent) -> TypeGuard[ShellEvent]:
    """Return whether the event belongs to the `shell` category."""
    return isinstance(event, ShellEvent)


def is_mcp_event(event: BaseEvent) -> TypeGuard[McpEvent]:
    """Return whether the event belongs to the `mcp` category."""
    return isinstance(event, McpEvent)


def is_subagent_event(event: BaseEvent) -> TypeGuard[SubagentEvent]:
    """Return whether the event belongs to the `subagent` category."""
    return isinstance(event, SubagentEvent)


def is_plugin_event(event: BaseEvent) -> TypeGuard[PluginEvent]:
    """Return whether the event belongs to the `plugin` category."""
    return isinstance(event, PluginEvent)


def is_skill_event(event: BaseEvent) -> TypeGuard[SkillEvent]:
    """Return whether the event belongs to the `skill` category."""
    return isinstance(event, SkillEvent)


def is_multimodal_event(event: BaseEvent) -> TypeGuard[MultimodalEvent]:
    """Return whether the event belongs to the `multimodal` category."""
    return isinstance(event, MultimodalEvent)


def is_cost_event(event: BaseEvent) -> TypeGuard[CostOrTokenEvent]:
    """Return whether the event belongs to the `cost` category."""
    return isinstance(event, CostOrTokenEvent)


def is_interaction_event(event: BaseEvent) -> TypeGuard[InteractionEvent]:
    """Return whether the event belongs to the `interaction` category."""
    return isinstance(event, InteractionEvent)


def is_rate_limit_event(event: BaseEvent) -> TypeGuard[RateLimitEvent]:
    """Return whether the event belongs to the `rate_limit` category."""
    return isinstance(event, RateLimitEvent)


def is_run_lifecycle_event(event: BaseEvent) -> TypeGuard[RunLifecycleEvent]:
    """Return whether the event belongs to the `run_lifecycle` category."""
    return isinstance(event, RunLifecycleEvent)


def is_error_event(event: BaseEvent) -> TypeGuard[FailureEvent]:
    """Return whether the event belongs to the `error` category."""
    return isinstance(event, FailureEvent)


def is_debug_event(event: BaseEvent) -> TypeGuard[DiagnosticEvent]:
    """Return whether the event belongs to the `debug` category."""
    return isinstance(event, DiagnosticEvent)


def is_terminal_event(event: BaseEvent) -> bool:
    """Return whether the run ends after this event.

    False for `rate_limit_error`, which a `retry` may follow; the `session_end` after it marks the end.
    """
    return event.type in _TERMINAL or (isinstance(event, ErrorEvent) and not event.recoverable)


def has_correlation_key(event: BaseEvent, key: str) -> bool:
    """Return whether the event has a value for a correlation key, given by its JSON name such as `toolCallId`."""
    field = _FIELDS_BY_WIRE_NAME.get(event.type, {}).get(key)
    return field is not None and getattr(event, field) is not None
