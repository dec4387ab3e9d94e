"""`codex exec --json`: one prompt, one turn, no streaming and no approvals. JSON lines with a dotted `type`.

It does not report where model calls begin (so a step opens with the first message or thought after a tool call), diffs,
failed patches and unknown tools (only prose on stderr), compaction, or error codes.
"""

from collections.abc import Callable, Iterable
from typing import Any

import msgspec
from msgspec.structs import replace

from agent_mux.sdk.codec import STDOUT, AnyAction, CodecContext, CodecOutput, Exit, Source
from agent_mux.sdk.facts import (
    Fact,
    Ignored,
    LogLine,
    Note,
    RecoverableError,
    RunCost,
    SessionKnown,
    StepBegin,
    ToolDone,
    ToolReady,
    TurnBegin,
    TurnDone,
    TurnFailed,
    Unknown,
    WholeText,
    WholeThinking,
)
from agent_mux.sdk.native_json import load_object
from agent_mux_adapters._dialects.actions import one_shot_action
from agent_mux_adapters._dialects.tolerant import mapping
from agent_mux_adapters.codex.held_message import HeldMessage
from agent_mux_adapters.codex.items import (
    EXEC_ITEMS,
    MessageItem,
    PlanItem,
    ReasoningItem,
    WarningItem,
    read_item,
)
from agent_mux_adapters.codex.outcome import (
    error_code_of,
    failure_of,
    incomplete_answer,
    parse_structured_output,
    read_retry,
)
from agent_mux_adapters.codex.subagents import CodexSubagents, CollabCall
from agent_mux_adapters.codex.tools import PLAN_TOOL, CodexToolCall, WebSearchCall
from agent_mux_adapters.codex.usage import NO_TOKENS, TokenCounter, cost_of, sum_of, usage_of
from agent_mux_adapters.codex.wire import CodexTokens, read

_TURN_LINES = {"turn.started": None, "turn.completed": "usage", "turn.failed": "error"}
"""The lines about turns, each with a field that distinguishes it from lines of other agents, if it has one."""


class _Usage(msgspec.Struct, frozen=True, gc=False):
    input_tokens: int
    output_tokens: int
    cached_input_tokens: int = 0
    cache_write_input_tokens: int = 0
    reasoning_output_tokens: int = 0


class _ErrorMessage(msgspec.Struct, frozen=True, gc=False):
    message: str


