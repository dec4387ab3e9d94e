"""`copilot --output-format json`: one session event per line, and a last line about how the process ends.

It takes no input, tells no tokens, and names its session only in that last line.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from agent_mux.actions import AnyAction
from agent_mux.adapter import STDOUT, CodecContext, Exit, Source, Step
from agent_mux.facts import Fact, Failure, Ignored, LogLine, SessionKnown, TurnDone, TurnFailed, Unknown
from agent_mux.native_json import load_object
from agent_mux_adapters._dialects.actions import one_shot_action
from agent_mux_adapters._dialects.jsonrpc import JsonRpcClient
from agent_mux_adapters._dialects.tolerant import text
from agent_mux_adapters.copilot.events import SessionEvents
from agent_mux_adapters.copilot.failures import code_of
from agent_mux_adapters.copilot.requests import Requests
from agent_mux_adapters.copilot.wire import delta_of_line, mapped_or_not

RESULT = "result"
_ENVELOPE = frozenset({"id", "parentId", "timestamp"})


class JsonCodec:
    """Reads the lines of one run."""

    def __init__(self, context: CodecContext) -> None:
        # Nothing can be answered here: what is asked is only seen.
        self._events = SessionEvents(context, Requests(JsonRpcClient(with_version=True)))
        self._closed = False
        """The last line was printed, or a turn was closed before it."""
        self._complaint: Failure | None = None
        """What the CLI says on standard error instead of beginning."""

    def start(self) -> Iterable[Step]:
        """The prompt is on its way already."""
        return ()

    def receive(self, line: bytes, source: Source) -> Iterable[Step]:
        """One line."""
        delta = delta_of_line(line) if source is STDOUT else None
        if delta is not None:
            return self._events.delta(delta)
        if source is Source.STDERR:
            return self._complained(line.decode("utf-8", "replace"))
        native = load_object(line)
        if native is None:
            return (LogLine(line.decode("utf-8", "replace")),)
        if native.get("type") == RESULT and "data" not in native:
            return self._ended(native)
        told = self._events.tell(native)
        if told is None:
            return (Unknown(text(native.get("type")) or "line", line.decode("utf-8", "replace")),)
        self._closed = self._closed or native.get("type") == "assistant.idle"
        return mapped_or_not(told, Ignored)

    def request(self, action: AnyAction) -> Iterable[Step]:
        """It can be signalled, and that is all."""
        return one_shot_action(action, "this run of copilot")

    def finish(self, exit: Exit) -> Iterable[Step]:  # noqa: A002  # as in the contract
        """The process is gone."""
        rest = self._events.finish()
        if self._complaint is not None and exit.code and not self._closed:
            return *rest, TurnFailed(self._complaint)
        return rest

    def _ended(self, native: Mapping[str, Any]) -> tuple[Fact, ...]:
        """The last line. The turn was closed by `assistant.idle`, unless that never came."""
        session_id, code = text(native.get("sessionId")), native.get("exitCode")
        known = (SessionKnown(session_id),) if session_id else ()
        if not self._closed or self._events.turns.is_open:
            self._closed = True
            failed = TurnFailed(Failure("AGENT_CRASH", f"copilot ends with code {code}"))
            return *known, TurnDone() if code == 0 else failed
        return known or (Ignored(RESULT, "the turn was closed before"),)

    def _complained(self, said: str) -> tuple[Fact, ...]:
        code = code_of(said)
        if code != "AGENT_CRASH" and self._complaint is None:
            self._complaint = Failure(code, said)
        return (LogLine(said, "stderr"),)


def is_json_line(line: Mapping[str, Any]) -> bool:
    """A line that only Copilot prints: a session event, or the last line."""
    if line.get("type") == RESULT:
        return "exitCode" in line and "sessionId" in line and "usage" in line
    return "data" in line and line.keys() >= _ENVELOPE
