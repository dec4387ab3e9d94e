"""`codex exec --json`: one prompt, one turn, nothing streamed, nobody to ask. JSON lines with a dotted `type`.

What it does not tell: where model calls begin (a step is opened where the model speaks after a tool), diffs, failed
patches and unknown tools (prose on stderr only), compaction, error codes.
"""

from collections.abc import Callable, Iterable
from typing import Any

import msgspec
from msgspec.structs import replace

from agent_mux.actions import AnyAction
from agent_mux.adapter import STDOUT, CodecContext, Exit, Source, Step
from agent_mux.facts import (
    Fact,
    Ignored,
    LogLine,
    Note,
    RunCost,
    SessionKnown,
    StepBegin,
    Text,
    Thinking,
    ToolDone,
    ToolReady,
    Trouble,
    TurnBegin,
    TurnDone,
    TurnFailed,
    Unknown,
)
from agent_mux.native_json import load_object
from agent_mux_adapters._dialects.actions import one_shot_action
from agent_mux_adapters.codex.calls import Call, WebSearch
from agent_mux_adapters.codex.delegation import CollabCall, Delegation
from agent_mux_adapters.codex.failures import code_of, failure_of, retrying
from agent_mux_adapters.codex.items import EXEC_ITEMS, Message, Reasoning, TodoList, Warned, load
from agent_mux_adapters.codex.meter import Meter, cost_of, sum_of, usage_of
from agent_mux_adapters.codex.outcome import parsed_answer
from agent_mux_adapters.codex.wire import Tokens, read

PLAN_TOOL = "update_plan"


class _Usage(msgspec.Struct, frozen=True, gc=False):
    input_tokens: int
    output_tokens: int
    cached_input_tokens: int = 0
    cache_write_input_tokens: int = 0
    reasoning_output_tokens: int = 0


class _Said(msgspec.Struct, frozen=True, gc=False):
    message: str


