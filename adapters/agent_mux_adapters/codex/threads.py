"""The threads of one app-server: the main one and those of its sub-agents, as facts.

A model call ends with `thread/tokenUsage/updated`, after its tools. Codex does not report where the next one begins,
so a step opens with its first item.
"""

from collections.abc import Iterable
from typing import Any

from agent_mux.events.base import CostRecord
from agent_mux.sdk.facts import (
    ApprovalRequested,
    ContextCompacted,
    ContextFilling,
    Fact,
    Ignored,
    InputRequested,
    InSubagent,
    Note,
    RecoverableError,
    RequestResolved,
    Retrying,
    StepBegin,
    StepDone,
    SubagentBegin,
    SubagentDone,
    ToolDone,
    ToolOutput,
    ToolReady,
    TurnBegin,
    TurnDone,
    TurnFailed,
    TurnStopped,
    Usage,
)
from agent_mux_adapters.codex.items import CompactionItem, MessageItem, ReasoningItem
from agent_mux_adapters.codex.messages import CodexMessages
from agent_mux_adapters.codex.outcome import (
    error_code_of,
    failure_of,
    incomplete_answer,
    parse_structured_output,
    read_retry,
)
from agent_mux_adapters.codex.subagents import UNNAMED, CodexSubagents
from agent_mux_adapters.codex.tools import PLAN_TOOL, CodexToolCall, PatchCall
from agent_mux_adapters.codex.usage import NO_TOKENS, TokenCounter, cost_of, cost_of_run, sum_of, usage_of
from agent_mux_adapters.codex.wire import (
    CodexTokens,
    DeltaParams,
    ErrorParams,
    PlanParams,
    ThreadTokenUsage,
    TurnError,
    TurnInfo,
    read,
)

CONTEXT_WARNING_SHARE = 0.8  # of the context window; see docs/spec/events.md, section 19
MAX_KEPT_OUTPUT = 1 << 20  # characters per command; Codex itself keeps no more of an output
# Facts that are never nested in a sub-agent: consumers must see requests, and sub-agents of a sub-agent belong to the
# run.
_FACTS_OF_THE_RUN = (ApprovalRequested, InputRequested, RequestResolved, SubagentBegin, SubagentDone)


