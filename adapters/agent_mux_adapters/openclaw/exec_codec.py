"""`openclaw agent exec --json`: nothing until the end, then one JSON document over many lines."""

from collections.abc import Iterable

from agent_mux.actions import AnyAction
from agent_mux.adapter import CodecContext, Exit, Source, Step
from agent_mux.facts import Fact, Ignored, LogLine
from agent_mux.native_json import load_object
from agent_mux_adapters._dialects.actions import one_shot_action
from agent_mux_adapters.openclaw.document import facts_of, is_document
from agent_mux_adapters.openclaw.gateway_log import retry_in

_PART = Ignored("document", "part of one JSON document")


class ExecCodec:
    """Collects the lines of the document until it is complete. Takes no input."""

    def __init__(self, context: CodecContext) -> None:  # noqa: ARG002  # nothing of it matters here
        self._lines: list[bytes] = []
        self._is_over = False

    def start(self) -> Iterable[Step]:
        """The prompt is already on its way."""
        return ()

    def receive(self, line: bytes, source: Source) -> Iterable[Step]:
        """One line."""
        if source is not Source.STDOUT:
            shown = line.decode("utf-8", "replace")
            return LogLine(shown, "stderr"), *(() if self._is_over else retry_in(shown))
        if self._is_over or (not self._lines and not line.startswith(b"{")):
            return (LogLine(line.decode("utf-8", "replace")),)
        self._lines.append(line)
        # In a document over several lines, only the last one begins with the brace that closes it.
        return self._read() if line.startswith(b"}") or len(self._lines) == 1 else (_PART,)

    def request(self, action: AnyAction) -> Iterable[Step]:
        """It can be signalled, and that is all."""
        return one_shot_action(action, "openclaw agent exec")

    def finish(self, exit: Exit) -> Iterable[Step]:  # noqa: A002, ARG002  # as in the contract
        """What was collected is no document: it is shown as it is."""
        rest, self._lines = self._lines, []
        return tuple(LogLine(line.decode("utf-8", "replace")) for line in rest)

    def _read(self) -> tuple[Fact, ...]:
        native = load_object(b"\n".join(self._lines))
        if native is None:
            return (_PART,)
        rest, self._lines = self._lines, []
        if not is_document(native):
            return tuple(LogLine(line.decode("utf-8", "replace")) for line in rest)
        self._is_over = True
        return facts_of(native)
