"""Converts the events of one run to spans and metrics, while it runs or from a recording.

A run is an `invoke_agent` span. Its children are turns; their children are model calls (`chat`: a step without its
tools), tool calls (`execute_tool`) and sub-agents (`invoke_agent`). Times are those of the events.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from opentelemetry.context import Context

from agent_mux import events as ev
from agent_mux.events import AgentEvent, CostRecord
from agent_mux.telemetry.otel import conventions as names
from agent_mux.telemetry.otel.spans import OpenSpan, SpanRecorder, format_content, format_messages

UNFINISHED = "unfinished"
"""The exit reason and error type of spans that are open when the stream of events ends early."""
Ending = tuple[str, str | None, str | None]
"""How a run ended: the exit reason as in `RunResult`, the `error.type`, and the message."""
_TERMINATION_CODES = frozenset({-2, -3, -9, -15, 129, 130, 131, 137, 143})
"""Exit codes of signals that are sent on purpose. SIGHUP (-1) is missing: -1 usually means "not started"."""
_ENDINGS: Mapping[type, Ending] = {
    ev.AbortedEvent: ("aborted", "ABORTED", None),
    ev.InterruptedEvent: ("interrupted", "ABORTED", None),
    ev.TurnLimitEvent: ("turn_limit", "TURN_LIMIT", None),
    ev.ContextExceededEvent: ("failed", "CONTEXT_EXCEEDED", None),
}
_EXIT_REASON_OF_CODE: Mapping[str, str] = {
    "BUDGET_EXCEEDED": "budget",
    "AGENT_CRASH": "truncated",
    "RUN_LOST": "lost",
}


def ending_of(event: AgentEvent) -> Ending | None:
    """Return how a run with this terminal event ended; None for any other event."""
    match event:
        case ev.TimeoutEvent(kind=kind):
            return ("timeout", "TIMEOUT", None) if kind == "run" else ("inactivity", "INACTIVITY_TIMEOUT", None)
        case ev.CrashEvent(exit_code=code, stderr=stderr):
            return "killed" if code in _TERMINATION_CODES else "crashed", "AGENT_CRASH", stderr or None
        case ev.AuthErrorEvent(message=message):
            return "failed", "AUTH_ERROR", message
        case ev.RateLimitErrorEvent(message=message):
            return "failed", "RATE_LIMITED", message
        case ev.ErrorEvent(code=code, message=message, recoverable=False):
            return _EXIT_REASON_OF_CODE.get(code, "failed"), code, message
    return _ENDINGS.get(type(event))


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelDetails:
    """What is known about the model of a run, which its events do not contain."""

    provider: str | None = None
    """The provider of the model, as the conventions name it. None: unknown; the agent's name is used instead."""
    request_model: str | None = None
    """The requested model, None when the agent chooses."""
    response_model: Callable[[], str | None] = lambda: None
    """Returns the model that answers, None while it is unknown."""


class _AgentSpans:
    """The open spans of the agent or of one sub-agent."""

    def __init__(self, root: OpenSpan) -> None:
        self.root = root
        self.turn: OpenSpan | None = None
        self.step: OpenSpan | None = None
        self.model_start = root.start
        """When the model got its last input. A model call starts then, not at the event of its first output."""

    @property
    def innermost(self) -> OpenSpan:
        return self.turn or self.root


