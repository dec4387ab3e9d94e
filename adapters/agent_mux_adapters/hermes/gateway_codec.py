"""The TUI gateway, `python -m tui_gateway.entry`: JSON-RPC 2.0 in both directions, one message per line.

It is the undocumented protocol behind Hermes' own terminal interface, and its only one that reports everything. The
agent's side consists of `event` notifications and answers.
"""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from agent_mux.sdk.codec import STDOUT, AnyAction, CodecContext, CodecOutput, Exit, Source
from agent_mux.sdk.facts import Fact, Ignored, LogLine, Note
from agent_mux.sdk.native_json import load_object
from agent_mux_adapters._dialects.actions import dispatch_action
from agent_mux_adapters._dialects.jsonrpc import JsonRpcClient, PendingRequest, RpcError
from agent_mux_adapters._dialects.tolerant import mapping, text
from agent_mux_adapters.hermes.approvals import RESPONSE_METHODS
from agent_mux_adapters.hermes.gateway_reader import GatewayReader, unknown_line
from agent_mux_adapters.hermes.turns import HermesTurns
from agent_mux_adapters.hermes.wire import FRAGMENT_STARTS, decode_fragment, read_event

GATEWAY = "tui-gateway"


class HermesGatewayCodec:
    """Codec of the gateway; without a prompt in the context it reads the transcript of another client."""

    def __init__(self, context: CodecContext) -> None:
        self._is_observed = context.prompt is None
        self._rpc = JsonRpcClient(with_version=True)
        self._turns = HermesTurns(context, self._rpc)
        self._reader = GatewayReader(context, self._rpc, self._turns)
        self._sources: dict[Source, Callable[[bytes], Iterable[CodecOutput]]] = {
            Source.STDOUT: self._receive,
            Source.STDERR: self._receive_stderr,
            Source.STDIN: self._observe_request,
        }

    def start(self) -> Iterable[CodecOutput]:
        """Return the request that opens the session."""
        return self._turns.start()

    def receive(self, line: bytes, source: Source) -> Iterable[CodecOutput]:
        """Read one line. Fragments of text and thinking, the most frequent lines, are decoded in one step."""
        if source is STDOUT and line.startswith(FRAGMENT_STARTS):
            try:
                params = decode_fragment(line).params
            except (ValueError, RecursionError):
                return self._receive(line)
            return self._reader.fragment(params.type, params.session_id, params.payload.text)
        return self._sources[source](line)

    def request(self, action: AnyAction) -> Iterable[CodecOutput]:
        """Return the effects of an action of the consumer."""
        respond = partial(self._reader.approvals.respond, self._turns.session or "")
        return dispatch_action(action, self._turns, respond)

    def finish(self, exit: Exit) -> Iterable[CodecOutput]:  # noqa: A002, ARG002  # as in the contract
        """Return nothing: no fact is held back until the exit."""
        return ()

    def _receive_stderr(self, line: bytes) -> Iterable[CodecOutput]:
        content = line.decode("utf-8", "replace")
        self._reader.error_line(content)
        return (LogLine(content, "stderr"),)

    # -- stdout

    def _receive(self, line: bytes) -> Iterable[CodecOutput]:
        message = load_object(line)
        if message is None:
            return (LogLine(line.decode("utf-8", "replace")),)
        if message.get("method") == "event":
            event = read_event(message.get("params"))
            return _at_most_one_ignored(self._reader.event(event) or unknown_line(event.kind or "event", line))
        if "id" in message and ("result" in message or "error" in message):
            return _at_most_one_ignored(self._receive_response(message))
        return unknown_line(text(message.get("method")) or "message", line)

    def _receive_response(self, message: dict[str, Any]) -> tuple[CodecOutput, ...]:
        asked = self._rpc.take_request(message["id"])
        if message.get("error") is not None:
            error = RpcError.read(message["error"])
            if asked is None:
                return (Note(f"hermes refused a request: {error.message}", "warn"),)
            return self._turns.error_response(asked, error)
        result = message.get("result")
        if asked is None:
            return self._receive_unmatched_response(result)
        if self._is_observed and asked.method in RESPONSE_METHODS:
            return self._reader.approvals.response_observed(asked)
        return self._turns.response(asked, result)

    def _receive_unmatched_response(self, result: Any) -> tuple[CodecOutput, ...]:
        """Read a response whose request is not in the transcript: one that opens a session is known by its fields."""
        fields = mapping(result)
        if self._is_observed and "session_id" in fields and "message_count" in fields:
            return self._turns.response(
                PendingRequest("session.resume" if "resumed" in fields else "session.create"), result
            )
        return (Ignored("response", "an answer whose request was not seen"),)

    # -- stdin of another client

    def _observe_request(self, line: bytes) -> Iterable[CodecOutput]:
        message = load_object(line)
        if message is None:
            return (Note("a line to hermes that is not a JSON object", "warn"),)
        method = message.get("method")
        if not isinstance(method, str):
            return unknown_line("stdin", line)
        if "id" in message:
            self._rpc.observe_request(message["id"], method, message.get("params"))
        self._turns.request_observed(method)
        return (Ignored(f"stdin:{method}", "our own side"),)


def _at_most_one_ignored(steps: tuple[CodecOutput, ...]) -> tuple[CodecOutput, ...]:
    """Drop `Ignored` facts beside other facts; keep only the first one otherwise."""
    ignored = [step for step in steps if isinstance(step, Ignored)]
    if not ignored:
        return steps
    others = tuple(step for step in steps if not isinstance(step, Ignored))
    return others if any(isinstance(step, Fact) for step in others) else (ignored[0], *others)
