"""Spans of runs by OpenTelemetry, with the names of the GenAI semantic conventions."""

import json
from typing import Any

import anyio
import pytest

from agent_loop import Agent, Behavior, LoopRunner, RetrySettings, ScriptedProvider, SubAgentTool, tool
from agent_loop.middleware import OpenTelemetryMiddleware
from agent_loop.providers.script import call, say
from agent_loop.providers.script import fail as failed_call

sdk = pytest.importorskip("opentelemetry.sdk.trace")
export = pytest.importorskip("opentelemetry.sdk.trace.export.in_memory_span_exporter")
trace = pytest.importorskip("opentelemetry.trace")


class Tracing:
    """Middleware with spans in memory."""

    def __init__(self) -> None:
        self.memory, provider = export.InMemorySpanExporter(), sdk.TracerProvider()
        provider.add_span_processor(sdk.export.SimpleSpanProcessor(self.memory))
        self.tracer = provider.get_tracer("test")

    def middleware(self, **settings: Any) -> OpenTelemetryMiddleware:
        return OpenTelemetryMiddleware(self.tracer, **settings)

    @property
    def spans(self) -> list[Any]:
        """The finished spans in the order of their starts."""
        return sorted(self.memory.get_finished_spans(), key=lambda span: span.start_time)

    def tree(self) -> list[tuple[str, str | None]]:
        """The names of the spans, each with that of its parent."""
        names = {span.context.span_id: span.name for span in self.spans}
        return [(span.name, names[span.parent.span_id] if span.parent else None) for span in self.spans]

    def find(self, name: str) -> Any:
        return next(span for span in self.spans if span.name == name)


@tool
def look(place: str) -> str:
    """Look somewhere."""
    trace.get_current_span().add_event("looked")
    return f"secret of {place}"


@tool
def fail() -> str:
    """Fail."""
    raise ValueError("secret reason")


def run(agent: Agent, prompt: str = "secret prompt") -> Any:
    async def bounded() -> Any:
        with anyio.fail_after(60):
            return await agent.attempt(prompt)

    return anyio.run(bounded)


STEPS = [call("look", place="here"), say("secret answer")]


def test_spans_of_a_run_are_nested_and_named_by_the_conventions() -> None:
    tracing = Tracing()
    middleware = tracing.middleware(agent_name="helper", provider="scripted", model="m-1")
    agent = Agent(ScriptedProvider(STEPS), tools=[look], middleware=[middleware])
    result = run(agent)
    assert result.status == "completed"
    assert tracing.tree() == [
        ("invoke_agent helper", None),
        ("turn", "invoke_agent helper"),
        ("chat m-1", "turn"),
        ("execute_tool look", "turn"),
        ("turn", "invoke_agent helper"),
        ("chat m-1", "turn"),
    ]
    whole = tracing.find("invoke_agent helper").attributes
    assert whole["gen_ai.operation.name"] == "invoke_agent"
    assert whole["gen_ai.conversation.id"] == agent.session.session_id
    assert (whole["gen_ai.provider.name"], whole["gen_ai.request.model"]) == ("scripted", "m-1")
    assert whole["agent_loop.status"] == "completed"
    assert whole["gen_ai.usage.output_tokens"] == result.usage.output_tokens
    chat = tracing.find("chat m-1")
    assert chat.kind.name == "CLIENT"
    assert chat.attributes["gen_ai.operation.name"] == "chat"
    assert chat.attributes["gen_ai.response.finish_reasons"] == ("tool_use",)
    used = tracing.find("execute_tool look")
    assert used.attributes["gen_ai.tool.name"] == "look"
    assert [event.name for event in used.events] == ["looked"], "the span is current while the tool runs"
    assert [span.attributes["agent_loop.turn.index"] for span in tracing.spans if span.name == "turn"] == [0, 1]


@pytest.mark.parametrize("content", [False, True])
def test_content_is_recorded_only_on_request(content: bool) -> None:
    tracing = Tracing()
    agent = Agent(
        ScriptedProvider([*STEPS[:1], call("fail"), *STEPS[1:]]),
        tools=[look, fail],
        system_prompt="secret system",
        middleware=[tracing.middleware(content=content)],
    )
    run(agent)
    recorded = "".join(f"{span.attributes}{span.events}{span.status.description}" for span in tracing.spans)
    if content:
        asked = json.loads(tracing.find("chat script").attributes["gen_ai.input.messages"])
        assert asked == [{"role": "user", "parts": [{"type": "text", "content": "secret prompt"}]}]
    found = [each for each in ("system", "prompt", "answer", "of here", "reason") if f"secret {each}" in recorded]
    assert found == (["system", "prompt", "answer", "of here", "reason"] if content else [])


def test_failures_mark_the_spans_with_the_type_of_the_error() -> None:
    tracing = Tracing()
    steps = [call("fail"), failed_call("network", "secret gone")]
    agent = Agent(
        ScriptedProvider(steps),
        tools=[fail],
        behavior=Behavior(retry=RetrySettings(max_retries=0)),
        middleware=[tracing.middleware()],
    )
    assert run(agent).error is not None
    failed = [(span.name, span.attributes["error.type"]) for span in tracing.spans if "error.type" in span.attributes]
    assert failed == [
        ("invoke_agent agent_loop", "NetworkError"),
        ("execute_tool fail", "ValueError"),
        ("turn", "NetworkError"),
        ("chat", "NetworkError"),
    ]
    assert all(span.status.status_code.name == "ERROR" for span in tracing.spans if "error.type" in span.attributes)
    assert len(tracing.spans) == 6


def test_run_of_a_sub_agent_is_inside_its_tool_call() -> None:
    tracing = Tracing()
    runner = LoopRunner(middleware=lambda: [tracing.middleware(agent_name="child")])
    steps = [call("delegate", task="look"), say("of the child"), say("done")]
    agent = Agent(
        ScriptedProvider(steps),
        tools=[SubAgentTool("delegate", runner=runner)],
        middleware=[tracing.middleware(agent_name="parent")],
    )
    run(agent)
    assert tracing.tree() == [
        ("invoke_agent parent", None),
        ("turn", "invoke_agent parent"),
        *[(name, "turn") for name in tracing_names(tracing, "chat")[:1]],
        ("execute_tool delegate", "turn"),
        ("invoke_agent child", "execute_tool delegate"),
        ("turn", "invoke_agent child"),
        *[(name, "turn") for name in tracing_names(tracing, "chat")[1:2]],
        ("turn", "invoke_agent parent"),
        *[(name, "turn") for name in tracing_names(tracing, "chat")[2:]],
    ]


def tracing_names(tracing: Tracing, operation: str) -> list[str]:
    return [span.name for span in tracing.spans if span.name.startswith(operation)]


def test_concurrent_runs_of_one_middleware_have_their_own_spans() -> None:
    tracing = Tracing()
    shared = tracing.middleware()
    agents = [Agent(ScriptedProvider(STEPS), tools=[look], middleware=[shared]) for _ in range(3)]

    async def both() -> None:
        with anyio.fail_after(60):
            async with anyio.create_task_group() as group:
                for agent in agents:
                    group.start_soon(agent.attempt, "go")

    anyio.run(both)
    roots = [span for span in tracing.spans if span.parent is None]
    assert len(roots) == 3
    for root in roots:
        assert sum(span.context.trace_id == root.context.trace_id for span in tracing.spans) == 6
