"""Turns of older rollouts: prompts, messages and thoughts are events, tool calls are the model's response items.

Written up to 0.147 (`codex exec`) and 0.150 (app-server). Some of these releases also stored an event at the end of a
tool call; the call and its result then follow as response items, which repeat it.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from msgspec.structs import replace

from agent_mux.sdk import facts
from agent_mux.sdk.sessions import PromptSent, SessionFact
from agent_mux_adapters._dialects.tolerant import text
from agent_mux_adapters.codex.items import MessageItem
from agent_mux_adapters.codex.stored_calls import StoredOutput, complete, read_call, read_output
from agent_mux_adapters.codex.stored_items import TOOL_EVENTS, read_tool_event
from agent_mux_adapters.codex.threads import CodexThread
from agent_mux_adapters.codex.tools import CodexToolCall, CommandCall, PatchCall

CALLS = frozenset({"function_call", "custom_tool_call", "local_shell_call", "web_search_call"})
"""Response items that call a tool."""
_OUTPUTS = frozenset({"function_call_output", "custom_tool_call_output"})


class OlderTurn:
    """Reads the events and response items of a turn without `item_completed` events."""

    def __init__(self, thread: CodexThread, next_step: Callable[[], Iterable[SessionFact]]) -> None:
        """`next_step` returns the facts of a new step if the model's last answer was complete."""
        self._thread = thread
        self._next_step = next_step
        self._calls: dict[str, CodexToolCall] = {}
        """The calls that have no result yet."""
        self._waiting: dict[str, Mapping[str, Any]] = {}
        """Calls that may have been denied: response items without a result, in a turn of items."""
        self._done: set[str] = set()
        """The ids of the completed calls."""
        self._queries: set[str] = set()
        """The web searches, which have no id in response items."""
        self._last_text = ""
        self.prompt: str | None = None
        """The prompt, until the model produced something."""
        self.may_be_over = False
        """Whether the last output is a message, so that the turn may be over."""
        self._events: Mapping[str, Callable[[Mapping[str, Any]], Iterable[SessionFact]]] = {
            "agent_message": lambda event: self.message(text(event.get("message"))),
            "agent_reasoning": lambda event: self._thought(text(event.get("text"))),
            **dict.fromkeys(TOOL_EVENTS, self._tool_event),
        }

    def prompted(self, prompt: str, turn_id: str) -> Iterable[SessionFact]:
        """Begin a turn, or add a prompt to the current one."""
        self._queries.clear()
        self.prompt, self.may_be_over, self._last_text = prompt, False, ""
        return (PromptSent(prompt, turn_id),)

    def ended(self) -> None:
        """Forget the calls that the end of the turn cut off."""
        self._calls.clear()
        self._waiting.clear()
        self._thread.calls.clear()
        self.prompt, self.may_be_over = None, False

    def event(self, event: Mapping[str, Any]) -> Iterable[SessionFact]:
        """Convert an `event_msg` line to facts; none for a type that is not known."""
        reader = self._events.get(text(event.get("type")))
        return reader(event) if reader is not None else ()

    def response_item(self, item: Mapping[str, Any]) -> Iterable[SessionFact]:
        """Read an output item of the model, or the result of one of its calls."""
        kind = text(item.get("type"))
        if kind in CALLS:
            return self._called(item)
        if kind in _OUTPUTS:
            return self._result(item)
        if kind == "message" and item.get("role") == "assistant":
            self.may_be_over = True
        return ()

    def denied(self, item: Mapping[str, Any]) -> Iterable[SessionFact]:
        """Return a command or patch that was not carried out: it has no `item_completed` event.

        The result of a command that still runs precedes its event, so only a text without a frame counts.
        """
        kind = text(item.get("type"))
        if kind in CALLS:
            self._waiting[text(item.get("call_id"))] = item
            return ()
        called = self._waiting.pop(text(item.get("call_id")), None) if kind in _OUTPUTS else None
        if called is None or text(item.get("call_id")) in self._done or read_output(item.get("output")).is_framed:
            return ()
        call = read_call(called, self._thread.cwd)
        if not isinstance(call, CommandCall | PatchCall):
            return ()
        self._calls[call.id] = call
        return self._result(item)

    def message(self, message: str) -> Iterable[SessionFact]:
        """Return a message of the model, unless the last line held the same one."""
        if not message or message == self._last_text:
            return ()
        self._produced()
        self._last_text = message
        return (*self._next_step(), *self._thread.message_completed(MessageItem("", message)))

    def completed(self, call: CodexToolCall) -> Iterable[SessionFact]:
        """Return a completed call, or its end if it began before. A call ends once."""
        if call.id in self._done:
            return ()
        if call.id:  # web searches may have none
            self._done.add(call.id)
        self._calls.pop(call.id, None)
        self._produced()
        emitted = self._thread.call_completed(call)
        # A web search reports its query again when it ends.
        ready = [fact for fact in emitted if isinstance(fact, facts.ToolReady)]
        return tuple(fact for fact in emitted if not any(fact is again for again in ready[1:]))

    def _produced(self) -> None:
        self.prompt, self.may_be_over, self._last_text = None, False, ""

    def _thought(self, thought: str) -> Iterable[SessionFact]:
        self._produced()
        return (*self._next_step(), *self._thread.begin_step(), facts.WholeThinking(thought))

    def _tool_event(self, event: Mapping[str, Any]) -> Iterable[SessionFact]:
        call = read_tool_event(event)
        if not isinstance(call, CodexToolCall):
            return ()
        self._queries.add(text(event.get("query")))
        return self.completed(call)

    def _called(self, item: Mapping[str, Any]) -> Iterable[SessionFact]:
        call = read_call(item, self._thread.cwd)
        if item.get("type") == "web_search_call":
            query = text(getattr(call, "query", ""))
            if query in self._queries:
                return ()
            self._queries.add(query)
            return (*self._next_step(), *self.completed(call))
        if call.id in self._done or call.id in self._calls:
            return ()
        self._produced()
        self._calls[call.id] = call
        return (*self._next_step(), *self._thread.call_started(call))

    def _result(self, item: Mapping[str, Any]) -> Iterable[SessionFact]:
        call = self._calls.get(text(item.get("call_id")))
        if call is None:
            return ()
        ended = self.completed(complete(call, item.get("output")))
        return _with_reason(ended, read_output(item.get("output"))) if isinstance(call, PatchCall) else ended


def _with_reason(ended: Iterable[SessionFact], output: StoredOutput) -> Iterable[SessionFact]:
    """Replace the error of a failed patch by the text that the model got."""
    for fact in ended:
        failed = isinstance(fact, facts.ToolDone) and fact.error is not None and output.text
        yield replace(fact, error=output.text) if failed else fact
