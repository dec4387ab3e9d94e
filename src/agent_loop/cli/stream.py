"""The event stream of the program: turns loop events and facts into AgentEvents and passes them to one sink.

The stream owns the assembler. Runs, approvals and commands emit through it, so that events are ordered and conform to
the event contract.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from agent_loop.cli.outcomes import AUTH_GUIDANCE
from agent_loop.cli.projection import LoopProjection
from agent_loop.events import LoopEvent
from agent_mux._util.version import __version__
from agent_mux.assembler import Ending, OpenInteraction, StreamAssembler, StreamContext, Verdict
from agent_mux.events import AgentEvent
from agent_mux.sdk import facts

AGENT = "native"
DISPLAY_NAME = "amux-agent"
ApprovalMode = Literal["yolo", "prompt", "deny", "plan"]
NO_FIELDS: Mapping[str, Any] = {}
DELEGATE_TOOL = "delegate"
DELEGATING = frozenset({DELEGATE_TOOL})
"""The tools that start sub-agents."""


class EmittedEvent(NamedTuple):
    """An event, and the fields that the agent protocol adds to it."""

    event: AgentEvent
    extra: Mapping[str, Any] = NO_FIELDS


Sink = Callable[[Sequence[EmittedEvent]], None]
Clock = Callable[[], int]
"""A clock in milliseconds since the Unix epoch."""


def stream_context(  # noqa: PLR0913  # one parameter for each setting
    run_id: str,
    *,
    cwd: str = "",
    approvals: ApprovalMode = "yolo",
    interactive: bool = False,
    model: str | None = None,
    max_turns: int | None = None,
) -> StreamContext:
    """Return the settings of the event stream of a run."""
    return StreamContext(
        run_id=run_id,
        agent=AGENT,
        display_name=DISPLAY_NAME,
        cwd=cwd,
        include_subagent_events=True,  # readers leave them out
        show_approvals=approvals != "yolo",
        show_requests=approvals == "prompt",
        permission_pending=approvals != "yolo",
        interactive=interactive,
        model=model,
        max_turns=max_turns or 0,
        agent_version=__version__,
        auth_guidance=AUTH_GUIDANCE,
    )


class EventStream:
    """Converts loop events and facts to AgentEvents, in order, and passes them to `sink`."""

    def __init__(self, context: StreamContext, sink: Sink, now: Clock, delegating: frozenset[str] = DELEGATING) -> None:
        """Create a stream; `delegating` has the names of the tools that start sub-agents."""
        self._assembler = StreamAssembler(context)
        self._projection = LoopProjection(delegating)
        self._sink = sink
        self._now = now
        self._model = context.model
        self._shows_requests = context.show_requests
        self._prior_turns: int | None = None
        self._structured: Any = None
        self._cache_writes: int | None = None
        self.verdict: Verdict | None = None
        """The outcome of the run, None until it has ended."""

    @property
    def pending(self) -> tuple[OpenInteraction, ...]:
        """The approvals and questions that wait for an answer, oldest first."""
        return self._assembler.pending

    def call_id_of(self, native_id: str) -> str:
        """Return the id of a tool call in the stream."""
        return self._projection.tool_calls.id_of(native_id)

    def emit_loop_event(self, event: LoopEvent) -> None:
        """Emit the AgentEvents of a loop event."""
        self.emit(*self._projection.facts_of(event))

    def show_requests(self) -> None:
        """Emit approval requests and decisions from now on, whatever the mode at the start was."""
        self._assembler.show_requests()

    def emit(self, *emitted: facts.Fact) -> None:
        """Emit the AgentEvents of facts."""
        self._assembler.now = self._now()
        for fact in emitted:
            self._remember(fact)
            self._assembler.receive(fact)
            self._flush()

    def note(self, message: str, level: Literal["verbose", "info", "warn"] = "info") -> None:
        """Emit a `debug` event with this message and level."""
        self.emit(facts.Note(message, level))

    def end(self, ending: Ending) -> Verdict:
        """Emit the terminal events and return the verdict. Later calls emit nothing and return the same verdict."""
        if self.verdict is None:
            self._assembler.now = self._now()
            self.verdict = self._assembler.end(ending)
            self._flush()
        return self.verdict

    def _remember(self, fact: facts.Fact) -> None:
        """Store the values of facts that become extra fields of later events."""
        if isinstance(fact, facts.SessionKnown) and fact.forked_from is not None:
            self._prior_turns = fact.prior_turns
        elif isinstance(fact, facts.TurnDone):
            self._structured = fact.structured_output
        elif isinstance(fact, facts.TurnFailed | facts.TurnStopped | facts.TurnLimitHit):
            self._structured = None
        elif isinstance(fact, facts.Usage):
            self._cache_writes = fact.cache_creation_tokens or None

    def _flush(self) -> None:
        events = self._assembler.drain()
        if events:
            self._sink([EmittedEvent(event, self._extra_fields(event)) for event in events])

    def _extra_fields(self, event: AgentEvent) -> Mapping[str, Any]:
        """Return the fields that the agent protocol adds to an event."""
        match event.type:
            case "session_start":
                return _without_none(model=self._model, priorTurns=self._prior_turns)
            case "turn_end":
                return _without_none(structuredOutput=self._structured)
            case "token_usage":
                return _without_none(cacheCreationTokens=self._cache_writes)
            case "approval_denied" if not self._shows_requests:
                return self._denial_fields(str(getattr(event, "interaction_id", "")))
            case "approval_request" | "input_required":
                return self._interaction_fields(str(getattr(event, "interaction_id", "")))
        return NO_FIELDS

    def _denial_fields(self, interaction_id: str) -> Mapping[str, Any]:
        for denied_id, asked, _ in reversed(self._assembler.denied):
            if denied_id == interaction_id:
                return _without_none(action=asked.action, detail=asked.detail, toolName=asked.tool_name)
        return NO_FIELDS

    def _interaction_fields(self, interaction_id: str) -> Mapping[str, Any]:
        for interaction in self.pending:
            if interaction.interaction_id == interaction_id:
                asked = interaction.asked
                if isinstance(asked, facts.InputRequested):
                    return _without_none(options=list(asked.options) or None)
                return _without_none(toolCallId=asked.call_id, command=asked.command, paths=list(asked.paths) or None)
        return NO_FIELDS


def _without_none(**fields: Any) -> Mapping[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}
