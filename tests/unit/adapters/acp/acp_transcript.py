"""Both sides of an ACP conversation, as a test reads best. Whatever we send is checked against the official models."""

from typing import Any

from acp import schema
from pydantic import BaseModel, TypeAdapter
from tests.unit.adapters import codec_conversation
from tests.unit.adapters.codec_conversation import PROJECT, as_line, facts_of

from agent_mux.sdk.codec import Codec, CodecContext, CodecOutput, Effect, Source, WriteStdin
from agent_mux_adapters._dialects.acp import AcpCodec, AcpQuirks

OWN = "session-1"
OURS: dict[str, type[BaseModel]] = {
    "authenticate": schema.AuthenticateRequest,
    "initialize": schema.InitializeRequest,
    "session/cancel": schema.CancelNotification,
    "session/fork": schema.ForkSessionRequest,
    "session/load": schema.LoadSessionRequest,
    "session/new": schema.NewSessionRequest,
    "session/prompt": schema.PromptRequest,
    "session/resume": schema.ResumeSessionRequest,
    "session/set_config_option": schema.SetSessionConfigOptionSelectRequest,
    "session/set_mode": schema.SetSessionModeRequest,
}
REPLIES: dict[str, Any] = {
    "fs/write_text_file": schema.WriteTextFileResponse,
    "elicitation/create": schema.CreateElicitationResponse,
    "session/request_permission": schema.RequestPermissionResponse,
}
NOT_IN_THE_SCHEMA = frozenset({"session/set_model"})  # it came before configuration options, and is still in use
ALLOW_OR_NOT = (
    {"optionId": "once", "kind": "allow_once", "name": "Allow"},
    {"optionId": "always", "kind": "allow_always", "name": "Always allow"},
    {"optionId": "no", "kind": "reject_once", "name": "Reject"},
)
ABLE = {
    "loadSession": True,
    "mcpCapabilities": {"http": True, "sse": False},
    "promptCapabilities": {"image": True},
    "sessionCapabilities": {"fork": {}, "resume": {}},
}


def new_codec(quirks: AcpQuirks | None = None, **context: Any) -> Codec:
    settings = {"agent": "acp", "protocol": "acp", "cwd": PROJECT, **context}
    return AcpCodec(CodecContext(**settings), quirks or AcpQuirks(agent="x"))


def receive(codec: Codec, *lines: Any, source: Source = Source.STDOUT) -> list[CodecOutput]:
    """Return the steps of these lines; anything but bytes is sent as a message."""
    return codec_conversation.receive(codec, *map(spelled, lines), source=source)


def spelled(message: Any) -> bytes:
    return message if isinstance(message, bytes) else as_line({"jsonrpc": "2.0", **message})


class AcpConversation(codec_conversation.CodecConversation):
    """A live codec, and an agent whose messages the test scripts."""

    def __init__(self, quirks: AcpQuirks | None = None, **context: Any) -> None:
        self._asked: dict[Any, str] = {}
        super().__init__(new_codec(quirks, **{"prompt": "hello", **context}))

    # -- the agent

    def receive(self, *lines: Any) -> list[CodecOutput]:
        return super().receive(*map(spelled, lines))

    def receive_response(self, request_id: int, result: Any) -> list[CodecOutput]:
        return self.receive({"id": request_id, "result": result})

    def receive_error(self, request_id: int, message: str, code: int = -32603, **more: Any) -> list[CodecOutput]:
        return self.receive({"id": request_id, "error": {"code": code, "message": message, **more}})

    def receive_update(self, kind: str, session: str = OWN, /, **fields: Any) -> list[CodecOutput]:
        return self.receive(update(kind, session, **fields))

    def speaks(self, text: str, **fields: Any) -> list[CodecOutput]:
        return self.receive_update("agent_message_chunk", content={"type": "text", "text": text}, **fields)

    def thinks(self, text: str, **fields: Any) -> list[CodecOutput]:
        return self.receive_update("agent_thought_chunk", content={"type": "text", "text": text}, **fields)

    def receive_request(self, request_id: Any, method: str, **params: Any) -> list[CodecOutput]:
        self._asked[request_id] = method
        return self.receive({"id": request_id, "method": method, "params": {"sessionId": OWN, **params}})

    def asks_permission(self, request_id: Any, call: str, **fields: Any) -> list[CodecOutput]:
        options = fields.pop("options", ALLOW_OR_NOT)
        tool_call = {"toolCallId": call, **fields}
        return self.receive_request(request_id, "session/request_permission", toolCall=tool_call, options=list(options))

    def opened(self, able: Any = None, **session: Any) -> "AcpConversation":
        """The handshake is over; the first prompt, if there is one, is sent."""
        self.receive_response(1, {"protocolVersion": 1, "agentCapabilities": ABLE if able is None else able})
        self.receive_response(2, {"sessionId": OWN, **session})
        return self

    def prompted(self, able: Any = None) -> "AcpConversation":
        """The agent works on the first prompt (request 3)."""
        self.opened(able)
        self.sent()
        self.steps.clear()
        self._read = 0
        return self

    # -- we

    def facts(self, *kinds: type) -> list[Any]:
        return facts_of(self.steps, *kinds)

    def format_effect(self, effect: Effect) -> Any:
        """Whatever we send is valid."""
        message = super().format_effect(effect)
        if isinstance(effect, WriteStdin):
            check(message, self._asked.get(message.get("id")))
            assert message.pop("jsonrpc") == "2.0"
        return message


def check(message: dict[str, Any], asked: str | None = None) -> None:
    """The message is as the official models want it, and none of it is lost in them."""
    method = message.get("method")
    if method is not None:
        assert method in OURS or method in NOT_IN_THE_SCHEMA, method
        if method in OURS:
            check_fits(OURS[method], message["params"])
    elif "error" in message:
        check_fits(schema.Error, message["error"])
    else:
        assert asked is not None, message
        check_fits(REPLIES[asked], message["result"])


def check_fits(model: Any, value: Any) -> None:
    adapter = TypeAdapter(model)
    dumped = adapter.dump_python(adapter.validate_python(value), mode="json", by_alias=True, exclude_unset=True)
    assert dumped == value, (dumped, value)


def update(kind: str, session: str = OWN, /, **fields: Any) -> dict[str, Any]:
    params = {"sessionId": session, "update": {"sessionUpdate": kind, **fields}}
    return {"method": "session/update", "params": params}


def prompt(number: int, text: str, *blocks: Any, session: str = OWN) -> dict[str, Any]:
    """Our `session/prompt`."""
    params = {"sessionId": session, "prompt": [{"type": "text", "text": text}, *blocks]}
    return {"id": number, "method": "session/prompt", "params": params}


CANCEL = {"method": "session/cancel", "params": {"sessionId": OWN}}
