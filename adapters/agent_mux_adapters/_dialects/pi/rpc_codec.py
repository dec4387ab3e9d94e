"""The codec of rpc mode: commands and responses, the events of json mode, and the dialogs of extensions."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from agent_mux.sdk import facts
from agent_mux.sdk.codec import STDOUT, AnyAction, CodecContext, CodecOutput, Exit, Source
from agent_mux.sdk.facts import ApprovalRequested, Fact
from agent_mux.sdk.native_json import load_object
from agent_mux_adapters._dialects.actions import dispatch_action
from agent_mux_adapters._dialects.pi.approvals import PiDialogs
from agent_mux_adapters._dialects.pi.flavor import Flavor
from agent_mux_adapters._dialects.pi.json_codec import BLANK
from agent_mux_adapters._dialects.pi.reader import PiReader, unknown_line
from agent_mux_adapters._dialects.pi.requests import PiRequests
from agent_mux_adapters._dialects.pi.wire import UPDATE_START, LineChunks, is_last_chunk, is_shortened
from agent_mux_adapters._dialects.tolerant import text

Steps = tuple[CodecOutput, ...]
SHORTENED: Final = (
    "the agent left out parts of a line that was too long for its protocol: texts or lists are incomplete"
)


class PiRpcCodec:
    """The codec of one run in rpc mode. See `agent_mux.sdk.codec.Codec`."""

    def __init__(self, context: CodecContext, flavor: Flavor) -> None:
        self._live = context.prompt is not None
        self._reader = PiReader(context, flavor)
        self._dialogs = PiDialogs(flavor.read_approval, flavor.free_text_option, self._find_pending_call)
        self._requests = PiRequests(context, flavor, self._reader, self._dialogs)
        self._chunks = LineChunks()
        self._matched_calls: set[str] = set()
        self._is_gap_reported = False
        """Whether a shortened line was reported in this turn; its text is repeated in later lines."""
        self._handlers: Mapping[str, Callable[[Mapping[str, Any]], Steps | None]] = {
            "response": self._requests.read_response,
            "prompt_result": self._requests.read_prompt_result,
            "ready": lambda _: (facts.Ignored("ready", "requests were sent without waiting for it"),),
            "rpc_frame_error": lambda line: (facts.Note(_frame_error(line), "warn"),),
            "extension_ui_request": lambda line: self._dialogs.read_request(line, live=self._live),
        }

    def start(self) -> Steps:
        """Send the first commands, unless the codec only observes."""
        return self._requests.start()

    def receive(self, line: bytes, source: Source) -> Steps:
        """Read one line of stdout, stderr or a recorded stdin."""
        if source is STDOUT:
            gap = self._report_gap() if is_shortened(line) else ()
            return (*gap, *self._receive_stdout(line)) if gap else self._receive_stdout(line)
        return self._reader.read_stderr(line) if source is Source.STDERR else self._observe(line)

    def request(self, action: AnyAction) -> Iterable[CodecOutput]:
        """Carry out an action of the consumer."""
        return dispatch_action(action, self._requests, self._dialogs.reply)

    def finish(self, exit: Exit) -> Steps:  # noqa: A002  # as in the contract
        """Return the facts that follow from the exit, if the agent printed no end of its turn."""
        return self._reader.finish(exit)

    # -- by line type

    def _receive_stdout(self, line: bytes) -> Steps:
        if line.startswith(UPDATE_START):
            emitted = self._reader.update(line)
            if emitted is not None:
                return emitted
        emitted = self._reader.read_bulky(line)
        return self._react_to(emitted) if emitted is not None else self._receive(line)

    def _report_gap(self) -> Steps:
        if self._is_gap_reported:
            return ()
        self._is_gap_reported = True
        return (facts.Note(SHORTENED, "warn"),)

    def _receive(self, line: bytes) -> Steps:
        native = load_object(line)
        if native is None:
            return (facts.LogLine(line.decode("utf-8", "replace")),) if line.strip() else BLANK
        kind = text(native.get("type"))
        if kind == "rpc_chunk":
            return self._chunk(native)
        read = self._handlers.get(kind)
        if read is not None:
            return _drop_redundant_ignored(read(native) or unknown_line(kind, line))
        return self._react_to(self._reader.read_object(native, line))

    def _react_to(self, emitted: tuple[Fact, ...]) -> Steps:
        if any(isinstance(fact, facts.TurnBegin) for fact in emitted):
            self._is_gap_reported = False
        return _drop_redundant_ignored((*emitted, *self._requests.react(emitted)))

    def _chunk(self, native: Mapping[str, Any]) -> Steps:
        whole = self._chunks.add(native)
        if whole is not None:
            return self.receive(whole, Source.STDOUT)
        if is_last_chunk(native):
            return (facts.Note("a long line of the agent is incomplete: a part of it is missing", "warn"),)
        return (facts.Ignored("rpc_chunk", "a part of a long line, which is read when complete"),)

    def _observe(self, line: bytes) -> Steps:
        native = load_object(line)
        if native is None:
            return (facts.Note("a line on stdin is not a JSON object", "warn"),)
        kind = text(native.get("type"))
        if kind == "extension_ui_response":
            return self._dialogs.observe_response(native)
        self._requests.observe(native)
        return (facts.Ignored(f"stdin/{kind}", "our own side"),)

    def _find_pending_call(self, request: ApprovalRequested) -> tuple[str, Mapping[str, Any]] | None:
        """Find the call of an approval whose dialog names only the tool: the tool's first call that did not start."""
        for call_id, call in self._reader.calls.pending():
            if call.name == request.tool_name and call_id not in self._matched_calls:
                self._matched_calls.add(call_id)
                return call_id, call.input
        return None


def _frame_error(line: Mapping[str, Any]) -> str:
    kind, error = text(line.get("originalType")) or "unknown", text(line.get("error")) or "no reason given"
    return f"the agent left out a line of type {kind}: {error}"


def _drop_redundant_ignored(steps: Steps) -> Steps:
    """Keep an `Ignored` fact only for a line from which no other fact follows."""
    ignored = [step for step in steps if isinstance(step, facts.Ignored)]
    if not ignored:
        return steps
    rest = tuple(step for step in steps if not isinstance(step, facts.Ignored))
    return rest if any(isinstance(step, Fact) for step in rest) else (ignored[0], *rest)
