"""What an agent can have around its loop: files, skills, memory, summaries, todos, traces."""

from agent_loop.middleware.defaults import default_middleware
from agent_loop.middleware.filesystem import FilesystemMiddleware
from agent_loop.middleware.memory import MemoryMiddleware
from agent_loop.middleware.opentelemetry import OpenTelemetryRecorder
from agent_loop.middleware.skills import SkillsMiddleware
from agent_loop.middleware.summarization import SummarizationMiddleware
from agent_loop.middleware.todos import TodoListMiddleware
from agent_loop.middleware.trace_recorder import SpanHandle, TraceRecorder, current_recorder, recording_to
from agent_loop.middleware.tracing import TracingMiddleware

__all__ = [
    "FilesystemMiddleware",
    "MemoryMiddleware",
    "OpenTelemetryRecorder",
    "SkillsMiddleware",
    "SpanHandle",
    "SummarizationMiddleware",
    "TodoListMiddleware",
    "TraceRecorder",
    "TracingMiddleware",
    "current_recorder",
    "default_middleware",
    "recording_to",
]