class CodexThread:
    """One thread, of the main agent or of a sub-agent: its turns, steps, items and tokens."""

    def __init__(self, thread_id: str, cwd: str, *, is_inside: bool = False) -> None:
        self.id = thread_id
        self.cwd = cwd
        self.is_inside = is_inside
        """Whether the thread is a sub-agent's."""
        self.last_message = ""
        self.spent = NO_TOKENS
        """The tokens of this run."""
        self.calls: dict[str, CodexToolCall] = {}
        """The tool calls that have not ended."""
        self._turn_id: str | None = None
        """The turn that runs."""
        self._spent_in_turn = NO_TOKENS
        self._context_used = 0
        self._context_size = 0
        self._error: TurnError | None = None
        """A failed model call that is not retried. The end of the turn reports it, if there is one."""
        self._messages = CodexMessages()
        self._written: set[str] = set()
        self._counter = TokenCounter(None)
        self._outlived: set[str] = set()
        """The calls that had not ended at the end of their turn."""
        self._kept_output: dict[str, list[str]] = {}
        self._output_budget: dict[str, int] = {}
        """How many more characters of a command's output are kept."""
        self._in_step = False
        self._warned = False
        """Whether the fact about a filling context was returned since the last compaction."""
        self._compacting_from: int | None = None
        self._plans = 0
        self._retries = 0

    # -- turns

    def turn_started(self, turn: TurnInfo) -> tuple[Fact, ...]:
        """Return the begin of a turn and reset its counters."""
        self._turn_id = turn.id
        self._spent_in_turn = NO_TOKENS
        self._error = None
        self.last_message = ""
        self._retries = 0
        self._in_step = False
        return (TurnBegin(),)

    def turn_over(self) -> tuple[Fact, ...]:
        """Return the facts that must precede the end of the turn, and forget its calls."""
        facts = *self._messages.abandon(), *self._release_output()
        self._outlived.update(self.calls)
        self.calls.clear()
        self._turn_id = None
        return facts

    def closing(self, turn: TurnInfo, schema: dict[str, Any] | None) -> tuple[Fact, ...] | None:
        """Return the closing facts of a turn of the main thread; None when its status is unknown."""
        cost = self.cost_of_turn
        error = self._take_error(turn)
        match turn.status:
            case "completed":
                return (TurnDone(cost, parse_structured_output(self.last_message, schema)),)
            case "interrupted":
                why = (Note(f"codex interrupted the turn: {error.message}", "warn"),) if error is not None else ()
                return *why, TurnStopped(cost)
            case "failed":
                message = error.message if error is not None else "codex reported no reason for the failed turn"
                incomplete = incomplete_answer(message, cost)
                if incomplete is not None:
                    return (incomplete,)
                info = error.codex_error_info if error is not None else None
                used, size = self._context_used, self._context_size
                return (TurnFailed(failure_of(message, info, used_tokens=used, max_tokens=size), cost),)
        return None

    def error_of_subagent(self, turn: TurnInfo) -> str | None:
        """Return why the turn of a sub-agent failed; None when it completed."""
        error = self._take_error(turn)
        if turn.status == "completed":
            return None
        return error.message if error is not None else f"the turn ended as {turn.status}"

    @property
    def cost_of_turn(self) -> CostRecord | None:
        """The cost of the last turn; None when it used no tokens."""
        return cost_of(self._spent_in_turn) if self._spent_in_turn != NO_TOKENS else None

    def finish(self) -> tuple[Fact, ...]:
        """Return kept output and an unreported error when the process has exited."""
        error, self._error = self._error, None
        trouble = (
            (RecoverableError(error_code_of(error.message, error.codex_error_info), error.message),) if error else ()
        )
        return *self._release_output(), *trouble

    def _take_error(self, turn: TurnInfo) -> TurnError | None:
        error, self._error = self._error, None
        return read(TurnError, turn.error) or error

    # -- items

    def prompted(self) -> tuple[Fact, ...]:
        """Handle a prompt that the model gets. In mid turn it cuts off the running model call."""
        return *self._messages.start(""), *self.end_step()

    def message_started(self, item: MessageItem | ReasoningItem) -> tuple[Fact, ...]:
        """Handle the start of a message or a thought."""
        return *self._messages.start(item.id), *self.begin_step()

    def message_completed(self, item: MessageItem) -> tuple[Fact, ...]:
        """Return the part of a message that was not streamed."""
        self.last_message = item.text
        return *self.begin_step(), *self._messages.complete_message(item.id, item.text)

    def thought_completed(self, item: ReasoningItem) -> tuple[Fact, ...]:
        """Return the part of a thought that was not streamed."""
        return *self.begin_step(), *self._messages.complete_thought(item.id, item.summary, item.content)

    def call_started(self, call: CodexToolCall) -> tuple[Fact, ...]:
        """Record a tool call and return its start."""
        self.calls[call.id] = call
        return *self.begin_step(), *call.begin_facts()

    def call_completed(self, call: CodexToolCall) -> tuple[Fact, ...]:
        """Return the end of a tool call. A command that outlived its turn was closed with that."""
        self._kept_output.pop(call.id, None)
        self._output_budget.pop(call.id, None)
        if call.id in self._outlived:
            return (Ignored("item/completed", "the call was closed at the end of its turn"),)
        begun = () if self.calls.pop(call.id, None) else (*self.begin_step(), *call.begin_facts())
        if isinstance(call, PatchCall):
            return begun + call.end_facts_with_files(self.cwd, self._written)
        return begun + call.end_facts()

    def compaction_started(self, _: CompactionItem) -> tuple[Fact, ...]:
        """Record the size of the context before a compaction."""
        self._compacting_from = self._context_used
        return (Ignored("item/started:contextCompaction", "reported on completion"),)

    def compaction_completed(self, _: CompactionItem) -> tuple[Fact, ...]:
        """Return the compaction and how many tokens it removed. Codex does not show the summary."""
        before, self._compacting_from = self._compacting_from, None
        self._warned = False
        return (ContextCompacted("", max((before or 0) - self._context_used, 0)),)

    def plan_updated(self, plan: PlanParams) -> tuple[Fact, ...]:
        """Return a new plan as a tool call: Codex reports that call only in this form."""
        self._plans += 1
        call_id = f"{PLAN_TOOL}:{self._turn_id}:{self._plans}"
        steps = [{"step": step.step, "status": step.status} for step in plan.plan]
        ready = ToolReady(call_id, PLAN_TOOL, {"explanation": plan.explanation, "plan": steps})
        return *self.begin_step(), ready, ToolDone(call_id, name=PLAN_TOOL)

    # -- fragments

    def delta(self, method: str, params: DeltaParams) -> tuple[Fact, ...]:
        """Return the facts for a fragment of a message, of a thought, or of a command's output."""
        match method:
            case "item/agentMessage/delta":
                facts = self._messages.message_delta(params.item, params.delta)
            case "item/reasoning/summaryTextDelta":
                facts = self._messages.thought_delta(
                    params.item, "summaryTextDelta", params.summary_index, params.delta
                )
            case "item/reasoning/textDelta":
                facts = self._messages.thought_delta(params.item, "textDelta", params.content_index, params.delta)
            case _:
                return self._keep_output(params)
        return facts if self._in_step else (*self.begin_step(), *facts)

    def _keep_output(self, params: DeltaParams) -> tuple[Fact, ...]:
        """Keep a fragment of output, for use only if the item never completes.

        The fragments may lack the beginning of the output; the completed item has all of it.
        """
        budget = self._output_budget.get(params.item, MAX_KEPT_OUTPUT)
        if budget > 0 and params.item not in self._outlived:
            self._kept_output.setdefault(params.item, []).append(params.delta)
            self._output_budget[params.item] = budget - len(params.delta)
        return (Ignored("item/commandExecution/outputDelta", "may lack its beginning; the completed item has it all"),)

    def _release_output(self) -> tuple[Fact, ...]:
        kept, self._kept_output, self._output_budget = self._kept_output, {}, {}
        return tuple(ToolOutput(item, "".join(parts)) for item, parts in kept.items() if item in self.calls)

    # -- model calls

    def tokens_used(self, usage: ThreadTokenUsage) -> tuple[Fact, ...]:
        """Return the tokens of a finished model call.

        Outside of turns Codex repeats what the thread used before this run: that only sets the counter.
        """
        self._context_used = usage.last.total_tokens
        self._context_size = usage.model_context_window or self._context_size
        if self._turn_id is None:
            self._counter.set(usage.total)
            return (Ignored("thread/tokenUsage/updated", "tokens that the session used before this run"),)
        added = self._counter.advance(usage.total, usage.last)
        fact = usage_of(added) if added is not None else None
        spent = self._count(fact, added) if added is not None else ()
        return (*spent, *self._context_warning()) or (
            Ignored("thread/tokenUsage/updated", "no more tokens than before"),
        )

    def _count(self, fact: Usage | None, added: CodexTokens) -> tuple[Fact, ...]:
        if fact is None:
            return ()
        self.spent = sum_of(self.spent, added)
        self._spent_in_turn = sum_of(self._spent_in_turn, added)
        self._retries = 0
        return *self.begin_step(), fact, *self.end_step()

    def _context_warning(self) -> tuple[Fact, ...]:
        if self._warned or not self._context_size or self._context_used < CONTEXT_WARNING_SHARE * self._context_size:
            return ()
        self._warned = True
        return (ContextFilling(self._context_used, self._context_size),)

    def model_call_failed(self, params: ErrorParams) -> tuple[Fact, ...]:
        """Return the retry of a failed model call, or record its error for the end of the turn."""
        error = params.error
        if not params.will_retry:
            self._error = error
            return (Ignored("error", "turn/completed repeats it"),)
        self._retries += 1
        facts = read_retry(error.message, error.additional_details, error.codex_error_info, nth=self._retries)
        self._messages.abandon()  # its facts are not needed: a retry fact closes the incomplete messages
        return facts or (Retrying(self._retries, 0, error.additional_details or error.message),)

    def begin_step(self) -> tuple[Fact, ...]:
        """Return the begin of a step before the first item of a model call; empty inside a step."""
        if self._in_step:
            return ()
        self._in_step = True
        return (StepBegin(),)

    def end_step(self) -> tuple[Fact, ...]:
        """Return the end of the open step. Calls that have not ended keep it open."""
        ended, self._in_step = self._in_step, False
        return (StepDone(),) if ended and not self.calls else ()


