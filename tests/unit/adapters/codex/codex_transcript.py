"""A simulated app-server for tests of both directions of the protocol."""

from typing import Any

from codex_recordings import APP_SERVER, OWN_THREAD, new_codec
from tests.unit.adapters import codec_conversation

from agent_mux.sdk.codec import CodecOutput


class CodexConversation(codec_conversation.CodecConversation):
    """A codec of a live run, and an app-server that the test controls."""

    def __init__(self, **context: Any) -> None:
        super().__init__(new_codec(APP_SERVER, **{"prompt": "hello", **context}))

    def receive_response(self, request_id: int, result: Any) -> list[CodecOutput]:
        return self.receive({"id": request_id, "result": result})

    def receive_error(self, request_id: int, message: str) -> list[CodecOutput]:
        return self.receive({"id": request_id, "error": {"code": -32600, "message": message}})

    def receive_notification(self, method: str, **params: Any) -> list[CodecOutput]:
        return self.receive({"method": method, "params": {"threadId": OWN_THREAD, **params}})

    def receive_request(self, request_id: Any, method: str, **params: Any) -> list[CodecOutput]:
        return self.receive({"method": method, "id": request_id, "params": {"threadId": OWN_THREAD, **params}})

    def begins(self, turn: str) -> list[CodecOutput]:
        return self.receive_notification("turn/started", turn={"id": turn, "status": "inProgress"})

    def ends(self, turn: str, status: str = "completed", **fields: Any) -> list[CodecOutput]:
        return self.receive_notification("turn/completed", turn={"id": turn, "status": status, **fields})

    def opened(self) -> "CodexConversation":
        """Complete the handshake; the codec sends the first prompt, if any."""
        self.receive_response(1, {"userAgent": "x", "codexHome": "/home/dev/.codex"})
        self.receive_response(2, {"thread": {"id": OWN_THREAD, "turns": []}, "model": "gpt-5.5"})
        return self

    def running(self) -> "CodexConversation":
        """Complete the handshake and begin the first turn."""
        self.opened()
        self.begins("turn-1")
        self.sent()
        return self


def start(number: int, text: str, **params: Any) -> dict[str, Any]:
    """Return the `turn/start` that the codec should send."""
    prompt = {"threadId": OWN_THREAD, "input": [{"type": "text", "text": text}], **params}
    return {"id": number, "method": "turn/start", "params": prompt}
