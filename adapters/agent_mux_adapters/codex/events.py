"""The notifications of the app-server that tell what a run does."""

from collections.abc import Callable, Iterable
from typing import Any

from agent_mux.adapter import CodecContext, Step
from agent_mux.facts import AgentdocRead, Fact, Ignored, SessionKnown, Unknown
from agent_mux_adapters.codex.calls import Call
from agent_mux_adapters.codex.conversation import Conversation
from agent_mux_adapters.codex.delegation import UNNAMED, Activity, CollabCall
from agent_mux_adapters.codex.items import SILENT_ITEMS, THREAD_ITEMS, Compaction, Message, Reasoning, load
from agent_mux_adapters.codex.notices import notice
from agent_mux_adapters.codex.outcome import closing_of, cost_of_run, cost_of_turn, failure_inside
from agent_mux_adapters.codex.requests import Requests
from agent_mux_adapters.codex.thread import Thread
from agent_mux_adapters.codex.threads import Threads
from agent_mux_adapters.codex.wire import (
    DELTA_METHODS,
    DeltaParams,
    ErrorParams,
    InThread,
    ItemParams,
    PlanParams,
    ThreadStarted,
    TokenUsageParams,
    Turn,
    TurnParams,
    as_text,
    read,
)

Told = tuple[Step, ...] | None
_AT_REST = ("idle", "systemError", "notLoaded")


