"""rpc mode: commands and their responses, the events of json mode, and the dialogs of extensions."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from agent_mux import facts
from agent_mux.actions import AnyAction
from agent_mux.adapter import STDOUT, CodecContext, Exit, Source, Step
from agent_mux.facts import ApprovalAsked, Fact
from agent_mux.native_json import load_object
from agent_mux_adapters._dialects.actions import dispatch_action
from agent_mux_adapters._dialects.pi.chunks import Chunks
from agent_mux_adapters._dialects.pi.conversation import Conversation
from agent_mux_adapters._dialects.pi.dialogs import Dialogs
from agent_mux_adapters._dialects.pi.flavor import Flavor
from agent_mux_adapters._dialects.pi.json_codec import BLANK
from agent_mux_adapters._dialects.pi.reader import Reader, unknown
from agent_mux_adapters._dialects.pi.wire import UPDATE_START
from agent_mux_adapters._dialects.tolerant import text

Steps = tuple[Step, ...]


class RpcCodec:
    """One run in rpc mode. See `agent_mux.adapter.Codec`."""

    def __init__(self, context: CodecContext, flavor: Flavor) -> None:
        self._live = context.prompt is not None
        self._reader = Reader(context, flavor)
        self._dialogs = Dialogs(flavor.approval_of, flavor.free_option, self._call_that_waits)
        self._conversation = Conversation(context, flavor, self._reader, self._dialogs)
        self._chunks = Chunks()
        self._asked_calls: set[str] = set()
        self._lines: Mapping[str, Callable[[Mapping[str, Any]], Steps | None]] = {
            "response": self._conversation.answered,
            "prompt_result": self._conversation.prompt_result,
            "ready": lambda _: (facts.Ignored("ready", "it was written to before"),),
            "extension_ui_request": lambda line: self._dialogs.requested(line, live=self._live),
        }

    def start(self) -> Steps:
        """The process runs."""
        return self._conversation.start()

    def receive(self, line: bytes, source: Source) -> Steps:
        """One line."""
        if source is STDOUT:
            if line.startswith(UPDATE_START):
                told = self._reader.update(line)
                if told is not None:
                    return told
            told = self._reader.quick(line)
            return self._told(told) if told is not None else self._receive(line)
        return self._reader.complaint(line) if source is Source.STDERR else self._overhear(line)

    def request(self, action: AnyAction) -> Iterable[Step]:
        """The consumer wants something."""
        return dispatch_action(action, self._conversation, self._dialogs.reply)

    def finish(self, exit: Exit) -> Steps:  # noqa: A002  # as in the contract
        """The process is gone."""
        return self._reader.finish(exit)

    # -- inside

    def _receive(self, line: bytes) -> Steps:
        native = load_object(line)
        if native is None:
            return (facts.LogLine(line.decode("utf-8", "replace")),) if line.strip() else BLANK
        kind = text(native.get("type"))
        if kind == "rpc_chunk":
            return self._chunk(native)
        read = self._lines.get(kind)
        if read is not None:
            return _spoken(read(native) or unknown(kind, line))
        return self._told(self._reader.object(native, line))

    def _told(self, told: tuple[Fact, ...]) -> Steps:
        return _spoken((*told, *self._conversation.after(told)))

    def _chunk(self, native: Mapping[str, Any]) -> Steps:
        whole = self._chunks.add(native)
        if whole is None:
            return (facts.Ignored("rpc_chunk", "a part of a long line, which is told when it is complete"),)
        return self.receive(whole, Source.STDOUT)

    def _overhear(self, line: bytes) -> Steps:
        native = load_object(line)
        if native is None:
            return (facts.Note("a line to the agent that is no JSON object", "warn"),)
        kind = text(native.get("type"))
        if kind == "extension_ui_response":
            return self._dialogs.overhear(native)
        self._conversation.overhear(native)
        return (facts.Ignored(f"stdin/{kind}", "our own side"),)

    def _call_that_waits(self, asked: ApprovalAsked) -> tuple[str, Mapping[str, Any]] | None:
        """The call an approval is about, where the dialog does not say: the first of that tool that did not start."""
        for call_id, call in self._reader.calls.waiting():
            if call.name == asked.tool_name and call_id not in self._asked_calls:
                self._asked_calls.add(call_id)
                return call_id, call.input
        return None


def _spoken(steps: Steps) -> Steps:
    """A line is ignored only when nothing else is said about it."""
    silent = [step for step in steps if isinstance(step, facts.Ignored)]
    if not silent:
        return steps
    rest = tuple(step for step in steps if not isinstance(step, facts.Ignored))
    return rest if any(isinstance(step, Fact) for step in rest) else (silent[0], *rest)
