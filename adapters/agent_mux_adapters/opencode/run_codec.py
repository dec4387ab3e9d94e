"""The codec of `opencode run --format json`: one prompt; each part is printed when complete.

There is no closing message: the last step shows whether the model was done, and the exit code whether the CLI was.
Retries, refused permissions, compaction and the start of a tool are not reported.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from agent_mux.sdk.codec import AnyAction, CodecContext, CodecOutput, Exit, Source
from agent_mux.sdk.facts import (
    ContextCompacted,
    Fact,
    Failure,
    Ignored,
    LogLine,
    RecoverableError,
    SessionKnown,
    TurnFailed,
)
from agent_mux.sdk.native_json import load_object
from agent_mux_adapters._dialects.actions import one_shot_action
from agent_mux_adapters._dialects.stop_reasons import answered
from agent_mux_adapters._dialects.tolerant import WrongShapeError, need_mapping, text
from agent_mux_adapters.opencode.outcome import failure_of, is_overflow
from agent_mux_adapters.opencode.subagents import OpencodeSessions
from agent_mux_adapters.opencode.tools import McpToolNames
from agent_mux_adapters.opencode.wire import PARTS, drop_redundant_ignored, unknown_line

_NO_SESSION = "session not found"
_TOOL_CALLS = "tool-calls"


class OpencodeRunCodec:
    """The codec of one run of `opencode run`. See `agent_mux.sdk.codec.Codec`."""

    def __init__(self, context: CodecContext) -> None:
        self._context = context
        self._sessions = OpencodeSessions(context.cwd, McpToolNames())
        self._error: Failure | None = None
        """An error after which the run has not continued yet."""
        self._finish = ""
        """The finish reason of the last model call."""
        self._summary = ""
        """The id of the summary's message: the next message after an overflow."""
        self._overflowed = False
        self._sources: dict[Source, Callable[[bytes], tuple[Fact, ...]]] = {
            Source.STDOUT: self._receive,
            Source.STDERR: self._log,
            Source.STDIN: lambda line: (LogLine(line.decode("utf-8", "replace")),),
        }

    def start(self) -> Iterable[CodecOutput]:
        """Return nothing: the prompt is on standard input already."""
        return ()

    def receive(self, line: bytes, source: Source) -> Iterable[CodecOutput]:
        """Read one line of stdout or stderr."""
        return self._sources[source](line)

    def request(self, action: AnyAction) -> Iterable[CodecOutput]:
        """Interrupt by a signal; refuse further prompts."""
        return one_shot_action(action, "opencode run")

    def finish(self, exit: Exit) -> Iterable[CodecOutput]:  # noqa: A002  # as in the contract
        """End the turn: it is completed if the model was done and the exit code is 0."""
        cost = self._sessions.usage.record
        if exit.signal is not None:
            return ()
        if self._error is not None:
            return (TurnFailed(self._error, cost),)
        is_done = bool(self._finish) and self._finish != _TOOL_CALLS
        return (answered(self._finish, cost),) if is_done and not exit.code else ()

    def _receive(self, line: bytes) -> tuple[Fact, ...]:
        message = load_object(line)
        if message is None:
            return (LogLine(line.decode("utf-8", "replace")),)
        kind = message.get("type")
        try:
            if kind == "error":
                return drop_redundant_ignored((*self._open_session(message), *self._record_error(message)))
            if isinstance(kind, str) and kind in PARTS:
                return drop_redundant_ignored(
                    (*self._open_session(message), *self._part(kind, need_mapping(message, "part")))
                )
        except WrongShapeError:
            pass
        return unknown_line(kind if isinstance(kind, str) else "line", line)

    def _open_session(self, message: Mapping[str, Any]) -> tuple[Fact, ...]:
        session_id = text(message.get("sessionID"))
        if self._sessions.main is not None or not session_id:
            return ()
        self._sessions.open(session_id)
        context = self._context
        return (SessionKnown(session_id, resumed=context.session_id is not None, forked_from=context.fork_session_id),)

    def _record_error(self, message: Mapping[str, Any]) -> tuple[Fact, ...]:
        emitted = self._recovered_error()
        self._error, self._finish = failure_of(message.get("error")), ""
        self._overflowed = is_overflow(message.get("error"))
        return emitted or (Ignored("error", "emitted when the run continues or ends"),)

    def _recovered_error(self) -> tuple[Fact, ...]:
        error, self._error = self._error, None
        return (RecoverableError(error.code, error.message),) if error is not None else ()

    def _part(self, kind: str, part: Mapping[str, Any]) -> tuple[Fact, ...]:
        session = self._sessions.main or self._sessions.open("")
        message_id = text(part.get("messageID"))
        if self._overflowed and kind == "step_start":
            self._overflowed, self._summary = False, message_id
            session.mark_summary(message_id)
        emitted = session.part_updated({**part, "type": PARTS[kind]})
        if emitted is None:
            raise WrongShapeError(kind)
        if kind == "step_finish":
            is_summary = bool(message_id) and message_id == self._summary
            emitted = (*emitted, ContextCompacted(session.summary)) if is_summary else emitted
            self._finish = "" if is_summary else text(part.get("reason"))
        return *self._recovered_error(), *self._sessions.attribute(session, emitted)

    def _log(self, line: bytes) -> tuple[Fact, ...]:
        stderr_line = line.decode("utf-8", "replace")
        if self._sessions.main is None and _NO_SESSION in stderr_line.lower():
            self._error = Failure("SESSION_NOT_FOUND", "opencode does not have this session")
        return (LogLine(stderr_line, "stderr"),)
