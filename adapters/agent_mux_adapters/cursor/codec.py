"""The codec of cursor-agent's `--print --output-format stream-json`: one prompt, one turn, no requests.

Written from the documented format and checked against a third party's recordings of 2026.01.28, because the CLI cannot
be run without an account. The format lacks streamed tool inputs, the output of running commands, and cost.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from agent_mux.sdk import facts
from agent_mux.sdk.codec import STDOUT, AnyAction, CodecContext, CodecOutput, Exit, Source
from agent_mux.sdk.native_json import load_object
from agent_mux_adapters._dialects.actions import one_shot_action
from agent_mux_adapters._dialects.tolerant import (
    WrongShapeError,
    kind_of,
    mapping,
    need_mapping,
    need_text,
    rows,
    text,
    whole,
)
from agent_mux_adapters.cursor.approvals import CursorQueries
from agent_mux_adapters.cursor.messages import (
    FRAGMENT_STARTS,
    CursorFragment,
    CursorMessages,
    CursorSteps,
    decode_fragment,
)
from agent_mux_adapters.cursor.outcome import closing_fact, failure_in_output, usage_of
from agent_mux_adapters.cursor.tool_calls import CursorToolCalls

STREAM_JSON = "stream-json"
SIGINT = 2
REMEMBERED = 20  # the number of plain text lines that are searched for the reason of a failure
AFTER_REPETITION = frozenset({"retry", "interaction_query", "connection", "tool_call"})
"""Types of lines before which the CLI repeats the streamed text."""


Facts = tuple[facts.Fact, ...]


class CursorCodec:
    """The codec of one run. See `agent_mux.sdk.codec.Codec`."""

    def __init__(self, context: CodecContext) -> None:
        self._context = context
        self._queries = CursorQueries()
        self._calls = CursorToolCalls(self._queries.denied, permitted=context.approval_mode == "yolo")
        self._messages = CursorMessages()
        self._steps = CursorSteps()
        self._session_id = ""
        self._plain_lines: list[str] = []
        """The last plain text lines of stdout and stderr."""
        self._closed = False
        """Whether the last turn has its closing message."""
        self._readers: Mapping[str, Callable[[Mapping[str, Any]], Facts]] = {
            "system/init": self._init,
            "system/background_shell_timeout": self._notice,
            "system/task_notification": self._notice,
            "user": self._user,
            "thinking/delta": self._thinking,
            "thinking/completed": self._thought,
            "assistant": self._assistant,
            "tool_call/started": self._started,
            "tool_call/completed": self._completed,
            "interaction_query/request": self._queries.read_request,
            "interaction_query/response": self._queries.read_response,
            "connection/reconnecting": self._reconnecting,
            "connection/reconnected": self._retry_over,
            "retry/starting": self._retry,
            "retry/resuming": self._retry_over,
            "result": self._result,
        }

    # -- the four methods of a codec

    def start(self) -> tuple[CodecOutput, ...]:
        """Return nothing: the runner sends the prompt on stdin."""
        return ()

    def receive(self, line: bytes, source: Source) -> tuple[CodecOutput, ...]:
        """Return the steps of one line."""
        if source is not STDOUT:
            return self._read_other(line, source)
        if line.startswith(FRAGMENT_STARTS) and not self._messages.holds:
            try:
                fragment = decode_fragment(line)
            except (msgspec.DecodeError, ValueError, RecursionError):
                return self._read(line)
            return self._fragment(fragment) or self._read(line)
        return self._read(line)

    def request(self, action: AnyAction) -> Iterable[CodecOutput]:
        """Signal the process for an interruption; refuse other actions."""
        return one_shot_action(action, "cursor-agent --print")

    def finish(self, exit: Exit) -> tuple[CodecOutput, ...]:  # noqa: A002  # as in the contract
        """Return held text, and a failure if the last plain text lines state why there is no closing message."""
        held = self._messages.release(repeated=False) if self._messages.holds else ()
        failure = failure_in_output(self._plain_lines) if exit.code and not self._closed else None
        return (*held, facts.TurnFailed(failure)) if failure is not None else held

    # -- lines

    def _fragment(self, fragment: CursorFragment) -> Facts:
        """Return the fact of a fragment in the running model call (hot path); nothing for any other line."""
        if not self._steps.is_running or fragment.timestamp_ms is None or fragment.model_call_id is not None:
            return ()
        if fragment.type == "thinking":
            return (facts.ThinkingDelta(fragment.text),) if fragment.text and fragment.subtype == "delta" else ()
        message = fragment.message
        if fragment.type != "assistant" or message is None or len(message.content) != 1:
            return ()
        block = message.content[0]
        return self._messages.fragment(block.text) if block.type == "text" else ()

    def _read(self, line: bytes) -> Facts:
        native = load_object(line)
        if native is None:
            return (*self._release(""), *self._plain_line(line, "stdout"))
        kind = text(native.get("type"))
        released = self._release(kind)
        reader = self._readers.get(kind) or self._readers.get(kind_of(native))
        try:
            line_facts = reader(native) if reader is not None else ()
        except WrongShapeError:
            line_facts = ()
        line_facts = line_facts or (facts.Unknown(kind_of(native) or "untyped", line.decode("utf-8", "replace")),)
        if released and isinstance(line_facts[0], facts.Ignored):
            return released
        return (*released, *line_facts)

    def _read_other(self, line: bytes, source: Source) -> Facts:
        if source is Source.STDERR:
            return self._plain_line(line, "stderr")
        return (facts.Ignored("stdin", "our own prompt"),)

    def _plain_line(self, line: bytes, source: Any) -> Facts:
        message_text = line.decode("utf-8", "replace")
        self._plain_lines = [*self._plain_lines[1 - REMEMBERED :], message_text]
        return (facts.LogLine(message_text, source),)

    def _release(self, kind: str) -> Facts:
        return self._messages.release(repeated=kind in AFTER_REPETITION) if self._messages.holds else ()

    # -- line types

    def _init(self, line: Mapping[str, Any]) -> Facts:
        self._calls.cwd = text(line.get("cwd"))
        return (self._session(need_text(line, "session_id"), text(line.get("model")) or None),)

    def _session(self, session_id: str, model: str | None) -> facts.Fact:
        self._session_id = session_id
        return facts.SessionKnown(session_id, self._context.session_id is not None, model=model)

    def _user(self, _: Mapping[str, Any]) -> Facts:
        return (facts.TurnBegin(),)

    def _thinking(self, line: Mapping[str, Any]) -> Facts:
        message_text = text(line.get("text"))
        if not message_text:
            return (facts.Ignored("thinking/delta", "an empty fragment"),)
        return (*self._steps.note_output(""), facts.ThinkingDelta(message_text))

    def _thought(self, _: Mapping[str, Any]) -> Facts:
        return (facts.ThinkingEnd(),)

    def _assistant(self, line: Mapping[str, Any]) -> Facts:
        content = need_mapping(line, "message").get("content")
        message_text = "".join(text(block.get("text")) for block in rows(content)) or text(content)
        call_id = text(line.get("model_call_id"))
        is_fragment = "timestamp_ms" in line and not call_id
        line_facts = self._messages.fragment(message_text) if is_fragment else self._messages.message(message_text)
        if isinstance(line_facts[0], facts.Ignored | facts.TextEnd):
            self._steps.set_call_id(call_id)
            return line_facts
        return (*self._steps.note_output(call_id), *line_facts)

    def _started(self, line: Mapping[str, Any]) -> Facts:
        line_facts = self._calls.started(line)
        return (*self._steps.note_output(text(line.get("model_call_id"))), *line_facts)

    def _completed(self, line: Mapping[str, Any]) -> Facts:
        line_facts = self._calls.completed(line)
        self._steps.tool_returned()
        return line_facts

    def _reconnecting(self, line: Mapping[str, Any]) -> Facts:
        return (facts.Note(f"the connection to cursor was lost (attempt {whole(line.get('attempt'))})", "warn"),)

    def _retry(self, line: Mapping[str, Any]) -> Facts:
        self._steps.turn_over()
        return (facts.Retrying(whole(line.get("attempt")), 0, "the connection to cursor was lost"),)

    def _retry_over(self, line: Mapping[str, Any]) -> Facts:
        return (facts.Ignored(kind_of(line), "the retry itself is emitted"),)

    def _notice(self, line: Mapping[str, Any]) -> Facts:
        message_text = text(line.get("message")) or text(line.get("summary")) or text(line.get("status"))
        return (facts.Note(f"{kind_of(line)}: {message_text}" if message_text else kind_of(line)),)

    def _result(self, line: Mapping[str, Any]) -> Facts:
        closing, answer, session_id = closing_fact(line), text(line.get("result")), text(line.get("session_id"))
        session = (self._session(session_id, None),) if session_id and not self._session_id else ()
        good = isinstance(closing, facts.TurnDone)
        only_here = (facts.WholeText(answer),) if good and answer and not self._messages.has_text else ()
        self._closed = True
        self._messages.turn_over()
        self._steps.turn_over()
        return (*session, *only_here, *usage_of(line), closing)


def is_stream_json(value: Any) -> bool:
    """Return whether the line is of this format and of no other."""
    line = mapping(value)
    match line.get("type"):
        case "system":
            # Claude Code's line has these fields, too, and its tools.
            return line.get("subtype") == "init" and "apiKeySource" in line and "tools" not in line
        case "thinking" | "tool_call" | "interaction_query":
            return "subtype" in line and "session_id" in line
        case "result":
            return "request_id" in line and "duration_api_ms" in line
        case "assistant":
            return "model_call_id" in line and isinstance(mapping(line.get("message")).get("content"), list)
    return False
