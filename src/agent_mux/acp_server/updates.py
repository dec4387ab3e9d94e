"""Convert the events of a run to updates of the protocol. Pure: no clock, no connection."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from acp import image_block, resource_link_block, text_block
from acp.schema import AgentMessageChunk, AgentThoughtChunk, Cost, ToolCallProgress, UsageUpdate

from agent_mux import events
from agent_mux.acp_server.tool_updates import ToolUpdates
from agent_mux.sdk.interactions import ApprovalDetail, PendingInteraction

NO_UPDATE = (
    events.SessionStartEvent, events.SessionResumeEvent, events.SessionForkEvent, events.SessionCheckpointEvent,
    events.SessionEndEvent, events.TurnStartEvent, events.TurnEndEvent, events.StepStartEvent, events.StepEndEvent,
    events.ToolInputDeltaEvent, events.ShellExitEvent, events.PluginLoadedEvent, events.PluginInvokedEvent,
    events.PluginErrorEvent, events.SkillLoadedEvent, events.SkillInvokedEvent, events.AgentdocReadEvent,
    events.ImageInputAckEvent, events.InputRequiredEvent, events.RateLimitedEvent, events.ContextCompactedEvent,
    events.RetryEvent, events.InterruptedEvent, events.AbortedEvent, events.PausedEvent, events.ResumedEvent,
    events.TimeoutEvent, events.TurnLimitEvent, events.StreamFallbackEvent, events.AuthErrorEvent,
    events.RateLimitErrorEvent, events.ContextExceededEvent, events.CrashEvent, events.ErrorEvent, events.DebugEvent,
    events.LogEvent,
)  # fmt: skip
"""Events without an update: they determine the outcome of the prompt, are requests, or are for logs."""


class RunUpdates:
    """Converts the events of one run, in order."""

    def __init__(self, cwd: str, *, run_id: str = "", window: int | None = None, spent: float | None = 0.0) -> None:
        """Initialize without messages.

        Args:
            cwd: The working directory of the agent.
            run_id: Makes message ids unique within the session.
            window: The context window of the model in tokens; None if unknown.
            spent: The cost of earlier runs of the session in US dollars; None if unknown.
        """
        self.tools = ToolUpdates(cwd)
        self._run_id = run_id
        self._window = window
        self._spent = spent
        self._used: int | None = None
        self._cost: float | None = None
        self._last_usage: UsageUpdate | None = None
        self._messages = 0
        self._is_empty = False
        """Whether a message or thought has started without a fragment so far."""
        self._asked_about: dict[str, str] = {}
        """Tool call ids by the id of the approval that they wait for."""
        self._handlers: Mapping[type, Callable[[Any], Iterable[Any]]] = {
            **self.tools.handlers,
            events.MessageStartEvent: lambda _: self._begin(),
            events.ThinkingStartEvent: lambda _: self._begin(),
            events.TextDeltaEvent: lambda event: self._message(event.delta),
            events.ThinkingDeltaEvent: lambda event: self._thought(event.delta),
            events.MessageStopEvent: lambda event: self._message(event.text) if self._is_empty else (),
            events.ThinkingStopEvent: lambda event: self._thought(event.thinking) if self._is_empty else (),
            events.ImageOutputEvent: self._image,
            events.ApprovalRequestEvent: self._asked,
            events.ApprovalGrantedEvent: lambda event: self._answered(event.interaction_id, "in_progress"),
            events.ApprovalDeniedEvent: lambda event: self._answered(event.interaction_id, None),
            events.TokenUsageEvent: self._counted,
            events.ContextLimitWarningEvent: self._filled,
            events.CostEvent: self._priced,
        }

    def convert(self, event: events.AgentEvent) -> list[Any]:
        """Return the updates for an event; none for events inside of sub-agents."""
        handler = self._handlers.get(event.__class__)
        is_inside = event.subagent_id is not None and not event.type.startswith("subagent_")
        return [] if handler is None or is_inside else list(handler(event))

    def find_call(self, waiting: PendingInteraction) -> str | None:
        """Return the tool call that waits for an approval.

        The agent reports it, or else it is the last open call of the tool.
        """
        call_id = waiting.detail.tool_call_id if isinstance(waiting.detail, ApprovalDetail) else None
        return call_id if call_id is not None and self.tools.is_open(call_id) else self._asked_about.get(waiting.id)

    def _begin(self) -> Iterable[Any]:
        self._messages += 1
        self._is_empty = True
        return ()

    def _message(self, words: str) -> Iterable[Any]:
        self._is_empty = False
        if words:
            yield self._chunk(text_block(words))

    def _thought(self, words: str) -> Iterable[Any]:
        self._is_empty = False
        if words:
            yield AgentThoughtChunk(
                session_update="agent_thought_chunk", content=text_block(words), message_id=self._message_id
            )

    def _image(self, event: events.ImageOutputEvent) -> Iterable[Any]:
        if event.base64 is not None:
            yield self._chunk(image_block(event.base64, event.mime_type))
        elif event.file_path is not None:
            yield self._chunk(resource_link_block(event.file_path, f"file://{event.file_path}"))

    def _chunk(self, content: Any) -> AgentMessageChunk:
        return AgentMessageChunk(session_update="agent_message_chunk", content=content, message_id=self._message_id)

    @property
    def _message_id(self) -> str:
        return f"{self._run_id}-{self._messages}"

    def _asked(self, event: events.ApprovalRequestEvent) -> Iterable[Any]:
        call_id = self.tools.find_waiting(event.tool_name)
        if call_id is not None:
            self._asked_about[event.interaction_id] = call_id
            yield _status_update(call_id, "pending")

    def _answered(self, interaction_id: str, status: str | None) -> Iterable[Any]:
        call_id = self._asked_about.pop(interaction_id, None)
        if call_id is not None and status is not None:
            yield _status_update(call_id, status)

    def _counted(self, event: events.TokenUsageEvent) -> Iterable[Any]:
        self._used = event.input_tokens + (event.cached_tokens or 0) + event.output_tokens
        yield from self._usage()

    def _filled(self, event: events.ContextLimitWarningEvent) -> Iterable[Any]:
        self._used, self._window = event.used_tokens, event.max_tokens
        yield from self._usage()

    def _priced(self, event: events.CostEvent) -> Iterable[Any]:
        self._cost = event.cost.total_usd if event.cost.source != "unknown" else None
        yield from self._usage()

    def _usage(self) -> Iterable[Any]:
        """Yield a usage update if it changed.

        The protocol reports cost only together with the context window: without a known window, neither is sent.
        """
        if self._used is None or not self._window:
            return
        is_known = self._cost is not None and self._spent is not None
        cost = Cost(amount=self._spent + self._cost, currency="USD") if is_known else None  # type: ignore[operator]
        usage = UsageUpdate(session_update="usage_update", used=self._used, size=self._window, cost=cost)
        if usage != self._last_usage:
            self._last_usage = usage
            yield usage


def _status_update(call_id: str, status: Any) -> ToolCallProgress:
    return ToolCallProgress(session_update="tool_call_update", tool_call_id=call_id, status=status)