class ExecCodec:
    """Reads `codex exec --json`."""

    def __init__(self, context: CodecContext) -> None:
        self._context = context
        self._continues = context.session_id is not None or context.fork_session_id is not None
        # A thread that existed before has tokens on its counter, and exec does not say how many.
        self._meter = Meter(None if self._continues else Tokens())
        self._spent = Tokens()
        self._delegation = Delegation()
        self._open: set[str] = set()
        self._plans: dict[str, int] = {}
        self._answer = ""
        self._retries = 0
        self._tools_ran = False
        self._last_error = ""
        self._handlers: dict[str, Callable[[dict[str, Any]], tuple[Fact, ...] | None]] = {
            "thread.started": self._thread_started,
            "turn.started": self._turn_started,
            "turn.completed": self._turn_completed,
            "turn.failed": self._turn_failed,
            "item.started": self._item_started,
            "item.updated": self._item_updated,
            "item.completed": self._item_completed,
            "error": self._error,
        }

    def start(self) -> Iterable[Step]:
        """Nothing: the prompt is already on its way."""
        return ()

    def receive(self, line: bytes, source: Source) -> Iterable[Step]:
        """One line."""
        if source is not STDOUT:
            text = line.decode("utf-8", "replace")
            return (LogLine(text, "stderr") if source is Source.STDERR else Ignored("stdin", "our own prompt"),)
        message = load_object(line)
        if message is None:
            return (LogLine(line.decode("utf-8", "replace")),)
        kind = message.get("type")
        handler = self._handlers.get(kind) if isinstance(kind, str) else None
        facts = handler(message) if handler is not None else None
        if facts is None:
            return (Unknown(_kind_of(message), line.decode("utf-8", "replace")),)
        return facts

    def request(self, action: AnyAction) -> Iterable[Step]:
        """It can be signalled, and that is all."""
        return one_shot_action(action, "codex exec")

    def finish(self, exit: Exit) -> Iterable[Step]:  # noqa: A002, ARG002  # as in the contract
        """An error that no `turn.failed` repeated was the last word."""
        message, self._last_error = self._last_error, ""
        return (Trouble(code_of(message), message),) if message else ()

    # -- the lines

    def _thread_started(self, message: dict[str, Any]) -> tuple[Fact, ...] | None:
        thread_id = message.get("thread_id")
        if not isinstance(thread_id, str):
            return None
        resumed, forked_from = self._context.session_id is not None, self._context.fork_session_id
        return (SessionKnown(thread_id, resumed=resumed, forked_from=forked_from),)

    def _turn_started(self, _: dict[str, Any]) -> tuple[Fact, ...]:
        self._retries, self._tools_ran, self._answer = 0, False, ""
        return TurnBegin(), StepBegin()

    def _turn_completed(self, message: dict[str, Any]) -> tuple[Fact, ...] | None:
        counted = read(_Usage, message.get("usage"))
        if counted is None:
            return None
        total = Tokens(
            input_tokens=counted.input_tokens,
            cached_input_tokens=counted.cached_input_tokens,
            cache_write_input_tokens=counted.cache_write_input_tokens,
            output_tokens=counted.output_tokens,
            reasoning_output_tokens=counted.reasoning_output_tokens,
        )
        tokens = self._meter.advance(total, None)
        self._close_turn()
        answer = parsed_answer(self._answer, self._context.output_schema)
        if tokens is None:
            why = "codex exec counts tokens over the whole session: what this turn used is not known"
            return Note(why), TurnDone(structured_output=answer)
        self._spent = sum_of(self._spent, tokens)
        usage = usage_of(tokens, of_one_call=False)
        return (*((usage,) if usage else ()), RunCost(cost_of(self._spent)), TurnDone(cost_of(tokens), answer))

    def _turn_failed(self, message: dict[str, Any]) -> tuple[Fact, ...] | None:
        error = read(_Said, message.get("error"))
        if error is None:
            return None
        self._close_turn()
        return (TurnFailed(failure_of(error.message)),)

    def _error(self, message: dict[str, Any]) -> tuple[Fact, ...] | None:
        error = read(_Said, message)
        if error is None:
            return None
        retry = retrying(error.message, None, None, nth=self._retries + 1)
        if retry is not None:
            self._retries += 1
            return retry
        self._last_error = error.message
        return (Ignored("error", "turn.failed repeats it"),)

    def _close_turn(self) -> None:
        self._last_error = ""
        self._open.clear()

    # -- items

    def _item_started(self, message: dict[str, Any]) -> tuple[Fact, ...] | None:
        match _item_of(message):
            case Call() as call:
                self._open.add(call.id)
                return _running(call)
            case CollabCall() as call:
                return self._delegation.call_started(call)
            case TodoList() as plan:
                return self._planned(plan)
            case None:
                return None
        return (Ignored(_kind_of(message), "told whole when it is completed"),)

    def _item_updated(self, message: dict[str, Any]) -> tuple[Fact, ...] | None:
        match _item_of(message):
            case TodoList() as plan:
                return self._planned(plan)
            case None:
                return None
        return (Ignored(_kind_of(message), "told whole when it is completed"),)

    def _item_completed(self, message: dict[str, Any]) -> tuple[Fact, ...] | None:  # noqa: PLR0911  # a table
        match _item_of(message):
            case Message(text=text):
                self._answer = text
                return *self._step_after_tools(), Text(text)
            case Reasoning(text=text):
                return *self._step_after_tools(), Thinking(text)
            case Call() as call:
                self._tools_ran |= not isinstance(call, WebSearch)  # which happens inside the model call
                begun = () if call.id in self._open else _running(call)
                self._open.discard(call.id)
                return begun + call.ended()
            case CollabCall() as call:
                self._tools_ran = True
                return self._delegation.call_completed(call)
            case Warned(message=text):
                return (Note(text, "warn"),)
            case TodoList():
                return (Ignored(_kind_of(message), "the plan as it stood at the end of the turn"),)
        return None

    def _planned(self, plan: TodoList) -> tuple[Fact, ...]:
        """Each version of the plan was one call of the tool, over as soon as it was made."""
        version = self._plans[plan.id] = self._plans.get(plan.id, 0) + 1
        call_id = plan.id if version == 1 else f"{plan.id}:{version}"
        self._tools_ran = True
        ready = ToolReady(call_id, PLAN_TOOL, {"plan": msgspec.to_builtins(plan.items)})
        return ready, ToolDone(call_id, name=PLAN_TOOL)

    def _step_after_tools(self) -> tuple[Fact, ...]:
        """The model speaks after a tool returned: that is another model call. Tool after tool may still be one."""
        ran, self._tools_ran = self._tools_ran, False
        return (StepBegin(),) if ran else ()


def _item_of(message: dict[str, Any]) -> Any:
    item = message.get("item")
    return load(EXEC_ITEMS, item) if isinstance(item, dict) else None


def _kind_of(message: dict[str, Any]) -> str:
    kind, item = message.get("type"), message.get("item")
    inner = item.get("type") if isinstance(item, dict) else None
    return f"{kind}:{inner}" if inner is not None else str(kind)


def _running(call: Call) -> tuple[Fact, ...]:
    """A call as it begins: `codex exec` asks nobody, so a command runs already."""
    begun = call.begun()
    return tuple(replace(f, permitted=True) if isinstance(f, ToolReady) and f.shell is not None else f for f in begun)
