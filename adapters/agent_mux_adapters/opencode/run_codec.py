"""`opencode run --format json`: one prompt, and each part when it is complete. It has no closing message of its own.

The last step tells whether the model was done, and the exit code whether the CLI was. Retries, refused permissions and
the compaction of the context are not told; nor is the beginning of a tool.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from agent_mux.actions import AnyAction
from agent_mux.adapter import CodecContext, Exit, Source, Step
from agent_mux.facts import (
    ContextCompacted,
    Fact,
    Failure,
    Ignored,
    LogLine,
    SessionKnown,
    Trouble,
    TurnDone,
    TurnFailed,
)
from agent_mux.native_json import load_object
from agent_mux_adapters._dialects.actions import one_shot_action
from agent_mux_adapters._dialects.tolerant import WrongShapeError, need_mapping, text
from agent_mux_adapters.opencode.failures import failure_of, is_overflow
from agent_mux_adapters.opencode.names import Names
from agent_mux_adapters.opencode.threads import Threads
from agent_mux_adapters.opencode.wire import mapped_or_not, unknown

PARTS = {
    "reasoning": "reasoning",
    "step_finish": "step-finish",
    "step_start": "step-start",
    "text": "text",
    "tool_use": "tool",
}
"""Type of a line -> type of the part that it carries."""
_NO_SESSION = "session not found"
_GOES_ON = "tool-calls"


class RunCodec:
    """Reads what `opencode run` prints."""

    def __init__(self, context: CodecContext) -> None:
        self._context = context
        self._threads = Threads(context.cwd, Names())
        self._error: Failure | None = None
        """Told, and nothing came after it yet."""
        self._finish = ""
        """Why the last model call ended."""
        self._summary = ""
        """The message that the context is compacted to: the next one after an overflow."""
        self._overflowed = False
        self._sources: dict[Source, Callable[[bytes], tuple[Fact, ...]]] = {
            Source.STDOUT: self._receive,
            Source.STDERR: self._log,
            Source.STDIN: lambda line: (LogLine(line.decode("utf-8", "replace")),),
        }

    def start(self) -> Iterable[Step]:
        """The prompt is on its way already."""
        return ()

    def receive(self, line: bytes, source: Source) -> Iterable[Step]:
        """One line."""
        return self._sources[source](line)

    def request(self, action: AnyAction) -> Iterable[Step]:
        """It can be signalled, and that is all."""
        return one_shot_action(action, "opencode run")

    def finish(self, exit: Exit) -> Iterable[Step]:  # noqa: A002  # as in the contract
        """The exit is the end of the turn: of a good one only after the model was done."""
        cost = self._threads.spent.record
        if exit.signal is not None:
            return ()
        if self._error is not None:
            return (TurnFailed(self._error, cost),)
        is_done = bool(self._finish) and self._finish != _GOES_ON
        return (TurnDone(cost),) if is_done and not exit.code else ()

    def _receive(self, line: bytes) -> tuple[Fact, ...]:
        message = load_object(line)
        if message is None:
            return (LogLine(line.decode("utf-8", "replace")),)
        kind = message.get("type")
        try:
            if kind == "error":
                return mapped_or_not((*self._opened(message), *self._failed(message)))
            if isinstance(kind, str) and kind in PARTS:
                return mapped_or_not((*self._opened(message), *self._part(kind, need_mapping(message, "part"))))
        except WrongShapeError:
            pass
        return unknown(kind if isinstance(kind, str) else "line", line)

    def _opened(self, message: Mapping[str, Any]) -> tuple[Fact, ...]:
        session_id = text(message.get("sessionID"))
        if self._threads.main is not None or not session_id:
            return ()
        self._threads.open(session_id)
        context = self._context
        return (SessionKnown(session_id, resumed=context.session_id is not None, forked_from=context.fork_session_id),)

    def _failed(self, message: Mapping[str, Any]) -> tuple[Fact, ...]:
        facts = self._went_on()
        self._error, self._finish = failure_of(message.get("error")), ""
        self._overflowed = is_overflow(message.get("error"))
        return facts or (Ignored("error", "told when the run goes on, or ends"),)

    def _went_on(self) -> tuple[Fact, ...]:
        error, self._error = self._error, None
        return (Trouble(error.code, error.message),) if error is not None else ()

    def _part(self, kind: str, part: Mapping[str, Any]) -> tuple[Fact, ...]:
        thread = self._threads.main or self._threads.open("")
        message_id = text(part.get("messageID"))
        if self._overflowed and kind == "step_start":
            self._overflowed, self._summary = False, message_id
            thread.expect_summary(message_id)
        facts = thread.part_updated({**part, "type": PARTS[kind]})
        if facts is None:
            raise WrongShapeError(kind)
        if kind == "step_finish":
            is_summary = bool(message_id) and message_id == self._summary
            facts = (*facts, ContextCompacted(thread.summary)) if is_summary else facts
            self._finish = "" if is_summary else text(part.get("reason"))
        return *self._went_on(), *self._threads.tell(thread, facts)

    def _log(self, line: bytes) -> tuple[Fact, ...]:
        said = line.decode("utf-8", "replace")
        if self._threads.main is None and _NO_SESSION in said.lower():
            self._error = Failure("SESSION_NOT_FOUND", "opencode has no such session")
        return (LogLine(said, "stderr"),)
