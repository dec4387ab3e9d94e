"""The codec of `gemini --output-format stream-json`: one prompt, one turn, no requests.

The format streams text and reports every tool call with its whole input. It lacks thoughts, the start of model calls (a
step begins with output after a tool), the changes and output of file tools (file events are built from the inputs), and
whether a written file existed before. Tokens are reported once at the end, for all models together.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from agent_mux.sdk.codec import STDOUT, AnyAction, CodecContext, CodecOutput, Exit, Source
from agent_mux.sdk.facts import (
    Fact,
    Failure,
    Ignored,
    LogLine,
    Note,
    RunClosed,
    SessionKnown,
    StepBegin,
    TextDelta,
    TextEnd,
    TurnBegin,
    TurnDone,
    TurnFailed,
    Unknown,
    WholeText,
)
from agent_mux.sdk.native_json import load_object
from agent_mux_adapters._dialects.actions import one_shot_action
from agent_mux_adapters._dialects.tolerant import WrongShapeError, kind_of, mapping, need_text, text
from agent_mux_adapters.gemini.notices import GeminiStderr
from agent_mux_adapters.gemini.outcome import (
    ENDED_BY_NOTICE,
    NO_ANSWER,
    closing_by_exit,
    closing_of,
    failure_of_exit,
    usage_of,
)
from agent_mux_adapters.gemini.tools import GeminiCalls

_MESSAGE_START = b'{"type":"message",'


class _Fragment(msgspec.Struct, gc=False):
    role: str
    content: str
    delta: bool = False


_decode_fragment = msgspec.json.Decoder(_Fragment).decode


class GeminiStreamJsonCodec:
    """The codec of one run. See `agent_mux.sdk.codec.Codec`."""

    def __init__(self, context: CodecContext) -> None:
        self._context = context
        self._calls = GeminiCalls(context.cwd, permitted=context.approval_mode == "yolo")
        self._stderr = GeminiStderr(show_all=context.debug)
        self._tools_ran = False
        self._in_message = False
        self._is_silent = False
        """Whether the turn has begun and produced no output yet."""
        self._in_turn = False
        self._is_over = False
        self._failure: Failure | None = None
        """The failure that the closing line reported."""
        self._notice = ""
        """The last `error` line, which explains a closing line that reports an error without stating it."""
        self._readers: dict[str, Callable[[Mapping[str, Any]], tuple[Fact, ...]]] = {
            "init": self._init,
            "message": self._message,
            "tool_use": self._tool_use,
            "tool_result": self._tool_result,
            "error": self._error,
            "result": self._result,
        }

    def start(self) -> Iterable[CodecOutput]:
        """Return nothing: the runner sends the prompt on stdin."""
        return ()

    def receive(self, line: bytes, source: Source) -> Iterable[CodecOutput]:
        """Return the steps of one line."""
        if source is STDOUT:
            if line.startswith(_MESSAGE_START):
                try:
                    fragment = _decode_fragment(line)
                except (msgspec.DecodeError, ValueError, RecursionError):
                    return self._read(line)
                # The hot path: a fragment of the answer.
                if fragment.delta and fragment.role == "assistant" and fragment.content:
                    return self._fragment(fragment.content)
            return self._read(line)
        if source is Source.STDERR:
            return self._stderr.receive(line, in_turn=self._in_turn)
        return (Ignored("stdin", "our own prompt"),)

    def request(self, action: AnyAction) -> Iterable[CodecOutput]:
        """Signal the process for an interruption; refuse other actions."""
        return one_shot_action(action, "this run of gemini")

    def finish(self, exit: Exit) -> Iterable[CodecOutput]:  # noqa: A002  # as in the contract
        """Return a failure for the exit code when there was no closing line."""
        if exit.code is None:
            return ()
        if self._is_over:
            closing = closing_by_exit(self._failure, exit.code) if self._failure is not None else None
            return (RunClosed(closing),) if closing is not None else ()
        failure = failure_of_exit(exit.code, self._stderr.final_message)
        return (TurnFailed(failure),) if failure is not None else ()

    # -- lines

    def _read(self, line: bytes) -> tuple[Fact, ...]:
        native = load_object(line)
        if native is None:
            return (LogLine(line.decode("utf-8", "replace")),)
        reader = self._readers.get(text(native.get("type")))
        try:
            line_facts = reader(native) if reader is not None else None
        except WrongShapeError:
            line_facts = None
        return line_facts or (Unknown(kind_of(native) or "untyped", line.decode("utf-8", "replace")),)

    def _init(self, native: Mapping[str, Any]) -> tuple[Fact, ...]:
        resumed = self._context.session_id is not None
        model = text(native.get("model"))
        return (SessionKnown(need_text(native, "session_id"), resumed=resumed, model=model or None),)

    def _message(self, native: Mapping[str, Any]) -> tuple[Fact, ...]:
        content = native.get("content")
        match native.get("role"):
            case "user":
                self._in_turn = self._is_silent = True
                return TurnBegin(), StepBegin()
            case "assistant" if content == "":
                return (Ignored("message", "an empty fragment"),)
            case "assistant" if isinstance(content, str):
                if native.get("delta") is True:
                    return self._fragment(content)
                self._is_silent = False
                return *self._step_after_tools(), WholeText(content)
        raise WrongShapeError("role")

    def _fragment(self, content: str) -> tuple[Fact, ...]:
        self._in_message, self._is_silent = True, False
        if self._tools_ran:
            return *self._step_after_tools(), TextDelta(content)
        return (TextDelta(content),)

    def _tool_use(self, native: Mapping[str, Any]) -> tuple[Fact, ...]:
        self._is_silent = False
        call_start = self._calls.start(
            need_text(native, "tool_id"), need_text(native, "tool_name"), mapping(native.get("parameters"))
        )
        return *self._message_over(), *self._step_after_tools(), call_start

    def _tool_result(self, native: Mapping[str, Any]) -> tuple[Fact, ...]:
        call_end = self._calls.finish(need_text(native, "tool_id"), native)
        self._tools_ran = True
        return (*self._message_over(), *call_end)

    def _error(self, native: Mapping[str, Any]) -> tuple[Fact, ...]:
        """Read an `error` line. The CLI continues after a warning, and closes the turn after any other."""
        message = need_text(native, "message")
        if native.get("severity") == "warning" and message not in ENDED_BY_NOTICE:
            return (Note(message, "warn"),)
        self._notice = message
        return (Ignored("error", "the closing line reports the outcome"),)

    def _result(self, native: Mapping[str, Any]) -> tuple[Fact, ...]:
        closing = closing_of(native, self._notice, self._context.max_turns)
        if self._is_silent and isinstance(closing, TurnDone):
            closing = TurnFailed(Failure("EMPTY_ANSWER", NO_ANSWER))
        self._failure = closing.failure if isinstance(closing, TurnFailed) else None
        self._is_over, self._in_turn, self._notice = True, False, ""
        usage = usage_of(mapping(native.get("stats")))
        return (*self._message_over(), *((usage,) if usage is not None else ()), closing)

    # -- inside

    def _message_over(self) -> tuple[Fact, ...]:
        was_in_message, self._in_message = self._in_message, False
        return (TextEnd(),) if was_in_message else ()

    def _step_after_tools(self) -> tuple[Fact, ...]:
        """Begin a step when the model produces output after tools."""
        ran, self._tools_ran = self._tools_ran, False
        return (StepBegin(),) if ran else ()
