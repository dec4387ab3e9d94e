"""Both sides of a conversation with the app-server, as a test reads best: what we do, and what comes of it."""

import json
from typing import Any

from codex_recordings import APP_SERVER, OWN_THREAD, effects, new_codec, receive

from agent_mux.actions import AnyAction
from agent_mux.adapter import Step
from agent_mux.effects import CloseStdin, WriteStdin


class Talk:
    """A live codec, and a server that says what the test wants."""

    def __init__(self, **context: Any) -> None:
        self.codec = new_codec(APP_SERVER, **{"prompt": "hello", **context})
        self.steps: list[Step] = []
        self._read = 0
        self.do(self.codec.start())

    def do(self, steps: Any) -> list[Step]:
        self.steps += (new := list(steps))
        return new

    # -- the server

    def says(self, *lines: Any) -> list[Step]:
        return self.do(receive(self.codec, *lines))

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

    # -- we

    def want(self, action: AnyAction) -> list[Step]:
        return self.do(self.codec.request(action))

    def sent(self) -> list[Any]:
        """What was sent since the last look; the end of our input is "EOF"."""
        new = effects(self.steps[self._read :])
        self._read = len(self.steps)
        return [_shown(effect) for effect in new]


def _shown(effect: Any) -> Any:
    match effect:
        case WriteStdin(data):
            assert data.endswith(b"\n")
            assert data.count(b"\n") == 1
            return json.loads(data)
        case CloseStdin():
            return "EOF"
    return effect


def start(number: int, text: str, **params: Any) -> dict[str, Any]:
    """Our `turn/start`."""
    prompt = {"threadId": OWN_THREAD, "input": [{"type": "text", "text": text}], **params}
    return {"id": number, "method": "turn/start", "params": prompt}
