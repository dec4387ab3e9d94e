"""The default middleware and its order."""

from pathlib import Path

import pytest

from agent_loop.errors import ConfigurationError
from agent_loop.middleware import SummarizationMiddleware, TracingMiddleware, default_middleware, tracing
from agent_loop.providers import ProviderCapabilities
from agent_loop.providers.scripted_provider import ScriptedProvider
from agent_loop.workspace import Workspace

PROVIDER = ScriptedProvider()


def test_registration_order_is_tracing_todos_filesystem_skills_memory_summarization(tmp_path: Path) -> None:
    chosen = default_middleware(PROVIDER, workspace=Workspace(tmp_path), skills=["s"], memory=["AGENTS.md"])
    assert [each.name for each in chosen] == ["tracing", "todos", "filesystem", "skills", "memory", "summarization"]


def test_activation_rules_without_workspace_or_paths(tmp_path: Path) -> None:
    always = ["tracing", "todos", "summarization"]
    assert [each.name for each in default_middleware(PROVIDER)] == always
    assert [each.name for each in default_middleware(PROVIDER, skills=["s"], memory=["m"])] == always
    assert [each.name for each in default_middleware(PROVIDER, workspace=Workspace(tmp_path))] == [
        "tracing", "todos", "filesystem", "summarization",
    ]  # fmt: skip


@pytest.mark.parametrize(("given", "known", "window"), [(5, 7, 5), (None, 7, 7), (None, None, 128_000)])
def test_the_context_window_is_the_given_the_providers_or_the_default(
    given: int | None, known: int | None, window: int
) -> None:
    provider = ScriptedProvider(capabilities=ProviderCapabilities(context_window=known))
    last = default_middleware(provider, context_window=given)[-1]
    assert isinstance(last, SummarizationMiddleware)
    assert last.context_window == window


def test_a_recorder_reaches_the_traces() -> None:
    recorder = tracing.OpenTelemetryRecorder()
    first = default_middleware(PROVIDER, recorder=recorder)[0]
    assert isinstance(first, TracingMiddleware)
    assert first.recorder is recorder


def test_missing_open_telemetry_is_reported_with_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "opentelemetry", None)
    with pytest.raises(ConfigurationError, match=r"agent-mux\[otel\]"):
        tracing.OpenTelemetryRecorder()
