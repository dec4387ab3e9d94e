"""One thread of the app-server, the main one or a sub-agent's: its turns, steps, items and tokens, as facts.

A model call ends with `thread/tokenUsage/updated`, after its tools; where the next one begins is not told, so a step
opens with the first item of it.
"""

from agent_mux.facts import (
    ContextCompacted,
    ContextFilling,
    Fact,
    Ignored,
    Retrying,
    StepBegin,
    StepDone,
    ToolDone,
    ToolOutput,
    ToolReady,
    Trouble,
    TurnBegin,
    Usage,
)
from agent_mux_adapters.codex.calls import Call, FileChanges
from agent_mux_adapters.codex.failures import code_of, retrying
from agent_mux_adapters.codex.items import Compaction, Message, Reasoning
from agent_mux_adapters.codex.meter import Meter, sum_of, usage_of
from agent_mux_adapters.codex.prose import Prose
from agent_mux_adapters.codex.wire import DeltaParams, ErrorParams, PlanParams, Tokens, TokenUsage, Turn, TurnError

FILLING = 0.8  # of the context window; the event spec (19) names this share
MOST_HELD = 1 << 20  # characters per command; Codex keeps no more of an output either
PLAN_TOOL = "update_plan"


class Thread:
    """What is known of a thread while its lines come in."""

    def __init__(self, thread_id: str, cwd: str, *, is_inside: bool = False) -> None:
        self.id = thread_id
        self.cwd = cwd
        self.is_inside = is_inside
        """It is a sub-agent's."""
        self.turn_id: str | None = None
        """The turn that runs."""
        self.answer = ""
        """The last message."""
        self.spent = Tokens()
        """In this run."""
        self.spent_in_turn = Tokens()
        self.context_used = 0
        self.context_size = 0
        self.error: TurnError | None = None
        """A failed model call that will not be repeated: the end of the turn tells it, if there is one."""
        self.calls: dict[str, Call] = {}
        """The tool calls that have not ended."""
        self.prose = Prose()
        self._written: set[str] = set()
        self._meter = Meter(None)
        self._outlived: set[str] = set()
        self._held: dict[str, list[str]] = {}
        self._room: dict[str, int] = {}
        self._in_step = False
        self._warned = False
        self._compacting_from: int | None = None
        self._plans = 0
        self._retries = 0

    # -- turns

    def turn_started(self, turn: Turn) -> tuple[Fact, ...]:
        """The agent takes up a prompt."""
        self.turn_id = turn.id
        self.spent_in_turn = Tokens()
        self.error = None
        self.answer = ""
        self._retries = 0
        self._in_step = False
        return (TurnBegin(),)

    def turn_over(self) -> tuple[Fact, ...]:
        """What must still be said before the turn is closed."""
        facts = *self.prose.abandon(), *self._release_output()
        self._outlived.update(self.calls)
        self.calls.clear()
        self.turn_id = None
        return facts

    def finish(self) -> tuple[Fact, ...]:
        """The process is gone."""
        error, self.error = self.error, None
        trouble = (Trouble(code_of(error.message, error.codex_error_info), error.message),) if error else ()
        return *self._release_output(), *trouble

    # -- items

    def prompted(self) -> tuple[Fact, ...]:
        """A prompt is shown to the model; in mid turn it cuts off the model call that runs."""
        return *self.prose.started(""), *self.end_step()

    def speech_started(self, item: Message | Reasoning) -> tuple[Fact, ...]:
        """The model begins to say something."""
        return *self.prose.started(item.id), *self.begin_step()

    def said(self, item: Message) -> tuple[Fact, ...]:
        """A whole message."""
        self.answer = item.text
        return *self.begin_step(), *self.prose.message_done(item.id, item.text)

    def thought(self, item: Reasoning) -> tuple[Fact, ...]:
        """A whole thought."""
        return *self.begin_step(), *self.prose.thought_done(item.id, item.summary, item.content)

    def call_started(self, call: Call) -> tuple[Fact, ...]:
        """A tool is called."""
        self.calls[call.id] = call
        return *self.begin_step(), *call.begun()

    def call_completed(self, call: Call) -> tuple[Fact, ...]:
        """A tool returned. A command that outlived its turn was closed with it."""
        self._held.pop(call.id, None)
        self._room.pop(call.id, None)
        if call.id in self._outlived:
            return (Ignored("item/completed", "the call was closed with the turn that it outlived"),)
        begun = () if self.calls.pop(call.id, None) else (*self.begin_step(), *call.begun())
        if isinstance(call, FileChanges):
            return begun + call.ended_with_files(self.cwd, self._written)
        return begun + call.ended()

    def compaction_started(self, _: Compaction) -> tuple[Fact, ...]:
        """The context is being compressed."""
        self._compacting_from = self.context_used
        return (Ignored("item/started:contextCompaction", "told when it is completed"),)

    def compaction_completed(self, _: Compaction) -> tuple[Fact, ...]:
        """The context was compressed. Codex does not show the summary."""
        before, self._compacting_from = self._compacting_from, None
        self._warned = False
        return (ContextCompacted("", max((before or 0) - self.context_used, 0)),)

    def planned(self, plan: PlanParams) -> tuple[Fact, ...]:
        """The plan was written anew: a tool call that Codex shows in this form only."""
        self._plans += 1
        call_id = f"{PLAN_TOOL}:{self.turn_id}:{self._plans}"
        steps = [{"step": step.step, "status": step.status} for step in plan.plan]
        ready = ToolReady(call_id, PLAN_TOOL, {"explanation": plan.explanation, "plan": steps})
        return *self.begin_step(), ready, ToolDone(call_id, name=PLAN_TOOL)

    # -- fragments

    def delta(self, method: str, params: DeltaParams) -> tuple[Fact, ...]:
        """A fragment of a message, a thought, or a command's output."""
        match method:
            case "item/agentMessage/delta":
                facts = self.prose.say(params.item, params.delta)
            case "item/reasoning/summaryTextDelta":
                facts = self.prose.think(params.item, "summaryTextDelta", params.summary_index, params.delta)
            case "item/reasoning/textDelta":
                facts = self.prose.think(params.item, "textDelta", params.content_index, params.delta)
            case _:
                return self._hold(params)
        return facts if self._in_step else (*self.begin_step(), *facts)

    def _hold(self, params: DeltaParams) -> tuple[Fact, ...]:
        """Output may lack its beginning, and the completed item has all of it: kept in case that never comes."""
        room = self._room.get(params.item, MOST_HELD)
        if room > 0 and params.item not in self._outlived:
            self._held.setdefault(params.item, []).append(params.delta)
            self._room[params.item] = room - len(params.delta)
        return (Ignored("item/commandExecution/outputDelta", "may lack its beginning; the completed item has it all"),)

    def _release_output(self) -> tuple[Fact, ...]:
        held, self._held, self._room = self._held, {}, {}
        return tuple(ToolOutput(item, "".join(parts)) for item, parts in held.items() if item in self.calls)

    # -- model calls

    def used(self, usage: TokenUsage) -> tuple[Fact, ...]:
        """A model call is over, or what the thread used before this run is told again."""
        self.context_used = usage.last.total_tokens
        self.context_size = usage.model_context_window or self.context_size
        if self.turn_id is None:
            self._meter.set(usage.total)
            return (Ignored("thread/tokenUsage/updated", "what the session used before this run"),)
        added = self._meter.advance(usage.total, usage.last)
        fact = usage_of(added) if added is not None else None
        spent = self._count(fact, added) if added is not None else ()
        return (*spent, *self._filling()) or (Ignored("thread/tokenUsage/updated", "no more tokens than before"),)

    def _count(self, fact: Usage | None, added: Tokens) -> tuple[Fact, ...]:
        if fact is None:
            return ()
        self.spent = sum_of(self.spent, added)
        self.spent_in_turn = sum_of(self.spent_in_turn, added)
        self._retries = 0
        return *self.begin_step(), fact, *self.end_step()

    def _filling(self) -> tuple[Fact, ...]:
        if self._warned or not self.context_size or self.context_used < FILLING * self.context_size:
            return ()
        self._warned = True
        return (ContextFilling(self.context_used, self.context_size),)

    def failed(self, params: ErrorParams) -> tuple[Fact, ...]:
        """A model call failed."""
        error = params.error
        if not params.will_retry:
            self.error = error
            return (Ignored("error", "turn/completed repeats it"),)
        self._retries += 1
        told = retrying(error.message, error.additional_details, error.codex_error_info, nth=self._retries)
        self.prose.abandon()  # without facts: a retry closes what was half-said
        return told or (Retrying(self._retries, 0, error.additional_details or error.message),)

    def begin_step(self) -> tuple[Fact, ...]:
        """The first item of a model call opens its step."""
        if self._in_step:
            return ()
        self._in_step = True
        return (StepBegin(),)

    def end_step(self) -> tuple[Fact, ...]:
        """A model call is over, and its tools."""
        ended, self._in_step = self._in_step, False
        return (StepDone(),) if ended and not self.calls else ()  # what still runs keeps its step open
