"""Notifications of the app-server as facts of the run."""

from collections.abc import Callable, Iterable
from typing import Any

from agent_mux.sdk.codec import CodecContext, CodecOutput
from agent_mux.sdk.facts import AgentdocRead, Fact, Ignored, QuotaReported, SessionKnown, Unknown
from agent_mux_adapters.codex.approvals import CodexApprovals
from agent_mux_adapters.codex.items import (
    IGNORED_ITEMS,
    THREAD_ITEMS,
    CompactionItem,
    MessageItem,
    ReasoningItem,
    read_item,
)
from agent_mux_adapters.codex.notices import read_notice
from agent_mux_adapters.codex.quota import read_windows
from agent_mux_adapters.codex.subagents import UNNAMED, CollabCall, SubagentActivity
from agent_mux_adapters.codex.threads import CodexThread, CodexThreads
from agent_mux_adapters.codex.tools import CodexToolCall
from agent_mux_adapters.codex.turns import CodexTurns
from agent_mux_adapters.codex.wire import (
    DELTA_METHODS,
    DeltaParams,
    ErrorParams,
    InThread,
    ItemParams,
    PlanParams,
    ThreadStarted,
    TokenUsageParams,
    TurnInfo,
    TurnParams,
    as_text,
    read,
)

Steps = tuple[CodecOutput, ...] | None
"""What a notification results in; None when it is unknown or has an unknown shape."""
_IDLE_STATUSES = ("idle", "systemError", "notLoaded")


