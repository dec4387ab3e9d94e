"""Middleware that ships with the agent: files, skills, memory, summarization, todos and traces."""

from collections.abc import Sequence
from os import PathLike

from agent_loop.hooks.registry import Middleware
from agent_loop.middleware.filesystem import FilesystemMiddleware
from agent_loop.middleware.memory import MemoryMiddleware
from agent_loop.middleware.open_telemetry import OpenTelemetryMiddleware
from agent_loop.middleware.skills import SkillsMiddleware
from agent_loop.middleware.summarization import DEFAULT_CONTEXT_WINDOW, SummarizationMiddleware
from agent_loop.middleware.todos import TodoListMiddleware
from agent_loop.middleware.tracing import (
    OpenTelemetryRecorder,
    SpanHandle,
    TraceRecorder,
    TracingMiddleware,
    current_recorder,
    recording_to,
)
from agent_loop.providers import Provider
from agent_loop.workspace import Workspace

__all__ = [
    "FilesystemMiddleware",
    "MemoryMiddleware",
    "OpenTelemetryMiddleware",
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

Paths = Sequence[str | PathLike[str]]


def default_middleware(  # noqa: PLR0913  # one name for each thing that switches one on
    provider: Provider,
    *,
    workspace: Workspace | None = None,
    skills: Paths = (),
    memory: Paths = (),
    context_window: int | None = None,
    recorder: TraceRecorder | None = None,
) -> list[Middleware]:
    """Return the applicable middleware, the outermost first.

    Tracing, todos and summarization always; files with a workspace; skills and memory with a workspace and paths.
    """
    window = context_window or provider.capabilities.context_window or DEFAULT_CONTEXT_WINDOW
    chosen: list[Middleware] = [TracingMiddleware(recorder), TodoListMiddleware()]
    if workspace is not None:
        chosen.append(FilesystemMiddleware(workspace))
        chosen += [SkillsMiddleware(skills)] if skills else []
        chosen += [MemoryMiddleware(memory)] if memory else []
    return [*chosen, SummarizationMiddleware(provider, window)]
