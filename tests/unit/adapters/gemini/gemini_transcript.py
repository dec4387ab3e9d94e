"""Both sides of a conversation over ACP, as a test reads best: what we do, and what comes of it."""

from typing import Any

from gemini_recordings import ACP, new_codec
from tests.unit.adapters import talking

from agent_mux.sdk.codec import Effect, SignalGroup, Step

SESSION = "11111111-2222-4333-8444-555555555555"
ALLOW = [
    {"optionId": "proceed_always", "name": "Allow for this session", "kind": "allow_always"},
    {"optionId": "proceed_once", "name": "Allow", "kind": "allow_once"},
    {"optionId": "cancel", "name": "Reject", "kind": "reject_once"},
]


class Talk(talking.Talk):
    """A live codec, and a CLI whose messages the test scripts."""

    def __init__(self, **context: Any) -> None:
        super().__init__(new_codec(ACP, **{"prompt": "hello", **context}))

    def says(self, *lines: Any) -> list[Step]:
        return super().says(*({"jsonrpc": "2.0", **line} for line in lines))

    def answers(self, request_id: int, result: Any) -> list[Step]:
        return self.says({"id": request_id, "result": result})

    def refuses(self, request_id: int, code: int, message: str, **data: Any) -> list[Step]:
        return self.says({"id": request_id, "error": {"code": code, "message": message, **data}})

    def updates(self, update_kind: str, **update: Any) -> list[Step]:
        params = {"sessionId": SESSION, "update": {"sessionUpdate": update_kind, **update}}
        return self.says({"method": "session/update", "params": params})

    def text(self, text: str, kind: str = "agent_message_chunk") -> list[Step]:
        return self.updates(kind, content={"type": "text", "text": text})

    def asks(self, request_id: Any, call_id: str, title: str, **call: Any) -> list[Step]:
        shown = {"toolCallId": call_id, "status": "pending", "title": title, "content": [], "locations": [], **call}
        params = {"sessionId": SESSION, "options": ALLOW, "toolCall": shown}
        return self.says({"id": request_id, "method": "session/request_permission", "params": params})

    def ends(self, request_id: int, reason: str = "end_turn", **counted: int) -> list[Step]:
        quota = {"quota": {"token_count": {"input_tokens": 1, "output_tokens": 2, **counted}}}
        return self.answers(request_id, {"stopReason": reason, "_meta": quota})

    def greeted(self) -> "Talk":
        """The handshake is over; the session is asked for."""
        self.answers(
            1, {"protocolVersion": 1, "agentCapabilities": {"loadSession": True, "promptCapabilities": {"image": True}}}
        )
        return self

    def opened(self) -> "Talk":
        """The session is open; the first prompt, if there is one, is sent."""
        self.greeted()
        self.answers(2, {"sessionId": SESSION, "models": {"currentModelId": "gemini-2.5-pro"}})
        self.updates("available_commands_update", availableCommands=[])
        return self

    def running(self) -> "Talk":
        """The first turn runs, and what was sent so far was looked at."""
        self.opened()
        self.sent()
        return self

    def shown(self, effect: Effect) -> Any:
        """A signal is its number."""
        return effect.signal if isinstance(effect, SignalGroup) else super().shown(effect)


def prompt(request_id: int, text: str) -> dict[str, Any]:
    """Our `session/prompt`."""
    params = {"sessionId": SESSION, "prompt": [{"type": "text", "text": text}]}
    return {"jsonrpc": "2.0", "id": request_id, "method": "session/prompt", "params": params}


def chose(request_id: Any, option: str) -> dict[str, Any]:
    """Our reply to a request for permission."""
    return {"jsonrpc": "2.0", "id": request_id, "result": {"outcome": {"outcome": "selected", "optionId": option}}}
