"""Both sides of a conversation with the app-server, as a test reads best: what we do, and what comes of it."""

from typing import Any

from codex_recordings import APP_SERVER, OWN_THREAD, new_codec
from tests.unit.adapters import talking

from agent_mux.adapter import Step


class Talk(talking.Talk):
    """A live codec, and a server that says what the test wants."""

    def __init__(self, **context: Any) -> None:
        super().__init__(new_codec(APP_SERVER, **{"prompt": "hello", **context}))

    def answers(self, request_id: int, result: Any) -> list[Step]:
        return self.says({"id": request_id, "result": result})

    def refuses(self, request_id: int, message: str) -> list[Step]:
        return self.says({"id": request_id, "error": {"code": -32600, "message": message}})

    def tells(self, method: str, **params: Any) -> list[Step]:
        return self.says({"method": method, "params": {"threadId": OWN_THREAD, **params}})

    def asks(self, request_id: Any, method: str, **params: Any) -> list[Step]:
        return self.says({"method": method, "id": request_id, "params": {"threadId": OWN_THREAD, **params}})

    def begins(self, turn: str) -> list[Step]:
        return self.tells("turn/started", turn={"id": turn, "status": "inProgress"})

    def ends(self, turn: str, status: str = "completed", **fields: Any) -> list[Step]:
        return self.tells("turn/completed", turn={"id": turn, "status": status, **fields})

    def opened(self) -> "Talk":
        """The handshake is over; the first prompt, if there is one, is sent."""
        self.answers(1, {"userAgent": "x", "codexHome": "/home/dev/.codex"})
        self.answers(2, {"thread": {"id": OWN_THREAD, "turns": []}, "model": "gpt-5.5"})
        return self

    def running(self) -> "Talk":
        """The first turn runs."""
        self.opened()
        self.begins("turn-1")
        self.sent()
        return self


def start(number: int, text: str, **params: Any) -> dict[str, Any]:
    """Our `turn/start`."""
    prompt = {"threadId": OWN_THREAD, "input": [{"type": "text", "text": text}], **params}
    return {"id": number, "method": "turn/start", "params": prompt}
