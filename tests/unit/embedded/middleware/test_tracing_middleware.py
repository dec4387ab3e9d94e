"""Traces of calls; failing recorders do not affect the run."""

from collections.abc import Mapping
from typing import Any, Self

import anyio
import pytest
from tests.unit.embedded.middleware.harness import Around, text_result
from tests.unit.embedded.providers.harness import request

from agent_loop.errors import NetworkError, ToolError
from agent_loop.messages import AssistantMessage, Text, ToolCall
from agent_loop.middleware import OpenTelemetryRecorder, TracingMiddleware, current_recorder, recording_to
from agent_loop.providers import ModelRequest, ModelResponse
from agent_loop.usage import Usage

pytestmark = pytest.mark.anyio
CALL = ToolCall("call_1", "shell", {"command": "ls"})


class Span:
    def __init__(self, name: str) -> None:
        self.name = name
        self.facts: dict[str, Any] = {}
        self.ended = 0

    def set(self, key: str, value: Any) -> Self:
        self.facts[key] = value
        return self

    def end(self) -> None:
        self.ended += 1


class Recorder:
    def __init__(self) -> None:
        self.spans: list[Span] = []
        self.events: list[tuple[str, Mapping[str, Any]]] = []

    def start_span(self, name: str) -> Span:
        self.spans.append(Span(name))
        return self.spans[-1]

    def record_event(self, name: str, metadata: Mapping[str, Any]) -> None:
        self.events.append((name, metadata))


class Broken(Recorder):
    def start_span(self, name: str) -> Span:
        span = super().start_span(name)
        if name == "tool.call":
            raise RuntimeError("no spans today")
        span.set = span.end = self.record_event  # type: ignore[assignment,method-assign]
        return span

    def record_event(self, *_: Any) -> None:
        raise RuntimeError("full")


async def answer(_request: ModelRequest) -> ModelResponse:
    message = AssistantMessage(content=(Text("x" * 700), CALL), stop_reason="tool_use")
    return ModelResponse((message,), Usage(input_tokens=7, cache_read_tokens=1, output_tokens=3))


async def fails(_request: ModelRequest) -> ModelResponse:
    raise NetworkError("gone")


async def test_tracing_records_model_calls_with_previews_of_500_characters() -> None:
    recorder = Recorder()
    response = await Around(TracingMiddleware(recorder)).call_model(request("go", "on"), answer)
    assert response == await answer(request())
    assert [(span.name, span.ended) for span in recorder.spans] == [("llm.call", 1)]
    assert recorder.spans[0].facts == {
        "purpose": "turn",
        "message_count": 2,
        "content_length": 700,
        "tool_calls_count": 1,
        "tool_call_names": "shell",
        "stop_reason": "tool_use",
        "input_tokens": 8,
        "output_tokens": 3,
        "content_preview": "x" * 500,
    }


async def test_tracing_records_tool_calls_with_previews_of_500_characters() -> None:
    recorder = Recorder()
    await Around(TracingMiddleware(recorder)).call_tool(CALL, text_result("y" * 700))
    assert [(span.name, span.ended) for span in recorder.spans] == [("tool.call", 1)]
    assert recorder.spans[0].facts == {
        "tool_name": "shell",
        "tool_call_id": "call_1",
        "tool_args": '{"command":"ls"}',
        "output_length": 700,
        "output_preview": "y" * 500,
        "is_error": False,
    }


async def test_tracing_records_errors_and_lets_them_through() -> None:
    recorder = Recorder()
    around = Around(TracingMiddleware(recorder))
    with pytest.raises(NetworkError):
        await around.call_model(request("go"), fails)
    with pytest.raises(ToolError):
        await around.call_tool(CALL, ToolError("no such file"))
    await around.call_tool(CALL, text_result("denied", is_error=True))
    assert [span.facts["error"] for span in recorder.spans] == [
        "NetworkError: gone", "ToolError: no such file", "denied",
    ]  # fmt: skip
    assert [span.ended for span in recorder.spans] == [1, 1, 1]


async def test_a_call_that_is_cancelled_ends_its_span() -> None:
    recorder = Recorder()
    with anyio.CancelScope() as scope:

        async def cancelled(_request: ModelRequest) -> ModelResponse:
            scope.cancel()
            await anyio.sleep_forever()
            raise AssertionError

        await Around(TracingMiddleware(recorder)).call_model(request("go"), cancelled)
    assert scope.cancelled_caught
    assert (recorder.spans[0].ended, recorder.spans[0].facts["cancelled"]) == (1, True)


async def test_tracing_is_a_no_op_without_a_recorder() -> None:
    around = Around(TracingMiddleware())
    result = text_result("ok")
    assert await around.call_tool(CALL, result) is result
    assert (await around.call_model(request("go"), answer)).tool_calls == (CALL,)
    await around.end()
    assert current_recorder() is None


async def test_the_trace_recorder_can_come_from_the_context() -> None:
    recorder, around = Recorder(), Around(TracingMiddleware())
    with recording_to(recorder):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(around.call_tool, CALL, text_result("ok"))
    await around.call_tool(CALL, text_result("ok"))
    assert len(recorder.spans) == 1


async def test_the_end_of_a_run_is_an_event() -> None:
    recorder = Recorder()
    await Around(TracingMiddleware(recorder)).end()
    assert recorder.events == [("loop.end", {"status": "completed", "turns": 2, "total_tokens": 5})]


async def test_without_previews_no_text_is_recorded() -> None:
    recorder = Recorder()
    around = Around(TracingMiddleware(recorder, previews=False))
    await around.call_model(request("go"), answer)
    await around.call_tool(CALL, text_result("secret"))
    with pytest.raises(ToolError):
        await around.call_tool(CALL, ToolError("secret"))
    assert recorder.spans[2].facts["error"] == "ToolError"
    assert not any("secret" in str(span.facts) or "xxx" in str(span.facts) for span in recorder.spans)


async def test_a_recorder_that_fails_is_logged_and_never_ends_a_run(caplog: pytest.LogCaptureFixture) -> None:
    around = Around(TracingMiddleware(Broken()))
    result = text_result("ok")
    assert await around.call_tool(CALL, result) is result
    assert (await around.call_model(request("go"), answer)).tool_calls == (CALL,)
    await around.end()
    assert "the trace recorder failed to start the span tool.call" in caplog.text
    assert "the trace recorder failed to take the event loop.end" in caplog.text


async def test_open_telemetry_gets_nested_spans_with_attributes_and_errors() -> None:
    sdk = pytest.importorskip("opentelemetry.sdk.trace")
    export = pytest.importorskip("opentelemetry.sdk.trace.export.in_memory_span_exporter")
    memory, tracing = export.InMemorySpanExporter(), sdk.TracerProvider()
    tracing.add_span_processor(sdk.export.SimpleSpanProcessor(memory))
    around = Around(TracingMiddleware(OpenTelemetryRecorder(tracing.get_tracer("test"))))

    async def asks_another(_request: ModelRequest) -> ModelResponse:
        with pytest.raises(ToolError):
            await around.call_tool(CALL, ToolError("no such file"))
        await around.end()
        return await answer(_request)

    await around.call_model(request("go"), asks_another)
    inner, outer = memory.get_finished_spans()
    assert (inner.name, outer.name) == ("tool.call", "llm.call")
    assert inner.parent.span_id == outer.context.span_id
    assert outer.parent is None
    assert (inner.status.status_code.name, outer.status.status_code.name) == ("ERROR", "UNSET")
    assert inner.attributes["agent_loop.tool_name"] == "shell"
    assert [event.name for event in outer.events] == ["loop.end"]