class AppServerReader:
    """Reader of notifications. It returns facts, and reports turns to `CodexTurns` and `CodexApprovals`."""

    def __init__(
        self, context: CodecContext, threads: CodexThreads, approvals: CodexApprovals, turns: CodexTurns
    ) -> None:
        self._schema = context.output_schema
        self._threads = threads
        self._approvals = approvals
        self._turns = turns
        self._handlers: dict[str, Callable[[Any], Steps]] = {
            "error": self._error,
            "item/completed": self._item_completed,
            "item/started": self._item_started,
            "serverRequest/resolved": self._request_resolved,
            "thread/closed": self._thread_status,
            "thread/started": self._thread_started,
            "thread/status/changed": self._thread_status,
            "account/rateLimits/updated": self._rate_limits_updated,
            "thread/tokenUsage/updated": self._tokens_used,
            "turn/completed": self._turn_completed,
            "turn/plan/updated": self._plan_updated,
            "turn/started": self._turn_started,
        }

    def delta(self, method: str, params: DeltaParams) -> tuple[Fact, ...]:
        """Return the facts for a fragment. This is the hot path."""
        thread = self._threads.main
        if thread is not None and params.thread == thread.id:
            return thread.delta(method, params)
        thread = self._threads.get(params.thread)
        return self._threads.place(thread, thread.delta(method, params))

    def notification(self, method: str, params: Any) -> Steps:
        """Return the steps for a notification; None when its method or its shape is unknown."""
        handler = self._handlers.get(method)
        if handler is not None:
            return handler(params)
        if method in DELTA_METHODS:
            delta = read(DeltaParams, params)
            return None if delta is None else self.delta(method, delta)
        fact = read_notice(method, params)
        return None if fact is None else (fact,)

    def documents(self, paths: Iterable[str]) -> tuple[Fact, ...]:
        """Return the agent documents (AGENTS.md) that Codex has read."""
        return tuple(AgentdocRead(path) for path in paths)

    # -- the account

    def _rate_limits_updated(self, params: Any) -> Steps:
        limits = params.get("rateLimits") if isinstance(params, dict) else None
        if not isinstance(limits, dict):
            return None
        # `rateLimitReachedType` is a report, too: the provider may still answer. A refusal is an error of the turn.
        windows = read_windows(limits)
        if not windows:
            return (Ignored("account/rateLimits/updated", "it has no window"),)
        return (QuotaReported(windows),)

    # -- threads and turns

    def _thread_started(self, params: Any) -> Steps:
        started = read(ThreadStarted, params)
        if started is None:
            return None
        thread = started.thread
        if thread.parent_thread_id is not None or self._threads.main is not None:
            return (
                Ignored("thread/started", "the response to our request or the item that starts a sub-agent reports it"),
            )
        self._threads.get(thread.id)
        return (SessionKnown(thread.id, forked_from=thread.forked_from_id, model=thread.model),)

    def _thread_status(self, params: Any) -> Steps:
        """Handle `thread/status/changed` and `thread/closed`: a sub-agent may have become idle."""
        where = read(InThread, params)
        if where is None or where.thread_id is None:
            return None
        status = params.get("status")
        is_idle = not isinstance(status, dict) or status.get("type") in _IDLE_STATUSES
        main = self._threads.main
        is_inside = main is not None and where.thread_id != main.id
        effects = self._turns.set_subagent_busy(where.thread_id, busy=False) if is_idle and is_inside else ()
        return Ignored("thread/status/changed", "turns and requests have their own messages"), *effects

    def _turn_started(self, params: Any) -> Steps:
        started = read(TurnParams, params)
        if started is None:
            return None
        thread = self._threads.get(started.thread_id)
        facts = self._threads.place(thread, thread.turn_started(started.turn))
        if thread.is_inside:
            return *facts, *self._turns.set_subagent_busy(thread.id, busy=True)
        return *facts, *self._turns.turn_started(started.turn.id)

    def _turn_completed(self, params: Any) -> Steps:
        completed = read(TurnParams, params)
        if completed is None:
            return None
        thread, turn = self._threads.get(completed.thread_id), completed.turn
        over = *self._approvals.turn_over(thread.id), *thread.turn_over()
        facts = self._threads.place(thread, over) if over else ()
        if thread.is_inside:
            report = self._report_subagent(thread, turn)
            return *facts, *report, *self._turns.set_subagent_busy(thread.id, busy=False)
        closing = thread.closing(turn, self._schema)
        if closing is None:
            return *facts, Unknown("turn/completed", as_text(params)), *self._turns.turn_over(turn.id)
        return *facts, *self._threads.cost(), *closing, *self._turns.turn_over(turn.id)

    def _report_subagent(self, thread: CodexThread, turn: TurnInfo) -> tuple[Fact, ...]:
        """Return the result of a sub-agent, whose task is one turn."""
        introduced = self._threads.introduce(thread.id, UNNAMED, "")
        error, cost = thread.error_of_subagent(turn), thread.cost_of_turn
        done = self._threads.subagents.report(thread.id, thread.last_message, error, cost)
        return (*introduced, *self._threads.cost(), *done) or (
            Ignored("turn/completed", "the sub-agent has reported before"),
        )

    # -- items

    def _item_started(self, params: Any) -> Steps:
        started = read(ItemParams, params)
        if started is None:
            return None
        thread = self._threads.get(started.thread_id)
        facts = self._ignored_item(thread, started.item, "item/started") or self._started(thread, started.item)
        return None if facts is None else self._threads.place(thread, facts)

    def _started(self, thread: CodexThread, raw: dict[str, Any]) -> tuple[Fact, ...] | None:
        match read_item(THREAD_ITEMS, raw):
            case CodexToolCall() as call:
                return thread.call_started(call)
            case MessageItem() | ReasoningItem() as item:
                return thread.message_started(item) or (Ignored("item/started", "its content follows"),)
            case CompactionItem() as item:
                return thread.compaction_started(item)
            case CollabCall() as call:
                return *thread.begin_step(), *self._threads.subagents.call_started(call)
            case SubagentActivity() as item:
                return self._subagent_activity(thread, item)
        return None

    def _item_completed(self, params: Any) -> Steps:
        completed = read(ItemParams, params)
        if completed is None:
            return None
        thread = self._threads.get(completed.thread_id)
        facts = self._ignored_item(thread, completed.item, "item/completed") or self._completed(thread, completed.item)
        return None if facts is None else self._threads.place(thread, facts)

    def _completed(self, thread: CodexThread, raw: dict[str, Any]) -> tuple[Fact, ...] | None:  # noqa: PLR0911  # a table
        match read_item(THREAD_ITEMS, raw):
            case CodexToolCall() as call:
                declined = call.status == "declined"
                return *self._approvals.item_completed(call.id, declined=declined), *thread.call_completed(call)
            case MessageItem() as item:
                return thread.message_completed(item)
            case ReasoningItem() as item:
                return thread.thought_completed(item)
            case CompactionItem() as item:
                return thread.compaction_completed(item)
            case CollabCall() as call:
                return *self._threads.subagents.call_completed(call), *self._threads.release_introduced()
            case SubagentActivity():
                return (Ignored("item/completed:subAgentActivity", "reported at its start"),)
        return None

    def _ignored_item(self, thread: CodexThread, raw: dict[str, Any], method: str) -> tuple[Fact, ...] | None:
        """Return the facts for an ignored item, which can end a step; None for any other item."""
        kind = raw.get("type")
        if not isinstance(kind, str) or kind not in IGNORED_ITEMS:
            return None
        facts = thread.prompted() if kind == "userMessage" and method == "item/started" else ()
        return *facts, Ignored(f"{method}:{kind}", IGNORED_ITEMS[kind])

    def _subagent_activity(self, thread: CodexThread, item: SubagentActivity) -> tuple[Fact, ...]:
        kind, agent_id = f"item/started:subAgentActivity:{item.kind}", item.agent_thread_id
        match item.kind:
            case "started":
                return *thread.begin_step(), *self._threads.introduce(agent_id, item.agent_path, "")
            case "completed":
                inner = self._threads.get(agent_id)
                done = self._threads.subagents.report(agent_id, inner.last_message, cost=inner.cost_of_turn)
                return done or (Ignored(kind, "the sub-agent has reported before"),)
        return (Ignored(kind, "the sub-agent's own thread reports it"),)

    # -- model calls, plans and requests

    def _error(self, params: Any) -> Steps:
        failed, where = read(ErrorParams, params), read(InThread, params)
        main = self._threads.main
        thread_id = where.thread_id if where is not None else None
        if failed is None or (thread_id is None and main is None):
            return None
        thread = self._threads.get(thread_id) if thread_id is not None else main
        return None if thread is None else self._threads.place(thread, thread.model_call_failed(failed))

    def _tokens_used(self, params: Any) -> Steps:
        updated, where = read(TokenUsageParams, params), read(InThread, params)
        if updated is None or where is None or where.thread_id is None:
            return None
        thread = self._threads.get(where.thread_id)
        return self._threads.place(thread, thread.tokens_used(updated.token_usage))

    def _plan_updated(self, params: Any) -> Steps:
        plan, where = read(PlanParams, params), read(InThread, params)
        if plan is None or where is None or where.thread_id is None:
            return None
        thread = self._threads.get(where.thread_id)
        return self._threads.place(thread, thread.plan_updated(plan))

    def _request_resolved(self, params: Any) -> Steps:
        raw_id = params.get("requestId") if isinstance(params, dict) else None
        return None if raw_id is None else self._approvals.resolved(raw_id)
