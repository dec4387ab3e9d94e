"""Both sides of a conversation over ACP, as a test reads best: what we do, and what comes of it."""

from typing import Any

from gemini_recordings import ACP, new_codec
from tests.unit.adapters import codec_conversation

from agent_mux.sdk.codec import CodecOutput, Effect, SignalGroup

SESSION = "11111111-2222-4333-8444-555555555555"
ALLOW = [
    {"optionId": "proceed_always", "name": "Allow for this session", "kind": "allow_always"},
    {"optionId": "proceed_once", "name": "Allow", "kind": "allow_once"},
    {"optionId": "cancel", "name": "Reject", "kind": "reject_once"},
]


class GeminiConversation(codec_conversation.CodecConversation):
    """A live codec, and a CLI whose messages the test scripts."""

    def __init__(self, **context: Any) -> None:
        super().__init__(new_codec(ACP, **{"prompt": "hello", **context}))

    def receive(self, *lines: Any) -> list[CodecOutput]:
        return super().receive(*({"jsonrpc": "2.0", **line} for line in lines))

    def receive_response(self, request_id: int, result: Any) -> list[CodecOutput]:
        return self.receive({"id": request_id, "result": result})

    def receive_error(self, request_id: int, code: int, message: str, **data: Any) -> list[CodecOutput]:
        return self.receive({"id": request_id, "error": {"code": code, "message": message, **data}})

    def receive_update(self, update_kind: str, **update: Any) -> list[CodecOutput]:
        params = {"sessionId": SESSION, "update": {"sessionUpdate": update_kind, **update}}
        return self.receive({"method": "session/update", "params": params})

    def text(self, text: str, kind: str = "agent_message_chunk") -> list[CodecOutput]:
        return self.receive_update(kind, content={"type": "text", "text": text})

    def receive_request(self, request_id: Any, call_id: str, title: str, **call: Any) -> list[CodecOutput]:
        shown = {"toolCallId": call_id, "status": "pending", "title": title, "content": [], "locations": [], **call}
        params = {"sessionId": SESSION, "options": ALLOW, "toolCall": shown}
        return self.receive({"id": request_id, "method": "session/request_permission", "params": params})

    def ends(self, request_id: int, reason: str = "end_turn", **counted: int) -> list[CodecOutput]:
        quota = {"quota": {"token_count": {"input_tokens": 1, "output_tokens": 2, **counted}}}
        return self.receive_response(request_id, {"stopReason": reason, "_meta": quota})

    def greeted(self) -> "GeminiConversation":
        """The handshake is over; the session is asked for."""
        self.receive_response(
            1, {"protocolVersion": 1, "agentCapabilities": {"loadSession": True, "promptCapabilities": {"image": True}}}
        )
        return self

    def opened(self) -> "GeminiConversation":
        """The session is open; the first prompt, if there is one, is sent."""
        self.greeted()
        self.receive_response(2, {"sessionId": SESSION, "models": {"currentModelId": "gemini-2.5-pro"}})
        self.receive_update("available_commands_update", availableCommands=[])
        return self

    def running(self) -> "GeminiConversation":
        """The first turn runs, and what was sent so far was looked at."""
        self.opened()
        self.sent()
        return self

    def format_effect(self, effect: Effect) -> Any:
        """A signal is its number."""
        return effect.signal if isinstance(effect, SignalGroup) else super().format_effect(effect)


def prompt(request_id: int, text: str) -> dict[str, Any]:
    """Our `session/prompt`."""
    params = {"sessionId": SESSION, "prompt": [{"type": "text", "text": text}]}
    return {"jsonrpc": "2.0", "id": request_id, "method": "session/prompt", "params": params}


def chose(request_id: Any, option: str) -> dict[str, Any]:
    """Our reply to a request for permission."""
    return {"jsonrpc": "2.0", "id": request_id, "result": {"outcome": {"outcome": "selected", "optionId": option}}}
