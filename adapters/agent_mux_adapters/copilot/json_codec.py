"""`copilot --output-format json`: one session event per line, and a last line about the end of the process.

It takes no input, reports no tokens, and names its session only in that last line.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from agent_mux.sdk.codec import STDOUT, AnyAction, CodecContext, CodecOutput, Exit, Source
from agent_mux.sdk.facts import Fact, Failure, Ignored, LogLine, SessionKnown, TurnDone, TurnFailed, Unknown
from agent_mux.sdk.native_json import load_object
from agent_mux_adapters._dialects.actions import one_shot_action
from agent_mux_adapters._dialects.jsonrpc import JsonRpcClient
from agent_mux_adapters._dialects.tolerant import mapping, text
from agent_mux_adapters.copilot.approvals import CopilotApprovals
from agent_mux_adapters.copilot.outcome import error_code_of
from agent_mux_adapters.copilot.reader import CopilotReader
from agent_mux_adapters.copilot.wire import delta_of_line, without_redundant_ignored

RESULT = "result"
_ENVELOPE = frozenset({"id", "parentId", "timestamp"})


class CopilotJsonCodec:
    """Codec of `copilot --output-format json`, which reads its output and sends nothing."""

    def __init__(self, context: CodecContext) -> None:
        # The process reads no replies, so requests are only observed.
        self._reader = CopilotReader(context, CopilotApprovals(JsonRpcClient(with_version=True), context.cwd))
        self._closed = False
        """Whether a turn or the last line has ended the run."""
        self._startup_failure: Failure | None = None
        """The failure that the CLI printed on stderr instead of starting."""

    def start(self) -> Iterable[CodecOutput]:
        """Return nothing: the prompt is part of the spawn."""
        return ()

    def receive(self, line: bytes, source: Source) -> Iterable[CodecOutput]:
        """Return the steps for one line."""
        delta = delta_of_line(line) if source is STDOUT else None
        if delta is not None:
            return self._reader.delta(delta)
        if source is Source.STDERR:
            return self._receive_stderr(line.decode("utf-8", "replace"))
        native = load_object(line)
        if native is None:
            return (LogLine(line.decode("utf-8", "replace")),)
        if native.get("type") == RESULT and "data" not in native:
            return self._last_line(native)
        facts = self._reader.read(native)
        if facts is None:
            return (Unknown(text(native.get("type")) or "line", line.decode("utf-8", "replace")),)
        self._closed = self._closed or native.get("type") == "assistant.idle"
        return without_redundant_ignored(facts, Ignored)

    def request(self, action: AnyAction) -> Iterable[CodecOutput]:
        """Perform an action of the consumer: only signals are possible."""
        return one_shot_action(action, "this run of copilot")

    def finish(self, exit: Exit) -> Iterable[CodecOutput]:  # noqa: A002  # as in the contract
        """Return the facts that were kept back, and a failure to start, when the process has exited."""
        rest = self._reader.finish()
        if self._startup_failure is not None and exit.code and not self._closed:
            return *rest, TurnFailed(self._startup_failure)
        return rest

    def _last_line(self, native: Mapping[str, Any]) -> tuple[Fact, ...]:
        """Handle the last line, which ends the turn if `assistant.idle` did not."""
        session_id, code = text(native.get("sessionId")), native.get("exitCode")
        known = (SessionKnown(session_id),) if session_id else ()
        if not self._closed or self._reader.turns.is_open:
            self._closed = True
            failed = TurnFailed(Failure("AGENT_CRASH", f"copilot exited with code {code}"))
            return *known, TurnDone() if code == 0 else failed
        return known or (Ignored(RESULT, "the turn was closed before"),)

    def _receive_stderr(self, line: str) -> tuple[Fact, ...]:
        code = error_code_of(line)
        if code != "AGENT_CRASH" and self._startup_failure is None:
            self._startup_failure = Failure(code, line)
        return (LogLine(line, "stderr"),)


def is_json_line(value: Any) -> bool:
    """Return whether only Copilot prints this line: a session event, or the last line."""
    line = mapping(value)
    if line.get("type") == RESULT:
        return "exitCode" in line and "sessionId" in line and "usage" in line
    return "data" in line and line.keys() >= _ENVELOPE
