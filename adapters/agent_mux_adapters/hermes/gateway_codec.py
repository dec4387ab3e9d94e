"""`python -m tui_gateway.entry`: JSON-RPC 2.0 both ways, one message per line; the agent speaks in `event`s.

It is what Hermes' own terminal interface is made of. Undocumented, and the only one of its protocols that tells
everything.
"""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from agent_mux.actions import AnyAction
from agent_mux.adapter import STDOUT, CodecContext, Exit, Source, Step
from agent_mux.facts import Fact, Ignored, LogLine, Note
from agent_mux.native_json import load_object
from agent_mux_adapters._dialects.actions import dispatch_action
from agent_mux_adapters._dialects.jsonrpc import JsonRpcClient, PendingRequest, RpcError
from agent_mux_adapters._dialects.tolerant import mapping, text
from agent_mux_adapters.hermes.asks import ANSWERING
from agent_mux_adapters.hermes.conversation import Conversation
from agent_mux_adapters.hermes.events import Events, unknown
from agent_mux_adapters.hermes.wire import FRAGMENT_STARTS, decode_fragment, read_event

GATEWAY = "tui-gateway"


class GatewayCodec:
    """Speaks with the gateway, or reads what another client spoke with it."""

    def __init__(self, context: CodecContext) -> None:
        self._is_observed = context.prompt is None
        self._rpc = JsonRpcClient(with_version=True)
        self._conversation = Conversation(context, self._rpc)
        self._events = Events(context, self._rpc, self._conversation)
        self._sources: dict[Source, Callable[[bytes], Iterable[Step]]] = {
            Source.STDOUT: self._receive,
            Source.STDERR: lambda line: (LogLine(line.decode("utf-8", "replace"), "stderr"),),
            Source.STDIN: self._overhear,
        }

    def start(self) -> Iterable[Step]:
        """A session is opened."""
        return self._conversation.start()

    def receive(self, line: bytes, source: Source) -> Iterable[Step]:
        """One line."""
        if source is STDOUT and line.startswith(FRAGMENT_STARTS):
            try:
                params = decode_fragment(line).params
            except (ValueError, RecursionError):
                return self._receive(line)
            return self._events.fragment(params.type, params.session_id, params.payload.text)
        return self._sources[source](line)

    def request(self, action: AnyAction) -> Iterable[Step]:
        """The consumer wants something."""
        return dispatch_action(
            action, self._conversation, partial(self._events.asks.reply, self._conversation.session or "")
        )

    def finish(self, exit: Exit) -> Iterable[Step]:  # noqa: A002, ARG002  # as in the contract
        """The process is gone: nothing was kept back."""
        return ()

    # -- a line of the gateway

    def _receive(self, line: bytes) -> Iterable[Step]:
        message = load_object(line)
        if message is None:
            return (LogLine(line.decode("utf-8", "replace")),)
        if message.get("method") == "event":
            event = read_event(message.get("params"))
            return _mapped_or_not(self._events.told(event) or unknown(event.kind or "event", line))
        if "id" in message and ("result" in message or "error" in message):
            return _mapped_or_not(self._answered(message))
        return unknown(text(message.get("method")) or "message", line)

    def _answered(self, message: dict[str, Any]) -> tuple[Step, ...]:
        asked = self._rpc.take_request(message["id"])
        if message.get("error") is not None:
            error = RpcError.read(message["error"])
            if asked is None:
                return (Note(f"hermes refused a request: {error.message}", "warn"),)
            return self._conversation.refused(asked, error)
        result = message.get("result")
        if asked is None:
            return self._answer_to_nobody(result)
        if self._is_observed and asked.method in ANSWERING:
            return self._events.asks.overheard(asked)
        return self._conversation.answered(asked, result)

    def _answer_to_nobody(self, result: Any) -> tuple[Step, ...]:
        """In a transcript without our side, the answer that matters is known by its shape."""
        fields = mapping(result)
        if self._is_observed and "session_id" in fields and "message_count" in fields:
            return self._conversation.answered(
                PendingRequest("session.resume" if "resumed" in fields else "session.create"), result
            )
        return (Ignored("response", "an answer whose request was not seen"),)

    # -- a line of another client

    def _overhear(self, line: bytes) -> Iterable[Step]:
        message = load_object(line)
        if message is None:
            return (Note("a line to hermes that is no JSON object", "warn"),)
        method = message.get("method")
        if not isinstance(method, str):
            return unknown("stdin", line)
        if "id" in message:
            self._rpc.observe_request(message["id"], method, message.get("params"))
        self._conversation.overheard(method)
        return (Ignored(f"stdin:{method}", "our own side"),)


def _mapped_or_not(steps: tuple[Step, ...]) -> tuple[Step, ...]:
    """A line is ignored only when nothing else is said about it."""
    silent = [step for step in steps if isinstance(step, Ignored)]
    if not silent:
        return steps
    rest = tuple(step for step in steps if not isinstance(step, Ignored))
    return rest if any(isinstance(step, Fact) for step in rest) else (silent[0], *rest)
