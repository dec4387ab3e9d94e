"""Transcripts of both sides of `opencode serve`: our actions, the server's lines, and the resulting steps."""

from typing import Any

from tests.unit.adapters import codec_conversation
from tests.unit.adapters.codec_conversation import codec_of

from agent_mux.sdk.codec import Codec, CodecOutput, Effect, WriteStdin
from agent_mux_adapters.opencode import ADAPTER

SESSION = "ses_main"
EVENT_ID = "evt_1ffe15a3f001Bmhnafzkwpq01x"
MODEL = {"providerID": "fake", "modelID": "model"}


def new_codec(protocol: str, **context: Any) -> Codec:
    return codec_of(ADAPTER, protocol, **context)


def event(kind: str, properties: dict[str, Any]) -> dict[str, Any]:
    return {"id": EVENT_ID, "type": kind, "properties": properties}


def message(message_id: str, role: str = "assistant", **info: Any) -> dict[str, Any]:
    """Return `message.updated`; with `completed=True` the answer is complete."""
    time = {"created": 1, **({"completed": 2} if info.pop("completed", False) else {})}
    where = info.pop("session", SESSION)
    fields_sent = {"id": message_id, "role": role, "sessionID": where, "time": time, **info}
    return event("message.updated", {"sessionID": where, "info": fields_sent})


def part(message_id: str, kind: str, session: str = SESSION, **fields: Any) -> dict[str, Any]:
    """Return `message.part.updated`."""
    fields_sent = {
        "id": f"prt_{message_id}_{kind}",
        "messageID": message_id,
        "sessionID": session,
        "type": kind,
        **fields,
    }
    return event("message.part.updated", {"sessionID": session, "part": fields_sent})


def text_part(message_id: str, text: str, *, complete: bool = True, **fields: Any) -> dict[str, Any]:
    time = {"start": 1, **({"end": 2} if complete else {})}
    return part(message_id, fields.pop("kind", "text"), text=text, time=time, **fields)


def delta(message_id: str, text: str, kind: str = "text", session: str = SESSION) -> dict[str, Any]:
    fields = {"messageID": message_id, "partID": f"prt_{message_id}_{kind}", "field": "text", "delta": text}
    return event("message.part.delta", {"sessionID": session, **fields})


def tool(call_id: str, name: str, status: str, session: str = SESSION, **state: Any) -> dict[str, Any]:
    """Return the update of a tool part."""
    return part(f"msg_{call_id}", "tool", session, tool=name, callID=call_id, state={"status": status, **state})


def status(kind: str, session: str = SESSION, **fields: Any) -> dict[str, Any]:
    return event("session.status", {"sessionID": session, "status": {"type": kind, **fields}})


def failure(name: str, **data: Any) -> dict[str, Any]:
    return event("session.error", {"sessionID": SESSION, "error": {"name": name, "data": data}})


def step_finish(message_id: str, reason: str = "stop", cost: float = 0.5, session: str = SESSION) -> dict[str, Any]:
    tokens = {"input": 100, "output": 10, "reasoning": 5, "cache": {"read": 30, "write": 2}}
    return part(message_id, "step-finish", session, reason=reason, tokens=tokens, cost=cost)


ANSWERED = [message("m1"), text_part("m1", "done"), step_finish("m1"), message("m1", finish="stop", completed=True)]
"""A model call that answers."""


class OpencodeConversation(codec_conversation.CodecConversation):
    """A live codec, with a server whose lines the test provides."""

    def __init__(self, **context: Any) -> None:
        super().__init__(new_codec("serve", **{"prompt": "hello", **context}))

    def receive_response(self, request_id: int, body: Any = None, status: int = 200) -> list[CodecOutput]:
        return self.receive({"id": request_id, "status": status, "body": body})

    def connects(self) -> list[CodecOutput]:
        return self.receive(event("server.connected", {}))

    def opened(self) -> "OpencodeConversation":
        """Open the session; the first prompt, if any, is sent."""
        self.connects()
        self.receive_response(1, {"fake": {"status": "connected"}})
        self.receive_response(2, {"id": SESSION})
        return self

    def running(self) -> "OpencodeConversation":
        """Let the first turn run."""
        self.opened()
        self.shows("hello")
        self.receive(status("busy"))
        self.sent()
        return self

    def shows(self, prompt: str, message_id: str = "msg_user") -> list[CodecOutput]:
        """Let the session contain a prompt."""
        return self.receive(message(message_id, "user"), part(message_id, "text", text=prompt))

    def rests(self) -> list[CodecOutput]:
        return self.receive(status("idle"), event("session.idle", {"sessionID": SESSION}))

    def format_effect(self, effect: Effect) -> Any:
        """Return the requests, each as `METHOD path` with its body if it has one."""
        line = super().format_effect(effect)
        if not isinstance(effect, WriteStdin):
            return line
        what = f"{line['method']} {line['path']}"
        return (what, line["body"]) if "body" in line else what


def prompt(text: str, **body: Any) -> tuple[str, dict[str, Any]]:
    """Return our request for a prompt."""
    return f"POST /session/{SESSION}/prompt_async", {"parts": [{"type": "text", "text": text}], **body}


ABORT = f"POST /session/{SESSION}/abort"
