"""The events of one run, as spans and measurements: live, or read again later.

A run is `invoke_agent`, below it are turns; in a turn are model calls (`chat`: a step without its tools), tools
(`execute_tool`) and sub-agents (`invoke_agent`). Times are those of the events.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from opentelemetry.context import Context

from agent_mux import events as ev
from agent_mux.events import AgentEvent, CostRecord
from agent_mux.telemetry.otel import conventions as names
from agent_mux.telemetry.otel.spans import Branch, Spans, as_json, ending_of, messages

UNFINISHED = "unfinished"
"""What is said of spans that were still open when the stream of events broke off."""


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """What the events of a run do not say."""

    provider: str | None = None
    """Who serves its model, as the conventions call it; None: its agent is said."""
    request_model: str | None = None
    model: Callable[[], str | None] = lambda: None
    """The one that answers, once that is known."""


class _Scope:
    """The agent, or one sub-agent: what is going on there."""

    def __init__(self, root: Branch) -> None:
        self.root = root
        self.turn: Branch | None = None
        self.step: Branch | None = None
        self.since = root.start
        """When the model was given the last thing: it works from then on, and a step begins with its first word."""

    @property
    def innermost(self) -> Branch:
        return self.turn or self.root


class RunObserver:
    """Give it every event of a run, in order, and `close` it."""

    def __init__(
        self, spans: Spans, about: About, *, capture_content: bool = False, parent: Context | None = None
    ) -> None:
        self._spans = spans
        self._meters = spans.meters
        self._about = about
        self._captures = capture_content
        self._parent = parent
        self._handlers = self._new_handlers()
        self._common: dict[str, str] = {}
        self._scopes: dict[str | None, _Scope] = {}
        self._tools: dict[str, Branch] = {}
        self._used = {names.INPUT_TOKENS: 0, names.OUTPUT_TOKENS: 0, names.CACHED_TOKENS: 0}
        self._cost: CostRecord | None = None
        self._ending: tuple[str, str | None, str | None] = ("completed", None, None)
        self._now = 0
        self.is_over = False

    # -- begin and end

    def begin(self, run_id: str, agent: str, at: int) -> Branch:
        """The span of the run. Milliseconds since the epoch; the first event does it, where nobody else has."""
        self._now = at
        self._common = {names.PROVIDER: self._about.provider or agent}
        if self._about.request_model is not None:
            self._common[names.REQUEST_MODEL] = self._about.request_model
        attributes = {**self._common, names.OPERATION: names.INVOKE_AGENT, names.AGENT: agent, names.RUN_ID: run_id}
        root = self._spans.begin(f"{names.INVOKE_AGENT} {agent}", at, self._parent, attributes, {names.AGENT: agent})
        self._scopes[None] = _Scope(root)
        return root

    def prompted(self, text: str) -> None:
        """What the run was asked, where that is wanted."""
        if self._captures:
            self._scopes[None].root.span.set_attribute(names.INPUT_MESSAGES, messages("user", [text]))

    def see(self, event: AgentEvent) -> None:
        """One event."""
        if self.is_over:
            return
        self._now = max(self._now, event.timestamp)
        if not self._scopes:
            self.begin(event.run_id, event.agent, self._now)
        handler = self._handlers.get(type(event))
        if handler is not None:
            handler(event)
            return
        ending = ending_of(event)
        if ending is not None:
            self._ending = ending

    def close(self) -> None:
        """Nothing more comes. Whatever is open is ended; after the end of the session that is nothing."""
        if not self.is_over and self._scopes:
            self._ending = (UNFINISHED, "_OTHER", None)
            self._finish()
        self.is_over = True

    def _finish(self) -> None:
        exit_reason, error, message = self._ending
        root = self._scopes[None].root
        for branch in [branch for branch in reversed(self._spans.open) if branch is not root]:
            self._spans.end(branch, self._now, UNFINISHED)
        root.span.set_attributes({name: number for name, number in self._used.items() if number})
        root.span.set_attribute(names.EXIT_REASON, exit_reason)
        cost = self._put_cost(root, self._cost)
        self._put_texts(root)
        agent = root.measured[names.AGENT]
        self._spans.end(root, self._now, error, message if self._captures else None)
        self._meters.run(cost, {names.AGENT: agent, names.EXIT_REASON: exit_reason})
        self.is_over = True

    # -- what events mean

    def _scope(self, event: Any) -> _Scope:
        return self._scopes.get(event.subagent_id) or self._scopes[None]

    def _session(self, event: ev.SessionStartEvent) -> None:
        if not event.session_id.startswith("transient-"):
            self._common[names.CONVERSATION] = event.session_id
            self._scopes[None].root.span.set_attribute(names.CONVERSATION, event.session_id)

    def _session_end(self, event: ev.SessionEndEvent) -> None:
        self._cost = event.cost or self._cost
        self._finish()

    def _turn(self, event: ev.TurnStartEvent) -> None:
        scope = self._scope(event)
        attributes: dict[str, str | int] = {**self._common, names.TURN: event.turn_index}
        scope.since = self._now
        scope.turn = self._spans.begin(f"turn {event.turn_index}", self._now, scope.root, attributes, {})

    def _turn_end(self, event: ev.TurnEndEvent) -> None:
        scope = self._scope(event)
        self._end_step(scope)
        if scope.turn is not None:
            self._put_cost(scope.turn, event.cost)
            self._put_texts(scope.turn)
            self._spans.end(scope.turn, self._now)
            scope.turn = None

    def _step(self, event: ev.StepStartEvent) -> None:
        scope = self._scope(event)
        self._end_step(scope)
        model = self._about.request_model or self._about.model()
        name = names.CHAT if model is None else f"{names.CHAT} {model}"
        attributes: dict[str, str | int] = {**self._common, names.OPERATION: names.CHAT}
        attributes |= {names.TURN: event.turn_index, names.STEP: event.step_index}
        scope.step = self._spans.begin(name, scope.since, scope.innermost, attributes, self._of_model())
        scope.step.last = self._now

    def _step_end(self, event: ev.StepEndEvent) -> None:
        self._end_step(self._scope(event))

    def _end_step(self, scope: _Scope) -> None:
        """At the last word of the model: what came after were its tools."""
        step, scope.step = scope.step, None
        if step is None:
            return
        model = self._about.model()
        if model is not None:
            step.span.set_attribute(names.RESPONSE_MODEL, model)
        self._put_texts(step)
        self._spans.end(step, step.last)
        scope.since = max(scope.since, step.last)

    def _said(self, event: Any) -> None:
        step = self._scope(event).step
        if step is not None:
            step.last = self._now

    def _message(self, event: ev.MessageStopEvent) -> None:
        self._said(event)
        scope = self._scope(event)
        if self._captures:
            for branch in (scope.step, scope.turn, scope.root):
                if branch is not None:
                    branch.texts.append(event.text)

    def _usage(self, event: ev.TokenUsageEvent) -> None:
        cached = event.cached_tokens or 0
        used = {names.INPUT_TOKENS: event.input_tokens + cached, names.OUTPUT_TOKENS: event.output_tokens}
        if cached:
            used[names.CACHED_TOKENS] = cached
        for name, number in used.items():
            self._used[name] += number
        scope = self._scope(event)
        (scope.step or scope.innermost).span.set_attributes(used)
        measured = {**self._of_model(), names.OPERATION: names.CHAT}
        self._meters.tokens("input", used[names.INPUT_TOKENS], measured)
        self._meters.tokens("output", used[names.OUTPUT_TOKENS], measured)

    def _money(self, event: ev.CostEvent) -> None:
        self._cost = event.cost

    def _tool(self, event: ev.ToolCallReadyEvent | ev.McpToolCallStartEvent) -> None:
        self._said(event)
        scope = self._scope(event)
        attributes = {
            names.OPERATION: names.EXECUTE_TOOL,
            names.TOOL: event.tool_name,
            names.TOOL_CALL: event.tool_call_id,
            names.TOOL_TYPE: "function",
        }
        if isinstance(event, ev.McpToolCallStartEvent):
            attributes |= {names.MCP_SERVER: event.server, names.TOOL_TYPE: "extension"}
        if self._captures:
            attributes[names.TOOL_ARGUMENTS] = as_json(event.input)
        measured = {names.TOOL: event.tool_name, names.TOOL_TYPE: attributes[names.TOOL_TYPE], names.AGENT: event.agent}
        name = f"{names.EXECUTE_TOOL} {event.tool_name}"
        self._tools[event.tool_call_id] = self._spans.begin(name, self._now, scope.innermost, attributes, measured)

    def _tool_end(self, event: Any) -> None:
        self._scope(event).since = self._now
        tool = self._tools.pop(event.tool_call_id, None)
        if tool is None:
            return
        failed = isinstance(event, ev.ToolErrorEvent | ev.McpToolErrorEvent)
        said = event.error if failed else event.output
        if self._captures:
            tool.span.set_attribute(names.TOOL_RESULT, as_json(said))
        message = str(said) if self._captures else None
        self._spans.end(tool, self._now, "tool_error" if failed else None, message)

    def _subagent(self, event: ev.SubagentSpawnEvent) -> None:
        main = self._scopes[None]
        self._said(event)
        if main.step is not None:
            main.step.last = self._now
        attributes = {
            **self._common,
            names.OPERATION: names.INVOKE_AGENT,
            names.AGENT: event.agent_name,
            names.AGENT_ID: event.subagent_id,
        }
        if self._captures:
            attributes[names.INPUT_MESSAGES] = messages("user", [event.prompt])
        name = f"{names.INVOKE_AGENT} {event.agent_name}"
        measured = {names.AGENT: event.agent_name}
        root = self._spans.begin(name, self._now, main.innermost, attributes, measured)
        self._scopes[event.subagent_id] = _Scope(root)

    def _subagent_end(self, event: ev.SubagentResultEvent | ev.SubagentErrorEvent) -> None:
        self._scopes[None].since = self._now
        scope = self._scopes.pop(event.subagent_id, None)
        if scope is None:
            return
        self._end_step(scope)
        if scope.turn is not None:
            self._spans.end(scope.turn, self._now)
        if isinstance(event, ev.SubagentErrorEvent):
            self._spans.end(scope.root, self._now, "subagent_error", event.error if self._captures else None)
            return
        self._put_cost(scope.root, event.cost)
        if self._captures:
            scope.root.texts = [event.summary]
        self._put_texts(scope.root)
        self._spans.end(scope.root, self._now)

    # -- attributes

    def _of_model(self) -> dict[str, str]:
        model = self._about.model()
        measured = {name: self._common[name] for name in (names.PROVIDER, names.REQUEST_MODEL) if name in self._common}
        return {**measured, names.OPERATION: names.CHAT, **({} if model is None else {names.RESPONSE_MODEL: model})}

    @staticmethod
    def _put_cost(branch: Branch, cost: CostRecord | None) -> float | None:
        if cost is None or cost.source == "unknown":
            return None
        branch.span.set_attribute(names.COST, cost.total_usd)
        if cost.source is not None:
            branch.span.set_attribute(names.COST_SOURCE, cost.source)
        return cost.total_usd

    @staticmethod
    def _put_texts(branch: Branch) -> None:
        if branch.texts:
            branch.span.set_attribute(names.OUTPUT_MESSAGES, messages("assistant", branch.texts))

    def _new_handlers(self) -> Mapping[type, Callable[[Any], None]]:
        return {
            ev.SessionStartEvent: self._session,
            ev.SessionEndEvent: self._session_end,
            ev.TurnStartEvent: self._turn,
            ev.TurnEndEvent: self._turn_end,
            ev.StepStartEvent: self._step,
            ev.StepEndEvent: self._step_end,
            ev.MessageStopEvent: self._message,
            ev.TokenUsageEvent: self._usage,
            ev.CostEvent: self._money,
            ev.ToolCallReadyEvent: self._tool,
            ev.McpToolCallStartEvent: self._tool,
            ev.SubagentSpawnEvent: self._subagent,
            ev.SubagentResultEvent: self._subagent_end,
            ev.SubagentErrorEvent: self._subagent_end,
            **dict.fromkeys(
                (ev.ToolResultEvent, ev.ToolErrorEvent, ev.McpToolResultEvent, ev.McpToolErrorEvent), self._tool_end
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
                self._said,
            ),
        }
