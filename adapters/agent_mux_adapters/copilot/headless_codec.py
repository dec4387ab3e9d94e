"""`copilot --headless --stdio`: JSON-RPC in both directions, each message behind a `Content-Length` header.

It is the protocol of Copilot's own SDK. The framing is removed before the codec: a "line" is one message.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from agent_mux.sdk.codec import STDOUT, AnyAction, CodecContext, CodecOutput, Exit, Source, WriteStdin
from agent_mux.sdk.facts import Ignored, LogLine, Note, Unknown
from agent_mux.sdk.native_json import load_object
from agent_mux_adapters._dialects.actions import dispatch_action
from agent_mux_adapters._dialects.jsonrpc import METHOD_NOT_FOUND, JsonRpcClient, PendingRequest, RpcError
from agent_mux_adapters._dialects.tolerant import mapping, text
from agent_mux_adapters.copilot.approvals import CopilotApprovals
from agent_mux_adapters.copilot.reader import CopilotReader
from agent_mux_adapters.copilot.turns import CopilotTurns
from agent_mux_adapters.copilot.wire import agent_of, delta_of_notification, without_redundant_ignored

EVENT = "session.event"
QUESTION = "userInput.request"
IGNORED_NOTIFICATIONS: Mapping[str, str] = {
    "gitHubTelemetry.event": "telemetry",
    "host.event": "for clients that list background tasks",
    "session.lifecycle": "for clients that list sessions",
}
"""Ignored notifications, and why."""
_REFUSED = frozenset({
    "autoModeSwitch.request", "exitPlanMode.request", "gitHubToken.getToken", "hooks.invoke", "installations.confirm",
    "permission.request", "providerToken.getToken", "systemMessage.transform", "tasks.cancel", "tool.call",
    "uiThread.run", "workflow.abort", "workflow.execute",
})  # fmt: skip
"""Known requests of the runtime that we refuse, because we did not announce support for them."""


class CopilotHeadlessCodec:
    """Codec of the headless runtime, for our own runs and for transcripts of other clients."""

    def __init__(self, context: CodecContext) -> None:
        self._is_observed = context.prompt is None
        """Whether another client runs Copilot and we only read its transcript."""
        self._rpc = JsonRpcClient(with_version=True, framing="content-length")
        self._approvals = CopilotApprovals(self._rpc, context.cwd)
        self._reader = CopilotReader(context, self._approvals)
        self._turns = CopilotTurns(context, self._rpc, self._approvals)
        self._sources: dict[Source, Callable[[bytes], Iterable[CodecOutput]]] = {
            Source.STDERR: lambda line: (LogLine(line.decode("utf-8", "replace"), "stderr"),),
            Source.STDIN: self._receive_stdin,
        }

    def start(self) -> Iterable[CodecOutput]:
        """Begin the handshake with the runtime."""
        return self._turns.start()

    def receive(self, line: bytes, source: Source) -> Iterable[CodecOutput]:
        """Return the steps for one message."""
        if source is STDOUT:
            return self._receive(line)
        return self._sources[source](line)

    def request(self, action: AnyAction) -> Iterable[CodecOutput]:
        """Return the steps that perform an action of the consumer."""
        return dispatch_action(action, self._turns, self._approvals.reply)

    def finish(self, exit: Exit) -> Iterable[CodecOutput]:  # noqa: A002, ARG002  # as in the contract
        """Return the facts that were kept back, when the process has exited."""
        return self._reader.finish()

    # -- a message of the runtime

    def _receive(self, line: bytes) -> Iterable[CodecOutput]:
        delta = delta_of_notification(line)
        if delta is not None:
            return self._reader.delta(delta)
        message = load_object(line)
        if message is None:
            return (LogLine(line.decode("utf-8", "replace")),)
        method = message.get("method")
        if isinstance(method, str):
            if "id" in message:
                return self._requested(method, message["id"], message.get("params"), line)
            return without_redundant_ignored(self._notified(method, mapping(message.get("params")), line), Ignored)
        if "id" in message and ("result" in message or "error" in message):
            return without_redundant_ignored(self._responded(message), Ignored)
        return _unknown("message", line)

    def _notified(self, method: str, params: Mapping[str, Any], line: bytes) -> tuple[CodecOutput, ...]:
        if method in IGNORED_NOTIFICATIONS:
            return (Ignored(method, IGNORED_NOTIFICATIONS[method]),)
        event = params.get("event")
        if method != EVENT or not isinstance(event, dict):
            return _unknown(method, line)
        facts = self._reader.read(event)
        if facts is None:
            return _unknown(text(event.get("type")) or EVENT, line)
        return *facts, *self._update_turns(event)

    def _update_turns(self, event: Mapping[str, Any]) -> tuple[CodecOutput, ...]:  # noqa: PLR0911  # a table
        """Report the events of the main agent to `CopilotTurns`, and return what it sends."""
        if agent_of(event):
            return ()
        data = mapping(event.get("data"))
        match event.get("type"):
            case "user.message":
                return self._turns.message_shown(data)
            case "assistant.turn_start":
                return self._turns.model_call_started()
            case "session.error":
                return self._turns.failed(data)
            case "assistant.idle":
                return self._turns.turn_over()
            case "session.idle":
                return self._turns.session_idle()
        return ()

    def _requested(self, method: str, raw_id: Any, params: Any, line: bytes) -> tuple[CodecOutput, ...]:
        facts = self._approvals.question_asked(raw_id, params) if method == QUESTION else None
        if facts is not None:
            return facts
        why = f"agent-mux does not offer {method}"
        refusal = () if self._is_observed else (WriteStdin(self._rpc.respond_error(raw_id, METHOD_NOT_FOUND, why)),)
        noted = (Ignored(method, "not offered"),) if method in _REFUSED else _unknown(method, line)
        return *noted, *refusal

    def _responded(self, message: dict[str, Any]) -> tuple[CodecOutput, ...]:
        asked = self._rpc.take_request(message["id"])
        if message.get("error") is not None:
            error = RpcError.read(message["error"])
            if asked is None:
                return (Note(f"copilot refused a request: {error.message}", "warn"),)
            return self._turns.refused(asked, error)
        result = message.get("result")
        if asked is None and "workspacePath" in mapping(result):
            asked = PendingRequest(
                "session.create"
            )  # in a transcript without stdin, the response is recognized by its shape
        if asked is None:
            return (Ignored("response", "a response without a known request"),)
        return self._turns.answered(asked, result)

    # -- a message of another client

    def _receive_stdin(self, line: bytes) -> Iterable[CodecOutput]:
        message = load_object(line)
        if message is None:
            return (Note("a message to copilot is not a JSON object", "warn"),)
        method = message.get("method")
        if isinstance(method, str):
            if "id" in message:
                self._rpc.observe_request(message["id"], method, message.get("params"))
            return (Ignored(f"stdin:{method}", "our own side"),)
        if "id" in message:
            return self._approvals.observe_answer(message["id"], granted=message.get("error") is None)
        return _unknown("stdin", line)


def _unknown(kind: str, line: bytes) -> tuple[CodecOutput, ...]:
    return (Unknown(kind, line.decode("utf-8", "replace")),)


def is_headless_line(value: Any) -> bool:
    """Return whether only the headless runtime prints this message."""
    line = mapping(value)
    method, result = line.get("method"), mapping(line.get("result"))
    params = mapping(line.get("params"))
    if method == EVENT:
        return "event" in params and "sessionId" in params
    if method == "session.lifecycle":
        return text(params.get("type")).startswith("session.")
    return ("taskKinds" in result and "protocolVersion" in result) or ("workspacePath" in result and "mode" in result)
