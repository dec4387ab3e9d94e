"""The embedded agent: a runtime for agents of your own, and what `amux-agent` is made of.

Example:
    agent = Agent("anthropic:MODEL", tools=default_tools(), workspace=Path.cwd())
    result = await agent.run("fix the failing test")
    print(result.text)

See docs/how-to/build-an-agent.md and docs/design/agent-loop.md. Names are imported when they are first used, so that
`import agent_loop` costs next to nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agent_loop.agent import Agent
    from agent_loop.behavior import (
        DEFAULTS,
        NO_LIMITS,
        Behavior,
        ContextSettings,
        ExecutionLimits,
        RepetitionLimits,
        RetrySettings,
        ThinkingDecay,
        ToolBudget,
    )
    from agent_loop.context import Compaction, CompactionStrategy
    from agent_loop.errors import (
        AbortedError,
        AgentLoopError,
        AuthenticationError,
        ConfigurationError,
        ContentFilteredError,
        ContextExceededError,
        EmptyAnswerError,
        ExecutionError,
        InvalidArgumentsError,
        McpConnectionError,
        McpServerError,
        MessageError,
        MissingKeyError,
        ModelAbortedError,
        NetworkError,
        ProviderError,
        ProviderErrorKind,
        QuotaExceededError,
        RateLimitedError,
        RunInProgressError,
        SessionError,
        SessionLockedError,
        SessionNotFoundError,
        ToolCancelledError,
        ToolError,
        WorkspaceError,
    )
    from agent_loop.events import (
        BudgetExceeded,
        ContextCompacted,
        ContextFilling,
        Final,
        HandedOff,
        HookFailed,
        InputRejected,
        InputWarning,
        LimitReached,
        LoopEnd,
        LoopEvent,
        LoopStart,
        McpBootstrapped,
        MessageAbandoned,
        MessageInjected,
        ModelChanged,
        Noted,
        OutputProduced,
        ParallelLoopEnd,
        ParallelLoopStart,
        Reasoning,
        Retrying,
        SubAgentEnd,
        SubAgentEvent,
        SubAgentStart,
        TextDelta,
        TextSaid,
        ThinkingDelta,
        ToolCalled,
        ToolCallEnd,
        ToolCallStart,
        ToolInputDelta,
        ToolProgress,
        ToolResulted,
        ToolUpdate,
        TurnEnd,
        TurnStart,
        UsageReported,
    )
    from agent_loop.execution import ExecutionContext
    from agent_loop.handoffs import Handoff
    from agent_loop.hooks import HOOKS, HookContext, Hooks, Middleware
    from agent_loop.loop.inputs import InputFilter, Pass, Reject, Warn
    from agent_loop.loop.run import Surroundings
    from agent_loop.mcp import McpServer
    from agent_loop.messages import (
        AssistantMessage,
        ExtensionMessage,
        Image,
        Message,
        Messages,
        SystemMessage,
        Text,
        Thinking,
        ToolCall,
        ToolMessage,
        UserMessage,
        assistant,
        restore_messages,
        save_messages,
        system,
        tool_message,
        user,
        validate,
    )
    from agent_loop.middleware import (
        FilesystemMiddleware,
        MemoryMiddleware,
        SkillsMiddleware,
        SummarizationMiddleware,
        TodoListMiddleware,
        TracingMiddleware,
        default_middleware,
    )
    from agent_loop.parallel import (
        Evaluation,
        EvaluationStrategy,
        LoopVariant,
        ParallelLoopOutcome,
        ParallelLoopResult,
        run_parallel,
    )
    from agent_loop.presets import (
        BUILD_AGENT,
        DEFAULT_PERSIST_EXCLUDE_TOOLS,
        PLAN_AGENT,
        AgentRegistry,
        HookOverrides,
        PlanMode,
        Preset,
        compose_presets,
    )
    from agent_loop.presets.agent_file import find_agents, read_agent
    from agent_loop.providers import (
        NO_CACHE,
        CacheSettings,
        Chunk,
        ModelRequest,
        ModelResponse,
        ModelSettings,
        Provider,
        ProviderCapabilities,
        TextChunk,
        ThinkingChunk,
        ToolCallChunk,
        ToolDefinition,
    )
    from agent_loop.providers.access import Access, Compat
    from agent_loop.providers.registry import provider_named, register_provider
    from agent_loop.providers.scripted_provider import ScriptedProvider
    from agent_loop.publishing.bus import EventBus, Subscription
    from agent_loop.publishing.http import EventRequest, bearer_token, event_app
    from agent_loop.publishing.published import Gap, PublishedEvent, QuestionAsked, QuestionClosed
    from agent_loop.results import RunResult, RunStream
    from agent_loop.sessions import (
        FileSessionStore,
        LoopRecord,
        MemorySessionStore,
        Session,
        SessionRecorder,
        SessionStore,
        fork,
        resume,
    )
    from agent_loop.sessions.replay_provider import ReplayProvider
    from agent_loop.skill_files import Skill
    from agent_loop.skills.settings import SkillSettings
    from agent_loop.state import AgentState, Todo
    from agent_loop.subagents import (
        LoopRunner,
        SubAgentKind,
        SubAgentReport,
        SubAgentRunner,
        SubAgentTask,
        SubAgentTool,
    )
    from agent_loop.tools.builtin import HTTPTool, ShellTool, default_tools
    from agent_loop.tools.function import function_tool, tool
    from agent_loop.tools.tool import DoneSignal, RawTool, TaskComplete, Tool, ToolContext, ToolResult
    from agent_loop.usage import Usage
    from agent_loop.workspace import Workspace

_HOMES = {
    "agent_loop.agent": (
        "Agent",
    ),
    "agent_loop.behavior": (
        "DEFAULTS", "NO_LIMITS", "Behavior", "ContextSettings", "ExecutionLimits", "RepetitionLimits",
        "RetrySettings", "ThinkingDecay",
        "ToolBudget",
    ),
    "agent_loop.context": (
        "Compaction", "CompactionStrategy",
    ),
    "agent_loop.errors": (
        "QuotaExceededError",
        "EmptyAnswerError", "ExecutionError",
        "AbortedError", "AgentLoopError", "AuthenticationError", "ConfigurationError",
        "ContentFilteredError", "ContextExceededError",
        "McpConnectionError", "McpServerError",
        "InvalidArgumentsError", "MessageError", "MissingKeyError", "ModelAbortedError", "NetworkError",
        "ProviderError",
        "ProviderErrorKind", "RateLimitedError", "RunInProgressError", "SessionError", "SessionLockedError",
        "SessionNotFoundError", "ToolCancelledError", "ToolError", "WorkspaceError",
    ),
    "agent_loop.events": (
        "HandedOff", "McpBootstrapped", "ModelChanged", "SubAgentEnd", "SubAgentEvent", "SubAgentStart",
        "BudgetExceeded", "ContextCompacted", "ContextFilling", "Final", "HookFailed", "InputRejected",
        "InputWarning", "LimitReached", "LoopEnd", "LoopEvent", "LoopStart", "MessageAbandoned", "MessageInjected",
        "Noted", "OutputProduced", "ParallelLoopEnd", "ParallelLoopStart", "Reasoning", "Retrying", "TextDelta",
        "TextSaid", "ThinkingDelta", "ToolCallEnd",
        "ToolCallStart", "ToolCalled", "ToolInputDelta", "ToolProgress", "ToolResulted", "ToolUpdate", "TurnEnd",
        "TurnStart", "UsageReported",
    ),
    "agent_loop.handoffs": (
        "Handoff",
    ),
    "agent_loop.hooks": (
        "HOOKS", "HookContext", "Hooks", "Middleware",
    ),
    "agent_loop.loop.inputs": (
        "InputFilter", "Pass", "Reject", "Warn",
    ),
    "agent_loop.loop.run": (
        "Surroundings",
    ),
    "agent_loop.mcp.servers": (
        "McpServer",
    ),
    "agent_loop.messages": (
        "AssistantMessage", "ExtensionMessage", "Image", "Message", "Messages", "SystemMessage", "Text", "Thinking",
        "ToolCall", "ToolMessage", "UserMessage", "assistant", "restore_messages", "save_messages", "system",
        "tool_message", "user", "validate",
    ),
    "agent_loop.middleware": (
        "FilesystemMiddleware", "MemoryMiddleware", "SkillsMiddleware", "SummarizationMiddleware",
        "TodoListMiddleware", "TracingMiddleware", "default_middleware",
    ),
    "agent_loop.providers": (
        "NO_CACHE", "CacheSettings", "Chunk", "ModelRequest", "ModelResponse", "ModelSettings", "Provider",
        "ProviderCapabilities", "TextChunk", "ThinkingChunk", "ToolCallChunk", "ToolDefinition",
    ),
    "agent_loop.providers.access": (
        "Access", "Compat",
    ),
    "agent_loop.providers.registry": (
        "provider_named", "register_provider",
    ),
    "agent_loop.sessions.replay_provider": (
        "ReplayProvider",
    ),
    "agent_loop.providers.scripted_provider": (
        "ScriptedProvider",
    ),
    "agent_loop.publishing.bus": (
        "EventBus", "Subscription",
    ),
    "agent_loop.publishing.http": (
        "EventRequest", "bearer_token", "event_app",
    ),
    "agent_loop.publishing.published": (
        "Gap", "PublishedEvent", "QuestionAsked", "QuestionClosed",
    ),
    "agent_loop.results": (
        "RunResult", "RunStream",
    ),
    "agent_loop.sessions": (
        "FileSessionStore", "LoopRecord", "MemorySessionStore", "Session", "SessionRecorder", "SessionStore",
        "fork", "resume",
    ),
    "agent_loop.skill_files": (
        "Skill",
    ),
    "agent_loop.skills.settings": (
        "SkillSettings",
    ),
    "agent_loop.state": (
        "AgentState", "Todo",
    ),
    "agent_loop.tools.builtin": (
        "HTTPTool", "ShellTool", "default_tools",
    ),
    "agent_loop.tools.function": (
        "function_tool", "tool",
    ),
    "agent_loop.tools.tool": (
        "DoneSignal", "RawTool", "TaskComplete", "Tool", "ToolContext", "ToolResult",
    ),
    "agent_loop.usage": (
        "Usage",
    ),
    "agent_loop.workspace": (
        "Workspace",
    ),
    "agent_loop.parallel": (
        "Evaluation", "EvaluationStrategy", "LoopVariant", "ParallelLoopOutcome", "ParallelLoopResult", "run_parallel",
    ),
    "agent_loop.execution": (
        "ExecutionContext",
    ),
    "agent_loop.presets": (
        "BUILD_AGENT", "DEFAULT_PERSIST_EXCLUDE_TOOLS", "PLAN_AGENT", "AgentRegistry", "HookOverrides", "PlanMode",
        "Preset", "compose_presets",
    ),
    "agent_loop.presets.agent_file": (
        "find_agents", "read_agent",
    ),
    "agent_loop.subagents": (
        "LoopRunner", "SubAgentKind", "SubAgentReport", "SubAgentRunner", "SubAgentTask", "SubAgentTool",
    ),
}  # fmt: skip
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}

__all__ = [
    "BUILD_AGENT",
    "DEFAULTS",
    "DEFAULT_PERSIST_EXCLUDE_TOOLS",
    "HOOKS",
    "NO_CACHE",
    "NO_LIMITS",
    "PLAN_AGENT",
    "AbortedError",
    "Access",
    "Agent",
    "AgentLoopError",
    "AgentRegistry",
    "AgentState",
    "AssistantMessage",
    "AuthenticationError",
    "Behavior",
    "BudgetExceeded",
    "CacheSettings",
    "Chunk",
    "Compaction",
    "CompactionStrategy",
    "Compat",
    "ConfigurationError",
    "ContentFilteredError",
    "ContextCompacted",
    "ContextExceededError",
    "ContextFilling",
    "ContextSettings",
    "DoneSignal",
    "EmptyAnswerError",
    "Evaluation",
    "EvaluationStrategy",
    "EventBus",
    "EventRequest",
    "ExecutionContext",
    "ExecutionError",
    "ExecutionLimits",
    "ExtensionMessage",
    "FileSessionStore",
    "FilesystemMiddleware",
    "Final",
    "Gap",
    "HTTPTool",
    "HandedOff",
    "Handoff",
    "HookContext",
    "HookFailed",
    "HookOverrides",
    "Hooks",
    "Image",
    "InputFilter",
    "InputRejected",
    "InputWarning",
    "InvalidArgumentsError",
    "LimitReached",
    "LoopEnd",
    "LoopEvent",
    "LoopRecord",
    "LoopRunner",
    "LoopStart",
    "LoopVariant",
    "McpBootstrapped",
    "McpConnectionError",
    "McpServer",
    "McpServerError",
    "MemoryMiddleware",
    "MemorySessionStore",
    "Message",
    "MessageAbandoned",
    "MessageError",
    "MessageInjected",
    "Messages",
    "Middleware",
    "MissingKeyError",
    "ModelAbortedError",
    "ModelChanged",
    "ModelRequest",
    "ModelResponse",
    "ModelSettings",
    "NetworkError",
    "Noted",
    "OutputProduced",
    "ParallelLoopEnd",
    "ParallelLoopOutcome",
    "ParallelLoopResult",
    "ParallelLoopStart",
    "Pass",
    "PlanMode",
    "Preset",
    "Provider",
    "ProviderCapabilities",
    "ProviderError",
    "ProviderErrorKind",
    "PublishedEvent",
    "QuestionAsked",
    "QuestionClosed",
    "QuotaExceededError",
    "RateLimitedError",
    "RawTool",
    "Reasoning",
    "Reject",
    "RepetitionLimits",
    "ReplayProvider",
    "RetrySettings",
    "Retrying",
    "RunInProgressError",
    "RunResult",
    "RunStream",
    "ScriptedProvider",
    "Session",
    "SessionError",
    "SessionLockedError",
    "SessionNotFoundError",
    "SessionRecorder",
    "SessionStore",
    "ShellTool",
    "Skill",
    "SkillSettings",
    "SkillsMiddleware",
    "SubAgentEnd",
    "SubAgentEvent",
    "SubAgentKind",
    "SubAgentReport",
    "SubAgentRunner",
    "SubAgentStart",
    "SubAgentTask",
    "SubAgentTool",
    "Subscription",
    "SummarizationMiddleware",
    "Surroundings",
    "SystemMessage",
    "TaskComplete",
    "Text",
    "TextChunk",
    "TextDelta",
    "TextSaid",
    "Thinking",
    "ThinkingChunk",
    "ThinkingDecay",
    "ThinkingDelta",
    "Todo",
    "TodoListMiddleware",
    "Tool",
    "ToolBudget",
    "ToolCall",
    "ToolCallChunk",
    "ToolCallEnd",
    "ToolCallStart",
    "ToolCalled",
    "ToolCancelledError",
    "ToolContext",
    "ToolDefinition",
    "ToolError",
    "ToolInputDelta",
    "ToolMessage",
    "ToolProgress",
    "ToolResult",
    "ToolResulted",
    "ToolUpdate",
    "TracingMiddleware",
    "TurnEnd",
    "TurnStart",
    "Usage",
    "UsageReported",
    "UserMessage",
    "Warn",
    "Workspace",
    "WorkspaceError",
    "assistant",
    "bearer_token",
    "compose_presets",
    "default_middleware",
    "default_tools",
    "event_app",
    "find_agents",
    "fork",
    "function_tool",
    "provider_named",
    "read_agent",
    "register_provider",
    "restore_messages",
    "resume",
    "run_parallel",
    "save_messages",
    "system",
    "tool",
    "tool_message",
    "user",
    "validate",
]


def __getattr__(name: str) -> Any:
    """Import a public name from its home."""
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module 'agent_loop' has no attribute {name!r}")
    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
