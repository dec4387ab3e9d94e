"""The events of this program: whatever is told in it becomes AgentEvents, lawful, in order, and once.

The stream owns the assembler: runs, approvals and commands all tell it, and it gives the events to one sink.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from agent_loop.cli.outcomes import AUTH_GUIDANCE
from agent_loop.cli.projection import Projection
from agent_loop.events import LoopEvent
from agent_mux import facts
from agent_mux.assembler import Ending, OpenInteraction, StreamAssembler, StreamContext, Verdict
from agent_mux.events import AgentEvent

AGENT = "native"
DISPLAY_NAME = "amux-agent"
ApprovalMode = Literal["yolo", "prompt", "deny"]
NOTHING: Mapping[str, Any] = {}


class Told(NamedTuple):
    """An event, and fields that the protocol has beyond those of the event."""

    event: AgentEvent
    extra: Mapping[str, Any] = NOTHING


Sink = Callable[[Sequence[Told]], None]
Clock = Callable[[], int]


def context_of(  # noqa: PLR0913  # one name for each setting
    run_id: str,
    *,
    cwd: str = "",
    approvals: ApprovalMode = "yolo",
    interactive: bool = False,
    model: str | None = None,
    max_turns: int | None = None,
) -> StreamContext:
    """The settings of the event stream."""
    return StreamContext(
        run_id=run_id,
        agent=AGENT,
        display_name=DISPLAY_NAME,
        cwd=cwd,
        show_approvals=approvals != "yolo",
        show_requests=approvals == "prompt",
        permission_pending=approvals != "yolo",
        interactive=interactive,
        model=model,
        max_turns=max_turns or 0,
        auth_guidance=AUTH_GUIDANCE,
    )


class EventStream:
    """Takes loop events and facts; gives AgentEvents to `sink`. `now` gives milliseconds since the Unix epoch."""

    def __init__(self, context: StreamContext, sink: Sink, now: Clock) -> None:
        self._assembler = StreamAssembler(context)
        self._projection = Projection()
        self._sink = sink
        self._now = now
        self._model = context.model
        self._prior_turns: int | None = None
        self._structured: Any = None
        self._cache_writes: int | None = None
        self.verdict: Verdict | None = None
        """How it ended, once it has."""

    @property
    def pending(self) -> tuple[OpenInteraction, ...]:
        """What somebody is asked, oldest first."""
        return self._assembler.pending

    def call_id_of(self, native_id: str) -> str:
        """The id that the stream has for a tool call."""
        return self._projection.calls.id_of(native_id)

    def show(self, event: LoopEvent) -> None:
        """Something happened in a run."""
        self.tell(*self._projection.facts_of(event))

    def tell(self, *told: facts.Fact) -> None:
        """Something is to be said besides."""
        self._assembler.now = self._now()
        for fact in told:
            self._remember(fact)
            self._assembler.tell(fact)
            self._flush()

    def note(self, message: str, level: Literal["verbose", "info", "warn"] = "info") -> None:
        """A diagnostic: a `debug` event."""
        self.tell(facts.Note(message, level))

    def end(self, ending: Ending) -> Verdict:
        """The last event. Told again, it says nothing."""
        if self.verdict is None:
            self._assembler.now = self._now()
            self.verdict = self._assembler.end(ending)
            self._flush()
        return self.verdict

    def _remember(self, fact: facts.Fact) -> None:
        if isinstance(fact, facts.SessionKnown) and fact.forked_from is not None:
            self._prior_turns = fact.prior_turns
        elif isinstance(fact, facts.TurnDone):
            self._structured = fact.structured_output
        elif isinstance(fact, facts.TurnFailed | facts.TurnStopped | facts.TurnLimitHit):
            self._structured = None
        elif isinstance(fact, facts.Usage):
            self._cache_writes = fact.cache_creation_tokens or None

    def _flush(self) -> None:
        events = self._assembler.take()
        if events:
            self._sink([Told(event, self._extra(event)) for event in events])

    def _extra(self, event: AgentEvent) -> Mapping[str, Any]:
        """What the protocol tells beyond the event. Source: the agent protocol, "Fields beyond the events"."""
        match event.type:
            case "session_start":
                return _there(model=self._model, priorTurns=self._prior_turns)
            case "turn_end":
                return _there(structuredOutput=self._structured)
            case "token_usage":
                return _there(cacheCreationTokens=self._cache_writes)
            case "approval_request" | "input_required":
                return self._asked(str(getattr(event, "interaction_id", "")))
        return NOTHING

    def _asked(self, interaction_id: str) -> Mapping[str, Any]:
        for one in self.pending:
            if one.interaction_id == interaction_id:
                asked = one.asked
                if isinstance(asked, facts.InputAsked):
                    return _there(options=list(asked.options) or None)
                return _there(toolCallId=asked.call_id, command=asked.command, paths=list(asked.paths) or None)
        return NOTHING


def _there(**fields: Any) -> Mapping[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}
