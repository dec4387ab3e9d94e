"""The public names of `agent_loop`, and its import time."""

import subprocess
import sys
from pathlib import Path
from typing import get_args

import agent_loop
from agent_loop import errors
from agent_loop.events import LoopEvent, ParallelEvent

PUBLIC = {
    "DEFAULTS", "HOOKS", "NO_CACHE", "NO_LIMITS",
    "Access", "Agent", "AgentState", "AssistantMessage", "Behavior", "CacheSettings", "Chunk", "Compaction",
    "CompactionStrategy", "Compat", "ContextSettings", "DoneSignal", "ExecutionContext", "ExecutionError",
    "ExecutionLimits", "ExtensionMessage",
    "FileSessionStore", "FilesystemMiddleware", "HTTPTool", "HookContext", "Hooks", "Image", "InputFilter",
    "LoopEvent", "LoopRecord", "McpServer", "MemoryMiddleware", "MemorySessionStore", "Message", "Messages",
    "Middleware",
    "ModelRequest", "ModelResponse", "ModelSettings", "Pass", "Provider", "ProviderCapabilities", "RawTool", "Reject",
    "RepetitionLimits", "ReplayProvider", "RetrySettings", "RunResult", "RunStream", "ScriptedProvider", "Session",
    "SessionRecorder", "SessionStore", "ShellTool", "Skill", "SkillSettings", "SkillsMiddleware",
    "SummarizationMiddleware", "Surroundings",
    "SystemMessage", "TaskComplete", "Text", "TextChunk", "Thinking", "ThinkingChunk", "ThinkingDecay", "Todo",
    "TodoListMiddleware", "Tool", "ToolBudget", "ToolCall", "ToolCallChunk", "ToolContext", "ToolDefinition",
    "ToolMessage", "ToolResult", "TracingMiddleware", "Usage", "UserMessage", "Warn", "Workspace",
    "assistant", "default_middleware", "default_tools", "fork", "function_tool", "provider_named",
    "register_provider", "restore_messages", "resume", "save_messages", "system", "tool", "tool_message", "user",
    "validate",
    "EventBus", "EventRequest", "Gap", "PublishedEvent", "QuestionAsked", "QuestionClosed", "Subscription",
    "bearer_token", "event_app",
    "Evaluation", "EvaluationStrategy", "LoopVariant", "ParallelLoopOutcome", "ParallelLoopResult", "run_parallel",
    "BUILD_AGENT", "DEFAULT_PERSIST_EXCLUDE_TOOLS", "PLAN_AGENT", "AgentRegistry", "HookOverrides", "PlanMode",
    "Preset", "compose_presets", "find_agents", "read_agent",
    "Handoff", "LoopRunner", "SubAgentKind", "SubAgentReport", "SubAgentRunner", "SubAgentTask", "SubAgentTool",
}  # fmt: skip
ERRORS = {name for name in errors.__all__ if name[0].isupper()}
EVENTS = {event.__name__ for event in (*get_args(LoopEvent), *get_args(ParallelEvent))}


def test_the_public_names_are_pinned_and_all_there() -> None:
    assert set(agent_loop.__all__) == PUBLIC | EVENTS | ERRORS
    assert dir(agent_loop) == sorted(agent_loop.__all__)
    for name in agent_loop.__all__:
        assert getattr(agent_loop, name) is not None


def test_an_unknown_name_is_an_attribute_error() -> None:
    assert not hasattr(agent_loop, "no_such_name")


def test_importing_the_package_is_light() -> None:
    code = "import sys, agent_loop; print(sorted({'anyio', 'msgspec', 'pydantic', 'asyncio'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=30)
    assert done.stdout.strip() == "[]"


def test_the_package_has_its_types() -> None:
    assert Path(agent_loop.__file__).with_name("py.typed").is_file()
