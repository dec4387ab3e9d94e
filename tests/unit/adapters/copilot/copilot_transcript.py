"""A simulated Copilot runtime for tests of both directions, and the recordings of Copilot."""

import json
from typing import Any

from tests.unit.adapters import codec_conversation
from tests.unit.adapters.codec_conversation import PROJECT, facts_of, receive
from tests.unit.adapters.recordings import Recordings

from agent_mux.sdk.codec import Codec, CodecContext, CodecOutput, Effect, Exit, WriteStdin
from agent_mux_adapters.copilot import ADAPTER
from agent_mux_adapters.copilot.argv import HEADLESS, JSON
from agent_mux_adapters.copilot.requests import HeadlessContext

RECORDINGS = Recordings(ADAPTER, JSON)
NAMES = RECORDINGS.in_known_protocols
recording, events_of = RECORDINGS.get, RECORDINGS.events
SESSION = "11111111-2222-4333-8444-555555555555"


def new_codec(protocol: str = HEADLESS, **context: Any) -> Codec:
    """Return a codec with this context. Without a prompt it only observes."""
    kind = HeadlessContext if protocol == HEADLESS else CodecContext
    return ADAPTER.protocols[protocol].codec(
        kind(**{"agent": "copilot", "protocol": protocol, "cwd": PROJECT, **context})
    )


def event(kind: str, agent: str | None = None, /, **data: Any) -> dict[str, Any]:
    """Return a session event as `--output-format json` prints it."""
    envelope = {"id": "e", "timestamp": "2026-11-22T02:00:00.000Z", "parentId": None}
    return {"type": kind, "data": data, **envelope, **({"agentId": agent} if agent else {})}


def facts_from(*events: dict[str, Any], **context: Any) -> list[CodecOutput]:
    """Return the facts of these events."""
    return facts_of(receive(new_codec(JSON, **context), *events))


def done_with(call_id: str, content: str = "", **data: Any) -> dict[str, Any]:
    """Return the event of a call that succeeded."""
    result = {"content": content, **data.pop("result", {})}
    return event("tool.execution_complete", toolCallId=call_id, success=True, result=result, **data)


def failed_with(call_id: str, message: str) -> dict[str, Any]:
    """Return the event of a call that failed."""
    return event("tool.execution_complete", toolCallId=call_id, success=False, error={"message": message})


def calls(call_id: str, name: str, **arguments: Any) -> dict[str, Any]:
    """Return the event of the start of a call."""
    return event("tool.execution_start", toolCallId=call_id, toolName=name, arguments=arguments)


class CopilotConversation(codec_conversation.CodecConversation):
    """A headless codec of a live run, and a runtime that the test controls."""

    def __init__(self, **context: Any) -> None:
        super().__init__(new_codec(**{"prompt": "hello", **context}))

    def receive_response(self, request_id: int, result: Any) -> list[CodecOutput]:
        return self.receive({"jsonrpc": "2.0", "id": request_id, "result": result})

    def receive_error(self, request_id: int, message: str) -> list[CodecOutput]:
        return self.receive({"jsonrpc": "2.0", "id": request_id, "error": {"code": -32603, "message": message}})

    def receive_notification(self, kind: str, agent: str | None = None, /, **data: Any) -> list[CodecOutput]:
        params = {"sessionId": SESSION, "event": event(kind, agent, **data)}
        return self.receive({"jsonrpc": "2.0", "method": "session.event", "params": params})

    def receive_request(self, request_id: Any, method: str, **params: Any) -> list[CodecOutput]:
        return self.receive({"jsonrpc": "2.0", "id": request_id, "method": method, "params": params})

    def opened(self) -> "CopilotConversation":
        """Complete the handshake; the codec sends the first prompt."""
        self.receive_response(1, {"protocolVersion": 3})
        self.receive_response(2, {"sessionId": SESSION, "workspacePath": "/w"})
        return self

    def running(self) -> "CopilotConversation":
        """Complete the handshake and begin the first turn. The requests 1 to 4 are consumed."""
        self.opened()
        self.receive_response(3, {"success": True})
        self.takes_up(4, "m1")
        self.sent()
        return self

    def takes_up(self, request_id: int, message: str) -> None:
        """Accept a prompt and begin its turn."""
        self.receive_response(request_id, {"messageId": message})
        self.receive_notification("user.message", messageId=message, content="hello")
        self.receive_notification("assistant.turn_start", turnId="0")

    def hands_back(self, *, aborted: bool = False) -> list[CodecOutput]:
        """End the turn, with nothing in the background."""
        return [
            *self.receive_notification("assistant.idle", aborted=aborted),
            *self.receive_notification("session.idle"),
        ]

    # -- our side

    def methods(self) -> list[str]:
        """Return the methods that were sent since the last call."""
        return [one if isinstance(one, str) else one["method"] for one in self.sent()]

    def facts(self) -> list[CodecOutput]:
        return facts_of(self.steps)

    def format_effect(self, effect: Effect) -> Any:
        if not isinstance(effect, WriteStdin):
            return super().format_effect(effect)
        head, _, body = effect.data.partition(b"\r\n\r\n")
        assert head == b"Content-Length: %d" % len(body)
        return json.loads(body)


def gone(codec: Codec, code: int = 0) -> list[CodecOutput]:
    """Return the facts that are emitted when the process has exited."""
    return facts_of(codec.finish(Exit(code=code)))
