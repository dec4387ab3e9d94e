"""Traces: how long model calls and tools take, and what came of them. Source: hooks seed, section 6.6."""

from collections.abc import Iterator
from contextlib import contextmanager

import msgspec

from agent_loop.hooks.contexts import LoopOver
from agent_loop.hooks.registry import Hooks, ModelCall, ToolRun
from agent_loop.messages import ToolCall
from agent_loop.middleware.trace_recorder import QuietSpan, TraceRecorder, current_recorder, quietly
from agent_loop.providers import ModelRequest, ModelResponse
from agent_loop.tools.tool import ToolResult

PREVIEW = 500
"""Characters that are recorded of texts."""
MODEL_SPAN = "llm.call"
TOOL_SPAN = "tool.call"
RUN_EVENT = "loop.end"


class TracingMiddleware:
    """Spans around model calls and tools. Without a recorder, here or in the context, it does nothing.

    Register it first: it times all that is inwards of it. With `previews=False` no word of anybody is recorded.
    """

    name = "tracing"

    def __init__(self, recorder: TraceRecorder | None = None, *, previews: bool = True) -> None:
        self._recorder = recorder
        self._previews = previews

    @property
    def recorder(self) -> TraceRecorder | None:
        """Where traces go now."""
        return self._recorder if self._recorder is not None else current_recorder()

    def install(self, hooks: Hooks) -> None:
        """Register what it consists of."""
        hooks.wrap_model_call(self._around_model_call)
        hooks.wrap_tool_call(self._around_tool_call)
        hooks.on("loop:after", self._tell_end)

    async def _around_model_call(self, request: ModelRequest, call: ModelCall) -> ModelResponse:
        recorder = self.recorder
        if recorder is None:
            return await call(request)
        with _span(recorder, MODEL_SPAN, previews=self._previews) as span:
            span.set("purpose", request.purpose).set("message_count", len(request.messages))
            response = await call(request)
            self._note_response(span, response)
            return response

    async def _around_tool_call(self, call: ToolCall, run: ToolRun) -> ToolResult:
        recorder = self.recorder
        if recorder is None:
            return await run(call)
        with _span(recorder, TOOL_SPAN, previews=self._previews) as span:
            span.set("tool_name", call.name).set("tool_call_id", call.id)
            self._preview(span, "tool_args", msgspec.json.encode(call.arguments, enc_hook=str).decode())
            result = await run(call)
            span.set("output_length", len(result.text))
            self._preview(span, "error" if result.is_error else "output_preview", result.text)
            span.set("is_error", result.is_error)
            return result

    def _note_response(self, span: QuietSpan, response: ModelResponse) -> None:
        names = [call.name for call in response.tool_calls]
        span.set("content_length", len(response.text)).set("tool_calls_count", len(names))
        span.set("tool_call_names", ", ".join(names)[:PREVIEW]).set("stop_reason", response.stop_reason)
        span.set("input_tokens", response.usage.prompt_tokens).set("output_tokens", response.usage.output_tokens)
        self._preview(span, "content_preview", response.text)

    def _preview(self, span: QuietSpan, key: str, text: str) -> None:
        if self._previews:
            span.set(key, text[:PREVIEW])

    def _tell_end(self, context: LoopOver) -> None:
        if (recorder := self.recorder) is not None:
            facts = {"status": context.status, "turns": context.turns, "total_tokens": context.usage.total_tokens}
            with quietly(f"take the event {RUN_EVENT}"):
                recorder.record_event(RUN_EVENT, facts)


@contextmanager
def _span(recorder: TraceRecorder, name: str, *, previews: bool) -> Iterator[QuietSpan]:
    """A span that ends in any case, and knows of what was raised; being cancelled is no error."""
    span = QuietSpan(recorder, name)
    try:
        yield span
    except Exception as error:
        sentence = f"{type(error).__name__}: {error}" if previews else type(error).__name__
        span.set("error", sentence[:PREVIEW])
        raise
    except BaseException:
        span.set("cancelled", True)
        raise
    finally:
        span.end()
