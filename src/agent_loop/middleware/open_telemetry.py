"""OpenTelemetry spans of runs, turns, model calls and tool calls, named by the GenAI semantic conventions.

The conventions (`gen-ai-agent-spans`, `gen-ai-spans`) are still in development; only this module of the embedded agent
depends on their names. They have no span for a turn, so that its attributes are our own. OpenTelemetry is an extra
(`otel`): its API only, so that the application chooses the SDK and the exporters.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from agent_loop.errors import ConfigurationError
from agent_loop.hooks.contexts import BeforeAgent, LoopEnded, RunFailed, TurnAfter, TurnBefore, TurnEnded
from agent_loop.hooks.registry import Hooks, ModelCall, ToolRun
from agent_loop.messages import (
    AssistantMessage,
    Block,
    Image,
    Message,
    Text,
    Thinking,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from agent_loop.providers import ModelRequest, ModelResponse
from agent_loop.tools.tool import ToolResult
from agent_loop.usage import Usage

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.trace import Span, Tracer

MAX_CONTENT = 32_768
"""Characters of a text that is captured."""
TOOL_ERROR = "tool_error"
"""The type of error of a call whose result is an error."""


@dataclass(slots=True)
class _RunSpans:
    """The open spans of one run."""

    run: "Span"
    outer: "_RunSpans | None"
    """Those of the run whose tool call started this one."""
    turn: "Span | None" = None
    error: str | None = None

    @property
    def innermost(self) -> "Span":
        return self.turn or self.run


_SPANS: ContextVar[_RunSpans | None] = ContextVar("agent_loop_run_spans", default=None)
"""The spans of the current run. Tasks of a run inherit it; concurrent runs have their own."""


class OpenTelemetryMiddleware:
    """Records the spans `invoke_agent`, `turn`, `chat` and `execute_tool`. Register it first.

    Spans of model and tool calls are current while open, so that spans of HTTP clients and of sub-agents become their
    children. Prompts, answers, arguments and results are recorded with `content=True` only.
    """

    name = "open_telemetry"

    def __init__(
        self,
        tracer: "Tracer | None" = None,
        *,
        agent_name: str = "agent_loop",
        provider: str = "",
        model: str = "",
        content: bool = False,
    ) -> None:
        """Use this tracer, or the global one. Raises `ConfigurationError` without OpenTelemetry.

        `provider` and `model` are those of the requests; without them, only answers report what answered.
        """
        try:
            from opentelemetry import trace  # noqa: PLC0415  # an extra
        except ImportError as error:
            raise ConfigurationError("OpenTelemetry is not installed; try: pip install 'agent-mux[otel]'") from error
        self._tracer = tracer or trace.get_tracer("agent_loop")
        self._agent_name = agent_name
        self._content = content
        self._of_requests = _given({"gen_ai.provider.name": provider, "gen_ai.request.model": model})
        self._model = model

    def install(self, hooks: Hooks) -> None:
        """Register the handlers of runs and turns, and the wrappers of calls."""
        hooks.on("agent:before", self._begin_run)
        hooks.on("turn:before", self._begin_turn)
        hooks.on("turn:after", self._note_failed_turn)
        hooks.on("turn:end", self._end_turn)
        hooks.on("error", self._note_error)
        hooks.on("loop:after", self._end_run)
        hooks.wrap_model_call(self._around_model_call)
        hooks.wrap_tool_call(self._around_tool_call)

    # -- runs and turns

    def _begin_run(self, context: BeforeAgent) -> None:
        attributes = {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.agent.name": self._agent_name,
            "gen_ai.conversation.id": context.session_id,
            "agent_loop.loop.id": context.loop_id,
            "agent_loop.depth": context.depth,
            **self._of_requests,
        }
        span = self._tracer.start_span(f"invoke_agent {self._agent_name}", attributes=attributes)
        _SPANS.set(_RunSpans(span, _SPANS.get()))

    def _begin_turn(self, context: TurnBefore) -> None:
        if (spans := _SPANS.get()) is not None:
            _close_turn(spans)
            attributes = {"agent_loop.turn.index": context.turn}
            spans.turn = self._tracer.start_span("turn", _within(spans.run), attributes=attributes)

    def _note_failed_turn(self, context: TurnAfter) -> None:
        """Close the turn of a failed model call, which has no end of its own."""
        if (spans := _SPANS.get()) is not None and context.error is not None and spans.turn is not None:
            _mark_failed(spans.turn, type(context.error).__name__)
            _close_turn(spans)

    def _end_turn(self, _context: TurnEnded) -> None:
        if (spans := _SPANS.get()) is not None:
            _close_turn(spans)

    def _note_error(self, context: RunFailed) -> None:
        if (spans := _SPANS.get()) is not None:
            spans.error = type(context.error).__name__

    def _end_run(self, context: LoopEnded) -> None:
        spans = _SPANS.get()
        if spans is None:
            return
        _SPANS.set(spans.outer)
        _close_turn(spans)
        attributes = {"agent_loop.status": context.status, "agent_loop.turns": context.turns}
        spans.run.set_attributes({**attributes, **_usage(context.usage)})
        if spans.error is not None:
            _mark_failed(spans.run, spans.error)
        spans.run.end()

    # -- calls

    async def _around_model_call(self, request: ModelRequest, call: ModelCall) -> ModelResponse:
        settings = request.settings
        attributes = {
            "gen_ai.operation.name": "chat",
            "agent_loop.purpose": request.purpose,
            **self._of_requests,
            **_given(
                {
                    "gen_ai.request.max_tokens": settings.max_tokens,
                    "gen_ai.request.temperature": settings.temperature,
                    "gen_ai.request.top_p": settings.top_p,
                    "gen_ai.request.top_k": settings.top_k,
                    "gen_ai.output.type": "json" if request.output_schema is not None else None,
                }
            ),
        }
        with self._span(f"chat {self._model}".rstrip(), attributes, is_client=True) as span:
            self._capture(span, "gen_ai.system_instructions", request.system and [_text(request.system)])
            self._capture(span, "gen_ai.input.messages", list(map(_message, request.messages)))
            response = await call(request)
            self._capture(span, "gen_ai.output.messages", list(map(_message, response.messages)))
            span.set_attribute("gen_ai.response.finish_reasons", (response.stop_reason,))
            span.set_attributes(_usage(response.usage))
            last = response.messages[-1] if response.messages else None
            if last is not None:
                answered = {"gen_ai.response.model": last.model, "gen_ai.provider.name": last.provider}
                span.set_attributes(_given(answered))
                if last.model and not self._model:
                    span.update_name(f"chat {last.model}")
            return response

    async def _around_tool_call(self, call: ToolCall, run: ToolRun) -> ToolResult:
        attributes = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": call.name,
            "gen_ai.tool.call.id": call.id,
            "gen_ai.tool.type": "function",
        }
        with self._span(f"execute_tool {call.name}", attributes) as span:
            self._capture(span, "gen_ai.tool.call.arguments", call.arguments)
            result = await run(call)
            self._capture(span, "gen_ai.tool.call.result", result.text)
            if result.is_error:
                _mark_failed(span, TOOL_ERROR)
            return result

    @contextmanager
    def _span(self, name: str, attributes: Mapping[str, Any], *, is_client: bool = False) -> "Iterator[Span]":
        """Open a current span in the innermost one of the run; record the type of an exception, never its text."""
        from opentelemetry.trace import SpanKind, use_span  # noqa: PLC0415  # an extra

        spans = _SPANS.get()
        parent = None if spans is None else _within(spans.innermost)
        kind = SpanKind.CLIENT if is_client else SpanKind.INTERNAL
        span = self._tracer.start_span(name, parent, kind, attributes)
        with use_span(span, end_on_exit=True, record_exception=False, set_status_on_exception=False):
            try:
                yield span
            except Exception as error:
                _mark_failed(span, type(error).__name__)
                raise
            except BaseException:
                span.set_attribute("agent_loop.cancelled", True)
                raise

    def _capture(self, span: "Span", key: str, content: Any) -> None:
        """Record content, if it is asked for."""
        if self._content and content:
            text = content if isinstance(content, str) else msgspec.json.encode(content, enc_hook=str).decode()
            span.set_attribute(key, text[:MAX_CONTENT])


def _within(span: "Span") -> "Context":
    from opentelemetry.trace import set_span_in_context  # noqa: PLC0415  # an extra

    return set_span_in_context(span)


def _close_turn(spans: _RunSpans) -> None:
    if spans.turn is not None:
        spans.turn.end()
        spans.turn = None


def _mark_failed(span: "Span", kind: str) -> None:
    from opentelemetry.trace import Status, StatusCode  # noqa: PLC0415  # an extra

    span.set_attribute("error.type", kind)
    span.set_status(Status(StatusCode.ERROR))


def _message(message: Message) -> dict[str, Any]:
    """Return a message in the form of the conventions. Images are named without their data."""
    if isinstance(message, ToolMessage):
        response = {"type": "tool_call_response", "id": message.tool_call_id, "response": message.text}
        return {"role": "tool", "parts": [response]}
    if isinstance(message, AssistantMessage):
        parts = list(map(_part, message.content))
        return {"role": "assistant", "parts": parts, "finish_reason": message.stop_reason}
    role = "user" if isinstance(message, UserMessage) else "system"
    return {"role": role, "parts": [_text(message.text)]}


def _part(block: Block) -> dict[str, Any]:
    match block:
        case Text(text=text):
            return _text(text)
        case Thinking(text=text):
            return {"type": "reasoning", "content": text}
        case ToolCall(id=call_id, name=name, arguments=arguments):
            return {"type": "tool_call", "id": call_id, "name": name, "arguments": arguments}
        case Image(mime_type=mime_type):
            return {"type": "blob", "modality": "image", "mime_type": mime_type}


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "content": text}


def _usage(usage: Usage) -> dict[str, Any]:
    return {
        "gen_ai.usage.input_tokens": usage.prompt_tokens,
        "gen_ai.usage.output_tokens": usage.output_tokens,
        "gen_ai.usage.cache_read.input_tokens": usage.cache_read_tokens,
        "gen_ai.usage.cache_creation.input_tokens": usage.cache_write_tokens,
        **_given({"agent_loop.cost.usd": usage.cost_usd}),
    }


def _given(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the attributes that have a value."""
    return {name: value for name, value in attributes.items() if value is not None and value != ""}
