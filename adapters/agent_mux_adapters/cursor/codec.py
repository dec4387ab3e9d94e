"""cursor-agent's `--print --output-format stream-json`: one prompt, one turn, nobody to ask.

Written from the documented format, and checked against a third party's recordings of 2026.01.28: this CLI cannot be
run without an account. What it does not tell: tool inputs as they stream, output of running commands, cost.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from agent_mux import facts
from agent_mux.actions import AnyAction
from agent_mux.adapter import STDOUT, CodecContext, Exit, Source, Step
from agent_mux.native_json import load_object
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
from agent_mux_adapters.cursor.outcome import closing_fact, last_words, usage_of
from agent_mux_adapters.cursor.tool_calls import CursorToolCalls

STREAM_JSON = "stream-json"
SIGINT = 2
REMEMBERED = 20  # lines of prose that may say why the CLI gave up
AFTER_REPETITION = frozenset({"retry", "interaction_query", "connection", "tool_call"})
"""Types of lines before which the CLI repeats the text that was streamed."""


Facts = tuple[facts.Fact, ...]


class CursorCodec:
    """One run of cursor-agent. See `agent_mux.adapter.Codec`."""

    def __init__(self, context: CodecContext) -> None:
        self._context = context
        self._queries = CursorQueries()
        self._calls = CursorToolCalls(self._queries.denied, permitted=context.approval_mode == "yolo")
        self._prose = CursorMessages()
        self._steps = CursorSteps()
        self._session_id = ""
        self._bare: list[str] = []
        """The last lines of prose, of stdout and stderr."""
        self._closed = False
        """The last turn has its closing message."""
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
            "interaction_query/request": self._queries.asked,
            "interaction_query/response": self._queries.answered,
            "connection/reconnecting": self._reconnecting,
            "connection/reconnected": self._settled,
            "retry/starting": self._retry,
            "retry/resuming": self._settled,
            "result": self._result,
        }

    # -- the four methods of a codec

    def start(self) -> tuple[Step, ...]:
        """Nothing: the prompt is already on its way."""
        return ()

    def receive(self, line: bytes, source: Source) -> tuple[Step, ...]:
        """One line."""
        if source is not STDOUT:
            return self._read_other(line, source)
        if line.startswith(FRAGMENT_STARTS) and not self._prose.holds:
            try:
                fragment = decode_fragment(line)
            except (msgspec.DecodeError, ValueError, RecursionError):
                return self._read(line)
            return self._fragment(fragment) or self._read(line)
        return self._read(line)

    def request(self, action: AnyAction) -> Iterable[Step]:
        """It can be signalled, and that is all."""
        return one_shot_action(action, "cursor-agent --print")

    def finish(self, exit: Exit) -> tuple[Step, ...]:  # noqa: A002  # as in the contract
        """The process is gone. When it failed without a closing message, its prose may say why."""
        held = self._prose.release(repeated=False) if self._prose.holds else ()
        failure = last_words(self._bare) if exit.code and not self._closed else None
        return (*held, facts.TurnFailed(failure)) if failure is not None else held

    # -- lines

    def _fragment(self, fragment: CursorFragment) -> Facts:
        """The hot path: a fragment of the model call that goes on. Empty when it is anything else."""
        if not self._steps.goes_on or fragment.timestamp_ms is None or fragment.model_call_id is not None:
            return ()
        if fragment.type == "thinking":
            return (facts.ThinkingDelta(fragment.text),) if fragment.text and fragment.subtype == "delta" else ()
        message = fragment.message
        if fragment.type != "assistant" or message is None or len(message.content) != 1:
            return ()
        block = message.content[0]
        return self._prose.fragment(block.text) if block.type == "text" else ()

    def _read(self, line: bytes) -> Facts:
        native = load_object(line)
        if native is None:
            return (*self._release(""), *self._prose_line(line, "stdout"))
        kind = text(native.get("type"))
        before = self._release(kind)
        reader = self._readers.get(kind) or self._readers.get(kind_of(native))
        try:
            told = reader(native) if reader is not None else ()
        except WrongShapeError:
            told = ()
        told = told or (facts.Unknown(kind_of(native) or "untyped", line.decode("utf-8", "replace")),)
        if before and isinstance(told[0], facts.Ignored):
            return before
        return (*before, *told)

    def _read_other(self, line: bytes, source: Source) -> Facts:
        if source is Source.STDERR:
            return self._prose_line(line, "stderr")
        return (facts.Ignored("stdin", "our own prompt"),)

    def _prose_line(self, line: bytes, source: Any) -> Facts:
        words = line.decode("utf-8", "replace")
        self._bare = [*self._bare[1 - REMEMBERED :], words]
        return (facts.LogLine(words, source),)

    def _release(self, kind: str) -> Facts:
        return self._prose.release(repeated=kind in AFTER_REPETITION) if self._prose.holds else ()

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
        said = text(line.get("text"))
        if not said:
            return (facts.Ignored("thinking/delta", "an empty fragment"),)
        return (*self._steps.content(""), facts.ThinkingDelta(said))

    def _thought(self, _: Mapping[str, Any]) -> Facts:
        return (facts.ThinkingEnd(),)

    def _assistant(self, line: Mapping[str, Any]) -> Facts:
        content = need_mapping(line, "message").get("content")
        said = "".join(text(block.get("text")) for block in rows(content)) or text(content)
        call_id = text(line.get("model_call_id"))
        is_fragment = "timestamp_ms" in line and not call_id
        told = self._prose.fragment(said) if is_fragment else self._prose.message(said)
        if isinstance(told[0], facts.Ignored | facts.TextEnd):
            self._steps.named(call_id)
            return told
        return (*self._steps.content(call_id), *told)

    def _started(self, line: Mapping[str, Any]) -> Facts:
        told = self._calls.started(line)
        return (*self._steps.content(text(line.get("model_call_id"))), *told)

    def _completed(self, line: Mapping[str, Any]) -> Facts:
        told = self._calls.completed(line)
        self._steps.tool_returned()
        return told

    def _reconnecting(self, line: Mapping[str, Any]) -> Facts:
        return (facts.Note(f"the connection to cursor was lost (attempt {whole(line.get('attempt'))})", "warn"),)

    def _retry(self, line: Mapping[str, Any]) -> Facts:
        self._steps.turn_over()
        return (facts.Retrying(whole(line.get("attempt")), 0, "the connection to cursor was lost"),)

    def _settled(self, line: Mapping[str, Any]) -> Facts:
        return (facts.Ignored(kind_of(line), "the retry itself is told"),)

    def _notice(self, line: Mapping[str, Any]) -> Facts:
        said = text(line.get("message")) or text(line.get("summary")) or text(line.get("status"))
        return (facts.Note(f"{kind_of(line)}: {said}" if said else kind_of(line)),)

    def _result(self, line: Mapping[str, Any]) -> Facts:
        closing, answer, session_id = closing_fact(line), text(line.get("result")), text(line.get("session_id"))
        session = (self._session(session_id, None),) if session_id and not self._session_id else ()
        good = isinstance(closing, facts.TurnDone)
        only_here = (facts.Text(answer),) if good and answer and not self._prose.said else ()
        self._closed = True
        self._prose.turn_over()
        self._steps.turn_over()
        return (*session, *only_here, *usage_of(line), closing)


def is_stream_json(line: Mapping[str, Any]) -> bool:
    """A line of this format and of no other."""
    match line.get("type"):
        case "system":
            # Claude Code's own has these fields too, and its tools.
            return line.get("subtype") == "init" and "apiKeySource" in line and "tools" not in line
        case "thinking" | "tool_call" | "interaction_query":
            return "subtype" in line and "session_id" in line
        case "result":
            return "request_id" in line and "duration_api_ms" in line
        case "assistant":
            return "model_call_id" in line and isinstance(mapping(line.get("message")).get("content"), list)
    return False