class CodexThreads:
    """All threads of one app-server, which share its output.

    The first lines of a sub-agent may precede the line that introduces it: their facts wait for that.
    """

    def __init__(self, cwd: str) -> None:
        self._cwd = cwd
        self._threads: dict[str, CodexThread] = {}
        self.main: CodexThread | None = None
        self.subagents = CodexSubagents()
        self._waiting: dict[str, list[Fact]] = {}

    def get(self, thread_id: str) -> CodexThread:
        """Return the thread with this id, new if needed. The first one becomes the main thread."""
        thread = self._threads.get(thread_id)
        if thread is None:
            thread = self._threads[thread_id] = CodexThread(thread_id, self._cwd, is_inside=self.main is not None)
            if self.main is None:
                self.main = thread
        return thread

    def open(self, thread_id: str, cwd: str | None) -> None:
        """Record the opened main thread. `cwd`: its directory, used when the context has none (in a transcript)."""
        self._cwd = self._cwd or cwd or ""
        thread = self.get(thread_id)
        thread.cwd = thread.cwd or self._cwd

    def all(self) -> Iterable[CodexThread]:
        """Return the main thread and the threads of all sub-agents."""
        return self._threads.values()

    def cost(self) -> tuple[Fact, ...]:
        """Return the cost of all threads in this run; empty when they used no tokens."""
        return cost_of_run(thread.spent for thread in self._threads.values())

    def place(self, thread: CodexThread, facts: tuple[Fact, ...]) -> tuple[Fact, ...]:
        """Return the facts of a thread as facts of the run: those of a sub-agent's thread nested in it."""
        if not thread.is_inside:
            return facts
        shown = tuple(fact for fact in facts if isinstance(fact, _FACTS_OF_THE_RUN))
        inner = [fact for fact in facts if not isinstance(fact, (*_FACTS_OF_THE_RUN, Ignored))]
        self._waiting.setdefault(thread.id, []).extend(inner)
        if not self.subagents.has_begun(thread.id):
            if self.subagents.spawning:
                return shown or (Ignored("sub-agent", "deferred until the sub-agent is introduced"),)
            return (*self.introduce(thread.id, UNNAMED, ""), *shown)
        return (*self._release(thread.id), *shown) or facts

    def introduce(self, thread_id: str, name: str, prompt: str) -> tuple[Fact, ...]:
        """Return the begin of a sub-agent and its facts that waited for it."""
        return *self.subagents.begin(thread_id, name, prompt), *self._release(thread_id)

    def release_introduced(self) -> tuple[Fact, ...]:
        """Return the waiting facts of the sub-agents that have begun."""
        begun = [thread_id for thread_id in self._waiting if self.subagents.has_begun(thread_id)]
        return tuple(fact for thread_id in begun for fact in self._release(thread_id))

    def _release(self, thread_id: str) -> tuple[Fact, ...]:
        return tuple(InSubagent(thread_id, fact) for fact in self._waiting.pop(thread_id, ()))
