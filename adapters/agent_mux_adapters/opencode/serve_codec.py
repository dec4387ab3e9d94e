"""The codec of `opencode serve` behind the bridge: events, requests and responses, one JSON object per line."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from agent_mux.sdk.codec import STDOUT, AnyAction, Cancel, CodecContext, CodecOutput, Exit, Interrupt, Source
from agent_mux.sdk.facts import Ignored, LogLine, Note, SessionKnown
from agent_mux.sdk.native_json import load_object
from agent_mux_adapters._dialects.actions import dispatch_action
from agent_mux_adapters._dialects.tolerant import text, whole
from agent_mux_adapters.opencode.approvals import OpencodeApprovals
from agent_mux_adapters.opencode.requests import OpencodeRequests
from agent_mux_adapters.opencode.serve_reader import ServeReader
from agent_mux_adapters.opencode.tools import McpToolNames
from agent_mux_adapters.opencode.turns import OpencodeConversation
from agent_mux_adapters.opencode.wire import DELTA_MARK, MARK_AT, decode_delta, drop_redundant_ignored, unknown_line


class OpencodeServeCodec:
    """The codec of one run; it also reads a transcript of another client, or events alone."""

    def __init__(self, context: CodecContext) -> None:
        names = McpToolNames()
        self._requests = OpencodeRequests()
        self._conversation = OpencodeConversation(context, self._requests, names)
        self._approvals = OpencodeApprovals(self._requests, names, context.cwd)
        self._reader = ServeReader(context, names, self._approvals, self._conversation)
        self._sources: dict[Source, Callable[[bytes], Iterable[CodecOutput]]] = {
            Source.STDOUT: self._receive,
            Source.STDERR: lambda line: (LogLine(line.decode("utf-8", "replace"), "stderr"),),
            Source.STDIN: self._observe,
        }

    def start(self) -> Iterable[CodecOutput]:
        """Queue the prompt; requests wait until the server listens."""
        return self._conversation.start()

    def receive(self, line: bytes, source: Source) -> Iterable[CodecOutput]:
        """Read one line of stdout, stderr or a recorded stdin."""
        if source is STDOUT and line.startswith(DELTA_MARK, MARK_AT):
            try:
                fragment = decode_delta(line).properties
            except (ValueError, RecursionError):
                return self._receive(line)
            return self._reader.delta(fragment)
        return self._sources[source](line)

    def request(self, action: AnyAction) -> Iterable[CodecOutput]:
        """Carry out an action of the consumer."""
        steps = dispatch_action(action, self._conversation, self._approvals.reply)
        return self._stop_and_withdraw(steps) if isinstance(action, Interrupt | Cancel) else steps

    def finish(self, exit: Exit) -> Iterable[CodecOutput]:  # noqa: A002, ARG002  # as in the contract
        """Return nothing: an exit without an end of the turn is no evidence of an outcome."""
        return ()

    def _stop_and_withdraw(self, steps: Iterable[CodecOutput]) -> Iterable[CodecOutput]:
        """Reject open requests after the abort: after a rejection alone the agent would continue."""
        return (*steps, *self._approvals.withdraw()) if self._conversation.was_stopped else steps

    # -- lines of the bridge

    def _receive(self, line: bytes) -> tuple[CodecOutput, ...]:
        message = load_object(line)
        if message is None:
            return (LogLine(line.decode("utf-8", "replace")),)
        if isinstance(message.get("type"), str):
            return drop_redundant_ignored(self._reader.read_event(message) or unknown_line(_kind_of(message), line))
        if "id" in message and "status" in message:
            return drop_redundant_ignored(self._read_answer(message))
        return unknown_line("message", line)

    def _read_answer(self, message: Mapping[str, Any]) -> tuple[CodecOutput, ...]:
        request_sent = self._requests.take(message["id"])
        if request_sent is None:
            return (Ignored("answer", "a response whose request was not seen"),)
        steps = self._conversation.read_answer(
            request_sent, whole(message["status"]), message.get("body"), text(message.get("error"))
        )
        for step in steps:
            if isinstance(step, SessionKnown):
                self._reader.open(step.session_id)
        return steps

    # -- lines of another client

    def _observe(self, line: bytes) -> tuple[CodecOutput, ...]:
        message = load_object(line)
        if message is None or not text(message.get("path")):
            return (Note("a line to the bridge is not a request", "warn"),)
        request_sent = self._requests.observe(message)
        self._conversation.observe(request_sent)
        return (Ignored(f"stdin:{request_sent.topic}", "our own side"),)


def _kind_of(message: Mapping[str, Any]) -> str:
    """Return the type of an unknown line, with the type of its part."""
    properties = message.get("properties")
    part = properties.get("part") if isinstance(properties, dict) else None
    inner = part.get("type") if isinstance(part, dict) else None
    return f"{message['type']}:{inner}" if isinstance(inner, str) else str(message["type"])