class RunObserver:
    """Converts the events of one run: call `observe` with each event in order, then `close`."""

    def __init__(
        self,
        spans: SpanRecorder,
        details: ModelDetails,
        *,
        capture_content: bool = False,
        parent: Context | None = None,
    ) -> None:
        self._spans = spans
        self._instruments = spans.instruments
        self._details = details
        self._captures = capture_content
        self._parent = parent
        self._handlers = self._new_handlers()
        self._common: dict[str, str] = {}
        self._agents: dict[str | None, _AgentSpans] = {}
        """The spans by sub-agent id; the agent itself has None."""
        self._tools: dict[str, OpenSpan] = {}
        self._used = {names.INPUT_TOKENS: 0, names.OUTPUT_TOKENS: 0, names.CACHED_TOKENS: 0}
        self._cost: CostRecord | None = None
        self._ending: Ending = ("completed", None, None)
        self._now = 0
        """The time of the latest event, in milliseconds since the epoch."""
        self.is_over = False
        """Whether the span of the run has ended."""

    # -- begin and end

    def begin(self, run_id: str, agent: str, at: int) -> OpenSpan:
        """Start the span of the run. `at` is in milliseconds since the epoch.

        If this is not called, the first event starts the span.
        """
        self._now = at
        self._common = {names.PROVIDER: self._details.provider or agent}
        if self._details.request_model is not None:
            self._common[names.REQUEST_MODEL] = self._details.request_model
        attributes = {**self._common, names.OPERATION: names.INVOKE_AGENT, names.AGENT: agent, names.RUN_ID: run_id}
        root = self._spans.start(f"{names.INVOKE_AGENT} {agent}", at, self._parent, attributes, {names.AGENT: agent})
        self._agents[None] = _AgentSpans(root)
        return root

    def set_prompt(self, text: str) -> None:
        """Record the prompt of the run, if content is captured. `begin` must have been called."""
        if self._captures:
            self._agents[None].root.span.set_attribute(names.INPUT_MESSAGES, format_messages("user", [text]))

    def observe(self, event: AgentEvent) -> None:
        """Update the spans and metrics with the next event. Events after the end of the session are ignored."""
        if self.is_over:
            return
        self._now = max(self._now, event.timestamp)
        if not self._agents:
            self.begin(event.run_id, event.agent, self._now)
        handler = self._handlers.get(type(event))
        if handler is not None:
            handler(event)
            return
        ending = ending_of(event)
        if ending is not None:
            self._ending = ending

    def close(self) -> None:
        """End all open spans as unfinished. Do nothing after the end of the session."""
        if not self.is_over and self._agents:
            self._ending = (UNFINISHED, "_OTHER", None)
            self._finish()
        self.is_over = True

    def _finish(self) -> None:
        exit_reason, error, message = self._ending
        root = self._agents[None].root
        for opened in [opened for opened in reversed(self._spans.open) if opened is not root]:
            self._spans.end(opened, self._now, UNFINISHED)
        root.span.set_attributes({name: number for name, number in self._used.items() if number})
        root.span.set_attribute(names.EXIT_REASON, exit_reason)
        cost = self._set_cost(root, self._cost)
        self._set_texts(root)
        agent = root.metric_attributes[names.AGENT]
        self._spans.end(root, self._now, error, message if self._captures else None)
        self._instruments.count_run(cost, {names.AGENT: agent, names.EXIT_REASON: exit_reason})
        self.is_over = True

    # -- handlers of events

    def _spans_of(self, event: Any) -> _AgentSpans:
        return self._agents.get(event.subagent_id) or self._agents[None]

    def _start_session(self, event: ev.SessionStartEvent) -> None:
        if not event.session_id.startswith("transient-"):
            self._common[names.CONVERSATION] = event.session_id
            self._agents[None].root.span.set_attribute(names.CONVERSATION, event.session_id)

    def _end_session(self, event: ev.SessionEndEvent) -> None:
        self._cost = event.cost or self._cost
        self._finish()

    def _start_turn(self, event: ev.TurnStartEvent) -> None:
        agent_spans = self._spans_of(event)
        attributes: dict[str, str | int] = {**self._common, names.TURN: event.turn_index}
        agent_spans.model_start = self._now
        agent_spans.turn = self._spans.start(f"turn {event.turn_index}", self._now, agent_spans.root, attributes, {})

    def _end_turn(self, event: ev.TurnEndEvent) -> None:
        agent_spans = self._spans_of(event)
        self._end_step(agent_spans)
        if agent_spans.turn is not None:
            self._set_cost(agent_spans.turn, event.cost)
            self._set_texts(agent_spans.turn)
            self._spans.end(agent_spans.turn, self._now)
            agent_spans.turn = None

    def _start_step(self, event: ev.StepStartEvent) -> None:
        agent_spans = self._spans_of(event)
        self._end_step(agent_spans)
        model = self._details.request_model or self._details.response_model()
        name = names.CHAT if model is None else f"{names.CHAT} {model}"
        attributes: dict[str, str | int] = {**self._common, names.OPERATION: names.CHAT}
        attributes |= {names.TURN: event.turn_index, names.STEP: event.step_index}
        agent_spans.step = self._spans.start(
            name, agent_spans.model_start, agent_spans.innermost, attributes, self._model_attributes()
        )
        agent_spans.step.last_activity = self._now

    def _on_step_end(self, event: ev.StepEndEvent) -> None:
        self._end_step(self._spans_of(event))

    def _end_step(self, agent_spans: _AgentSpans) -> None:
        """End the model call at the model's last output; what followed were its tool calls."""
        step, agent_spans.step = agent_spans.step, None
        if step is None:
            return
        model = self._details.response_model()
        if model is not None:
            step.span.set_attribute(names.RESPONSE_MODEL, model)
        self._set_texts(step)
        self._spans.end(step, step.last_activity)
        agent_spans.model_start = max(agent_spans.model_start, step.last_activity)

    def _extend_step(self, event: Any) -> None:
        step = self._spans_of(event).step
        if step is not None:
            step.last_activity = self._now

    def _record_message(self, event: ev.MessageStopEvent) -> None:
        self._extend_step(event)
        agent_spans = self._spans_of(event)
        if self._captures and not event.abandoned:
            for opened in (agent_spans.step, agent_spans.turn, agent_spans.root):
                if opened is not None:
                    opened.texts.append(event.text)

    def _record_usage(self, event: ev.TokenUsageEvent) -> None:
        cached = event.cached_tokens or 0
        used = {names.INPUT_TOKENS: event.input_tokens + cached, names.OUTPUT_TOKENS: event.output_tokens}
        if cached:
            used[names.CACHED_TOKENS] = cached
        for name, number in used.items():
            self._used[name] += number
        agent_spans = self._spans_of(event)
        (agent_spans.step or agent_spans.innermost).span.set_attributes(used)
        metric_attributes = {**self._model_attributes(), names.OPERATION: names.CHAT}
        self._instruments.record_tokens("input", used[names.INPUT_TOKENS], metric_attributes)
        self._instruments.record_tokens("output", used[names.OUTPUT_TOKENS], metric_attributes)

    def _record_cost(self, event: ev.CostEvent) -> None:
        self._cost = event.cost

    def _start_tool(self, event: ev.ToolCallReadyEvent | ev.McpToolCallStartEvent) -> None:
        self._extend_step(event)
        agent_spans = self._spans_of(event)
        attributes = {
            names.OPERATION: names.EXECUTE_TOOL,
            names.TOOL: event.tool_name,
            names.TOOL_CALL: event.tool_call_id,
            names.TOOL_TYPE: "function",
        }
        if isinstance(event, ev.McpToolCallStartEvent):
            attributes |= {names.MCP_SERVER: event.server, names.TOOL_TYPE: "extension"}
        if self._captures:
            attributes[names.TOOL_ARGUMENTS] = format_content(event.input)
        metric_attributes = {
            names.TOOL: event.tool_name,
            names.TOOL_TYPE: attributes[names.TOOL_TYPE],
            names.AGENT: event.agent,
        }
        name = f"{names.EXECUTE_TOOL} {event.tool_name}"
        self._tools[event.tool_call_id] = self._spans.start(
            name, self._now, agent_spans.innermost, attributes, metric_attributes
        )

    def _end_tool(self, event: Any) -> None:
        self._spans_of(event).model_start = self._now
        tool = self._tools.pop(event.tool_call_id, None)
        if tool is None:
            return
        failed = isinstance(event, ev.ToolErrorEvent | ev.McpToolErrorEvent)
        output = event.error if failed else event.output
        if self._captures:
            tool.span.set_attribute(names.TOOL_RESULT, format_content(output))
        message = str(output) if self._captures else None
        self._spans.end(tool, self._now, "tool_error" if failed else None, message)

    def _start_subagent(self, event: ev.SubagentSpawnEvent) -> None:
        main = self._agents[None]
        self._extend_step(event)
        if main.step is not None:
            main.step.last_activity = self._now
        attributes = {
            **self._common,
            names.OPERATION: names.INVOKE_AGENT,
            names.AGENT: event.agent_name,
            names.AGENT_ID: event.subagent_id,
        }
        if self._captures:
            attributes[names.INPUT_MESSAGES] = format_messages("user", [event.prompt])
        name = f"{names.INVOKE_AGENT} {event.agent_name}"
        metric_attributes = {names.AGENT: event.agent_name}
        root = self._spans.start(name, self._now, main.innermost, attributes, metric_attributes)
        self._agents[event.subagent_id] = _AgentSpans(root)

    def _end_subagent(self, event: ev.SubagentResultEvent | ev.SubagentErrorEvent) -> None:
        self._agents[None].model_start = self._now
        agent_spans = self._agents.pop(event.subagent_id, None)
        if agent_spans is None:
            return
        self._end_step(agent_spans)
        if agent_spans.turn is not None:
            self._spans.end(agent_spans.turn, self._now)
        if isinstance(event, ev.SubagentErrorEvent):
            self._spans.end(agent_spans.root, self._now, "subagent_error", event.error if self._captures else None)
            return
        self._set_cost(agent_spans.root, event.cost)
        if self._captures:
            agent_spans.root.texts = [event.summary]
        self._set_texts(agent_spans.root)
        self._spans.end(agent_spans.root, self._now)

    # -- attributes

    def _model_attributes(self) -> dict[str, str]:
        model = self._details.response_model()
        metric_attributes = {
            name: self._common[name] for name in (names.PROVIDER, names.REQUEST_MODEL) if name in self._common
        }
        return {
            **metric_attributes,
            names.OPERATION: names.CHAT,
            **({} if model is None else {names.RESPONSE_MODEL: model}),
        }

    @staticmethod
    def _set_cost(opened: OpenSpan, cost: CostRecord | None) -> float | None:
        if cost is None or cost.source == "unknown":
            return None
        opened.span.set_attribute(names.COST, cost.total_usd)
        if cost.source is not None:
            opened.span.set_attribute(names.COST_SOURCE, cost.source)
        return cost.total_usd

    @staticmethod
    def _set_texts(opened: OpenSpan) -> None:
        if opened.texts:
            opened.span.set_attribute(names.OUTPUT_MESSAGES, format_messages("assistant", opened.texts))

    def _new_handlers(self) -> Mapping[type, Callable[[Any], None]]:
        return {
            ev.SessionStartEvent: self._start_session,
            ev.SessionEndEvent: self._end_session,
            ev.TurnStartEvent: self._start_turn,
            ev.TurnEndEvent: self._end_turn,
            ev.StepStartEvent: self._start_step,
            ev.StepEndEvent: self._on_step_end,
            ev.MessageStopEvent: self._record_message,
            ev.TokenUsageEvent: self._record_usage,
            ev.CostEvent: self._record_cost,
            ev.ToolCallReadyEvent: self._start_tool,
            ev.McpToolCallStartEvent: self._start_tool,
            ev.SubagentSpawnEvent: self._start_subagent,
            ev.SubagentResultEvent: self._end_subagent,
            ev.SubagentErrorEvent: self._end_subagent,
            **dict.fromkeys(
                (ev.ToolResultEvent, ev.ToolErrorEvent, ev.McpToolResultEvent, ev.McpToolErrorEvent), self._end_tool
            ),
            **dict.fromkeys(
                (
                    ev.MessageStartEvent,
                    ev.TextDeltaEvent,
                    ev.ThinkingStartEvent,
                    ev.ThinkingDeltaEvent,
                    ev.ThinkingStopEvent,
                    ev.ToolCallStartEvent,
                    ev.ToolInputDeltaEvent,
                ),
                self._extend_step,
            ),
        }