class CodexExecCodec:
    """Codec of `codex exec --json`, which reads its output and sends nothing."""

    def __init__(self, context: CodecContext) -> None:
        self._context = context
        is_continued = context.session_id is not None or context.fork_session_id is not None
        # The counter of a thread that existed before does not begin at 0, and exec does not report where.
        self._counter = TokenCounter(None if is_continued else NO_TOKENS)
        self._spent = NO_TOKENS
        self._subagents = CodexSubagents()
        self._open_calls: set[str] = set()
        self._plan_versions: dict[str, int] = {}
        self._last_message = ""
        self._held = HeldMessage()
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

    def start(self) -> Iterable[CodecOutput]:
        """Return nothing: the prompt is part of the spawn."""
        return ()

    def receive(self, line: bytes, source: Source) -> Iterable[CodecOutput]:
        """Return the steps for one line."""
        if source is not STDOUT:
            text = line.decode("utf-8", "replace")
            return (LogLine(text, "stderr") if source is Source.STDERR else Ignored("stdin", "our own prompt"),)
        return self._held.pass_on(self._read(line))

    def _read(self, line: bytes) -> tuple[Fact, ...]:
        message = load_object(line)
        if message is None:
            return (LogLine(line.decode("utf-8", "replace")),)
        kind = message.get("type")
        handler = self._handlers.get(kind) if isinstance(kind, str) else None
        facts = handler(message) if handler is not None else None
        if facts is None:
            return (Unknown(_kind_of(message), line.decode("utf-8", "replace")),)
        return facts

    def request(self, action: AnyAction) -> Iterable[CodecOutput]:
        """Perform an action of the consumer: only signals are possible."""
        return one_shot_action(action, "codex exec")

    def finish(self, exit: Exit) -> Iterable[CodecOutput]:  # noqa: A002, ARG002  # as in the contract
        """Return what was held back: the end of a message, and an error that no `turn.failed` repeated."""
        message, self._last_error = self._last_error, ""
        trouble = (RecoverableError(error_code_of(message), message),) if message else ()
        return *self._held.release(), *trouble

    # -- lines about the thread and its turn

    def _thread_started(self, message: dict[str, Any]) -> tuple[Fact, ...] | None:
        thread_id = message.get("thread_id")
        if not isinstance(thread_id, str):
            return None
        resumed, forked_from = self._context.session_id is not None, self._context.fork_session_id
        return (SessionKnown(thread_id, resumed=resumed, forked_from=forked_from),)

    def _turn_started(self, _: dict[str, Any]) -> tuple[Fact, ...]:
        self._retries, self._tools_ran, self._last_message = 0, False, ""
        return TurnBegin(), StepBegin()

    def _turn_completed(self, message: dict[str, Any]) -> tuple[Fact, ...] | None:
        counted = read(_Usage, message.get("usage"))
        if counted is None:
            return None
        total = CodexTokens(
            input_tokens=counted.input_tokens,
            cached_input_tokens=counted.cached_input_tokens,
            cache_write_input_tokens=counted.cache_write_input_tokens,
            output_tokens=counted.output_tokens,
            reasoning_output_tokens=counted.reasoning_output_tokens,
        )
        tokens = self._counter.advance(total, None)
        self._close_turn()
        output = parse_structured_output(self._last_message, self._context.output_schema)
        if tokens is None:
            why = "codex exec counts tokens over the whole session: the tokens of this turn are unknown"
            return Note(why), TurnDone(structured_output=output)
        self._spent = sum_of(self._spent, tokens)
        usage = usage_of(tokens, of_one_call=False)
        return (*((usage,) if usage else ()), RunCost(cost_of(self._spent)), TurnDone(cost_of(tokens), output))

    def _turn_failed(self, message: dict[str, Any]) -> tuple[Fact, ...] | None:
        error = read(_ErrorMessage, message.get("error"))
        if error is None:
            return None
        self._close_turn()
        return (incomplete_answer(error.message) or TurnFailed(failure_of(error.message)),)

    def _error(self, message: dict[str, Any]) -> tuple[Fact, ...] | None:
        error = read(_ErrorMessage, message)
        if error is None:
            return None
        retry = read_retry(error.message, None, None, nth=self._retries + 1)
        if retry is not None:
            self._retries += 1
            return retry
        self._last_error = error.message
        return (Ignored("error", "turn.failed repeats it"),)

    def _close_turn(self) -> None:
        self._last_error = ""
        self._open_calls.clear()

    # -- items

    def _item_started(self, message: dict[str, Any]) -> tuple[Fact, ...] | None:
        match _item_of(message):
            case CodexToolCall() as call:
                self._open_calls.add(call.id)
                return _running(call)
            case CollabCall() as call:
                return self._subagents.call_started(call)
            case PlanItem() as plan:
                return self._plan_facts(plan)
            case None:
                return None
        return (Ignored(_kind_of(message), "the completed item has all of it"),)

    def _item_updated(self, message: dict[str, Any]) -> tuple[Fact, ...] | None:
        match _item_of(message):
            case PlanItem() as plan:
                return self._plan_facts(plan)
            case None:
                return None
        return (Ignored(_kind_of(message), "the completed item has all of it"),)

    def _item_completed(self, message: dict[str, Any]) -> tuple[Fact, ...] | None:  # noqa: PLR0911  # a table
        match _item_of(message):
            case MessageItem(text=text):
                self._last_message = text
                return *self._step_after_tools(), WholeText(text)
            case ReasoningItem(text=text):
                return *self._step_after_tools(), WholeThinking(text)
            case CodexToolCall() as call:
                self._tools_ran |= not isinstance(call, WebSearchCall)  # a search is part of the model call
                begun = () if call.id in self._open_calls else _running(call)
                self._open_calls.discard(call.id)
                return begun + call.end_facts()
            case CollabCall() as call:
                self._tools_ran = True
                return self._subagents.call_completed(call)
            case WarningItem(message=text):
                return (Note(text, "warn"),)
            case PlanItem():
                return (Ignored(_kind_of(message), "repeats the last version of the plan"),)
        return None

    def _plan_facts(self, plan: PlanItem) -> tuple[Fact, ...]:
        """Return a tool call for this version of the plan: the model made one call for each version."""
        version = self._plan_versions[plan.id] = self._plan_versions.get(plan.id, 0) + 1
        call_id = plan.id if version == 1 else f"{plan.id}:{version}"
        self._tools_ran = True
        ready = ToolReady(call_id, PLAN_TOOL, {"plan": msgspec.to_builtins(plan.items)})
        return ready, ToolDone(call_id, name=PLAN_TOOL)

    def _step_after_tools(self) -> tuple[Fact, ...]:
        """Begin a step if tools ran: a message or thought after them is of another model call.

        A tool call after another one does not begin a step, because one model call can make several.
        """
        ran, self._tools_ran = self._tools_ran, False
        return (StepBegin(),) if ran else ()


def _item_of(message: dict[str, Any]) -> Any:
    item = message.get("item")
    return read_item(EXEC_ITEMS, item) if isinstance(item, dict) else None


def _kind_of(message: dict[str, Any]) -> str:
    kind, item = message.get("type"), message.get("item")
    inner = item.get("type") if isinstance(item, dict) else None
    return f"{kind}:{inner}" if inner is not None else str(kind)


def _running(call: CodexToolCall) -> tuple[Fact, ...]:
    """Return the start of a call. Its command is permitted: `codex exec` runs commands without approvals."""
    begun = call.begin_facts()
    return tuple(replace(f, permitted=True) if isinstance(f, ToolReady) and f.shell is not None else f for f in begun)


def is_exec_line(value: Any) -> bool:
    """Return whether only `codex exec --json` prints this line."""
    line = mapping(value)
    kind, item = line.get("type"), line.get("item")
    if kind == "thread.started":
        return isinstance(line.get("thread_id"), str)
    if kind in ("item.started", "item.updated", "item.completed"):
        return isinstance(item, dict) and item.get("type") in list(EXEC_ITEMS)
    return isinstance(kind, str) and kind in _TURN_LINES and (_TURN_LINES[kind] or "type") in line