class Events:
    """Turns notifications into facts, and tells the conversation what it waits for."""

    def __init__(self, context: CodecContext, threads: Threads, requests: Requests, conversation: Conversation) -> None:
        self._schema = context.output_schema
        self._threads = threads
        self._requests = requests
        self._conversation = conversation
        self._handlers: dict[str, Callable[[Any], Told]] = {
            "error": self._failed,
            "item/completed": self._item_completed,
            "item/started": self._item_started,
            "serverRequest/resolved": self._resolved,
            "thread/closed": self._at_rest,
            "thread/started": self._thread_started,
            "thread/status/changed": self._at_rest,
            "thread/tokenUsage/updated": self._used,
            "turn/completed": self._turn_completed,
            "turn/plan/updated": self._planned,
            "turn/started": self._turn_started,
        }

    def delta(self, method: str, params: DeltaParams) -> tuple[Fact, ...]:
        """A fragment: the hot path."""
        thread = self._threads.main
        if thread is not None and params.thread == thread.id:
            return thread.delta(method, params)
        thread = self._threads.get(params.thread)
        return self._threads.tell(thread, thread.delta(method, params))

    def told(self, method: str, params: Any) -> Told:
        """A notification. None when it is not known, or does not have its known shape."""
        handler = self._handlers.get(method)
        if handler is not None:
            return handler(params)
        if method in DELTA_METHODS:
            delta = read(DeltaParams, params)
            return None if delta is None else self.delta(method, delta)
        fact = notice(method, params)
        return None if fact is None else (fact,)

    def documents(self, paths: Iterable[str]) -> tuple[Fact, ...]:
        """The agent documents (AGENTS.md) that Codex says it read."""
        return tuple(AgentdocRead(path) for path in paths)

    # -- threads and turns

    def _thread_started(self, params: Any) -> Told:
        started = read(ThreadStarted, params)
        if started is None:
            return None
        told = Ignored("thread/started", "told by the answer to our request, or by the item that delegates")
        if started.thread.parent_thread_id is not None or self._threads.main is not None:
            return (told,)
        thread = started.thread
        self._threads.get(thread.id)
        return (SessionKnown(thread.id, forked_from=thread.forked_from_id, model=thread.model),)

    def _at_rest(self, params: Any) -> Told:
        where = read(InThread, params)
        if where is None or where.thread_id is None:
            return None
        status = params.get("status")
        resting = not isinstance(status, dict) or status.get("type") in _AT_REST
        main = self._threads.main
        inside = main is not None and where.thread_id != main.id
        effects = self._conversation.inside(where.thread_id, busy=False) if resting and inside else ()
        return Ignored("thread/status/changed", "turns and requests tell it"), *effects

    def _turn_started(self, params: Any) -> Told:
        started = read(TurnParams, params)
        if started is None:
            return None
        thread = self._threads.get(started.thread_id)
        facts = self._threads.tell(thread, thread.turn_started(started.turn))
        if thread.is_inside:
            return *facts, *self._conversation.inside(thread.id, busy=True)
        return *facts, *self._conversation.turn_started(started.turn.id)

    def _turn_completed(self, params: Any) -> Told:
        completed = read(TurnParams, params)
        if completed is None:
            return None
        thread, turn = self._threads.get(completed.thread_id), completed.turn
        over = *self._requests.turn_over(thread.id), *thread.turn_over()
        facts = self._threads.tell(thread, over) if over else ()
        if thread.is_inside:
            return *facts, *self._reported(thread, turn), *self._conversation.inside(thread.id, busy=False)
        spent = (each.spent for each in self._threads.all())
        closing = closing_of(thread, turn, spent, self._schema)
        if closing is None:
            closing = (Unknown("turn/completed", as_text(params)),)
        return *facts, *closing, *self._conversation.turn_over(turn.id)

    def _reported(self, thread: Thread, turn: Turn) -> tuple[Fact, ...]:
        """A sub-agent's turn is its task."""
        introduced = self._threads.introduce(thread.id, UNNAMED, "")
        failure, cost = failure_inside(thread, turn), cost_of_turn(thread)
        done = self._threads.delegation.report(thread.id, thread.answer, failure, cost)
        run = cost_of_run(each.spent for each in self._threads.all())
        return (*introduced, *run, *done) or (Ignored("turn/completed", "the sub-agent has reported before"),)

    # -- items

    def _item_started(self, params: Any) -> Told:
        told = read(ItemParams, params)
        if told is None:
            return None
        thread = self._threads.get(told.thread_id)
        facts = self._silent(thread, told.item, "item/started") or self._started(thread, told.item)
        return None if facts is None else self._threads.tell(thread, facts)

    def _started(self, thread: Thread, raw: dict[str, Any]) -> tuple[Fact, ...] | None:
        match load(THREAD_ITEMS, raw):
            case Call() as call:
                return thread.call_started(call)
            case Message() | Reasoning() as item:
                return thread.speech_started(item) or (Ignored("item/started", "what it says follows"),)
            case Compaction() as item:
                return thread.compaction_started(item)
            case CollabCall() as call:
                return *thread.begin_step(), *self._threads.delegation.call_started(call)
            case Activity() as item:
                return self._activity(thread, item)
        return None

    def _item_completed(self, params: Any) -> Told:
        told = read(ItemParams, params)
        if told is None:
            return None
        thread = self._threads.get(told.thread_id)
        facts = self._silent(thread, told.item, "item/completed") or self._completed(thread, told.item)
        return None if facts is None else self._threads.tell(thread, facts)

    def _completed(self, thread: Thread, raw: dict[str, Any]) -> tuple[Fact, ...] | None:  # noqa: PLR0911  # a table
        match load(THREAD_ITEMS, raw):
            case Call() as call:
                declined = call.status == "declined"
                return *self._requests.item_completed(call.id, declined=declined), *thread.call_completed(call)
            case Message() as item:
                return thread.said(item)
            case Reasoning() as item:
                return thread.thought(item)
            case Compaction() as item:
                return thread.compaction_completed(item)
            case CollabCall() as call:
                return *self._threads.delegation.call_completed(call), *self._threads.release_known()
            case Activity():
                return (Ignored("item/completed:subAgentActivity", "told when it started"),)
        return None

    def _silent(self, thread: Thread, raw: dict[str, Any], method: str) -> tuple[Fact, ...] | None:
        kind = raw.get("type")
        if not isinstance(kind, str) or kind not in SILENT_ITEMS:
            return None
        facts = thread.prompted() if kind == "userMessage" and method == "item/started" else ()
        return *facts, Ignored(f"{method}:{kind}", SILENT_ITEMS[kind])

    def _activity(self, thread: Thread, item: Activity) -> tuple[Fact, ...]:
        kind, agent_id = f"item/started:subAgentActivity:{item.kind}", item.agent_thread_id
        match item.kind:
            case "started":
                return *thread.begin_step(), *self._threads.introduce(agent_id, item.agent_path, "")
            case "completed":
                inner = self._threads.get(agent_id)
                done = self._threads.delegation.report(agent_id, inner.answer, cost=cost_of_turn(inner))
                return done or (Ignored(kind, "it has reported before"),)
        return (Ignored(kind, "its own thread tells it"),)

    # -- the rest

    def _failed(self, params: Any) -> Told:
        told, where = read(ErrorParams, params), read(InThread, params)
        main = self._threads.main
        thread_id = where.thread_id if where is not None else None
        if told is None or (thread_id is None and main is None):
            return None
        thread = self._threads.get(thread_id) if thread_id is not None else main
        return None if thread is None else self._threads.tell(thread, thread.failed(told))

    def _used(self, params: Any) -> Told:
        told, where = read(TokenUsageParams, params), read(InThread, params)
        if told is None or where is None or where.thread_id is None:
            return None
        thread = self._threads.get(where.thread_id)
        return self._threads.tell(thread, thread.used(told.token_usage))

    def _planned(self, params: Any) -> Told:
        told, where = read(PlanParams, params), read(InThread, params)
        if told is None or where is None or where.thread_id is None:
            return None
        thread = self._threads.get(where.thread_id)
        return self._threads.tell(thread, thread.planned(told))

    def _resolved(self, params: Any) -> Told:
        raw_id = params.get("requestId") if isinstance(params, dict) else None
        return None if raw_id is None else self._requests.resolved(raw_id)
