"""`copilot --headless --stdio`: JSON-RPC both ways, each message after a head with its length.

It is the protocol of Copilot's own SDK. The framing is not seen here: a "line" is one message.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from agent_mux.actions import AnyAction
from agent_mux.adapter import STDOUT, CodecContext, Exit, Source, Step
from agent_mux.effects import WriteStdin
from agent_mux.facts import Ignored, LogLine, Note, Unknown
from agent_mux.native_json import load_object
from agent_mux_adapters._dialects.actions import dispatch_action
from agent_mux_adapters._dialects.jsonrpc import METHOD_NOT_FOUND, JsonRpcClient, PendingRequest, RpcError
from agent_mux_adapters._dialects.tolerant import mapping, text
from agent_mux_adapters.copilot.conversation import Conversation
from agent_mux_adapters.copilot.events import SessionEvents
from agent_mux_adapters.copilot.requests import Requests
from agent_mux_adapters.copilot.wire import agent_of, delta_of_notification, mapped_or_not

EVENT = "session.event"
QUESTION = "userInput.request"
SILENT_NOTICES: Mapping[str, str] = {
    "gitHubTelemetry.event": "telemetry",
    "host.event": "for clients that list background tasks",
    "session.lifecycle": "for clients that list sessions",
}
"""Notifications that say nothing about a run, and why."""
_NOT_OFFERED = frozenset({
    "autoModeSwitch.request", "exitPlanMode.request", "gitHubToken.getToken", "hooks.invoke", "installations.confirm",
    "permission.request", "providerToken.getToken", "systemMessage.transform", "tasks.cancel", "tool.call",
    "uiThread.run", "workflow.abort", "workflow.execute",
})  # fmt: skip
"""Requests of the runtime that we never asked for. They are refused."""


class HeadlessCodec:
    """Speaks with the headless runtime, or reads what another client spoke with it."""

    def __init__(self, context: CodecContext) -> None:
        self._observing = context.prompt is None
        self._rpc = JsonRpcClient(with_version=True, framing="content-length")
        self._requests = Requests(self._rpc)
        self._events = SessionEvents(context, self._requests)
        self._conversation = Conversation(context, self._rpc, self._requests)
        self._sources: dict[Source, Callable[[bytes], Iterable[Step]]] = {
            Source.STDERR: lambda line: (LogLine(line.decode("utf-8", "replace"), "stderr"),),
            Source.STDIN: self._overhear,
        }

    def start(self) -> Iterable[Step]:
        """The handshake begins."""
        return self._conversation.start()

    def receive(self, line: bytes, source: Source) -> Iterable[Step]:
        """One message."""
        if source is STDOUT:
            return self._receive(line)
        return self._sources[source](line)

    def request(self, action: AnyAction) -> Iterable[Step]:
        """The consumer wants something."""
        return dispatch_action(action, self._conversation, self._requests.reply)

    def finish(self, exit: Exit) -> Iterable[Step]:  # noqa: A002, ARG002  # as in the contract
        """The process is gone: what was kept back is told."""
        return self._events.finish()

    # -- a message of the runtime

    def _receive(self, line: bytes) -> Iterable[Step]:
        delta = delta_of_notification(line)
        if delta is not None:
            return self._events.delta(delta)
        message = load_object(line)
        if message is None:
            return (LogLine(line.decode("utf-8", "replace")),)
        method = message.get("method")
        if isinstance(method, str):
            if "id" in message:
                return self._asked(method, message["id"], message.get("params"), line)
            return mapped_or_not(self._notified(method, mapping(message.get("params")), line), Ignored)
        if "id" in message and ("result" in message or "error" in message):
            return mapped_or_not(self._answered(message), Ignored)
        return _unknown("message", line)

    def _notified(self, method: str, params: Mapping[str, Any], line: bytes) -> tuple[Step, ...]:
        if method in SILENT_NOTICES:
            return (Ignored(method, SILENT_NOTICES[method]),)
        event = params.get("event")
        if method != EVENT or not isinstance(event, dict):
            return _unknown(method, line)
        told = self._events.tell(event)
        if told is None:
            return _unknown(text(event.get("type")) or EVENT, line)
        return *told, *self._noticed(event)

    def _noticed(self, event: Mapping[str, Any]) -> tuple[Step, ...]:  # noqa: PLR0911  # a table
        """What the conversation waits for."""
        if agent_of(event):
            return ()
        data = mapping(event.get("data"))
        match event.get("type"):
            case "user.message":
                return self._conversation.prompted(data)
            case "assistant.turn_start":
                return self._conversation.works()
            case "session.error":
                return self._conversation.failed(data)
            case "assistant.idle":
                return self._conversation.handed_back()
            case "session.idle":
                return self._conversation.rests()
        return ()

    def _asked(self, method: str, raw_id: Any, params: Any, line: bytes) -> tuple[Step, ...]:
        facts = self._requests.question_asked(raw_id, params) if method == QUESTION else None
        if facts is not None:
            return facts
        why = f"agent-mux does not offer {method}"
        refusal = () if self._observing else (WriteStdin(self._rpc.respond_error(raw_id, METHOD_NOT_FOUND, why)),)
        told = (Ignored(method, "not offered"),) if method in _NOT_OFFERED else _unknown(method, line)
        return *told, *refusal

    def _answered(self, message: dict[str, Any]) -> tuple[Step, ...]:
        asked = self._rpc.take_request(message["id"])
        if message.get("error") is not None:
            error = RpcError.read(message["error"])
            if asked is None:
                return (Note(f"copilot refused a request: {error.message}", "warn"),)
            return self._conversation.refused(asked, error)
        result = message.get("result")
        if asked is None and "workspacePath" in mapping(result):
            asked = PendingRequest(
                "session.create"
            )  # in a transcript without our side, the answer is known by its shape
        if asked is None:
            return (Ignored("response", "an answer whose request was not seen"),)
        return self._conversation.answered(asked, result)

    # -- a message of another client

    def _overhear(self, line: bytes) -> Iterable[Step]:
        message = load_object(line)
        if message is None:
            return (Note("a message to copilot that is no JSON object", "warn"),)
        method = message.get("method")
        if isinstance(method, str):
            if "id" in message:
                self._rpc.observe_request(message["id"], method, message.get("params"))
            return (Ignored(f"stdin:{method}", "our own side"),)
        if "id" in message:
            return self._requests.overhear(message["id"], granted=message.get("error") is None)
        return _unknown("stdin", line)


def _unknown(kind: str, line: bytes) -> tuple[Step, ...]:
    return (Unknown(kind, line.decode("utf-8", "replace")),)


def is_headless_line(line: Mapping[str, Any]) -> bool:
    """A message that only the headless runtime prints."""
    method, result = line.get("method"), mapping(line.get("result"))
    params = mapping(line.get("params"))
    if method == EVENT:
        return "event" in params and "sessionId" in params
    if method == "session.lifecycle":
        return text(params.get("type")).startswith("session.")
    return ("taskKinds" in result and "protocolVersion" in result) or ("workspacePath" in result and "mode" in result)
