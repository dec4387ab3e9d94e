"""A live codec and a scripted gateway: the test performs actions, prints lines, and checks facts and writes."""

import json
from typing import Any

from tests.unit.adapters.codec_conversation import codec_of, without_ignored

from agent_mux.sdk.codec import AnyAction, CloseStdin, Codec, CodecOutput, Source, WriteStdin
from agent_mux_adapters.hermes import ADAPTER
from agent_mux_adapters.hermes.gateway_codec import GATEWAY

LIVE = "4a767b88"
STORED = "20261121_204342_017436"
USAGE = {"input": 100, "output": 20, "reasoning": 5, "prompt": 130, "active_subagents": 0}


def new_codec(protocol: str = GATEWAY, **context: Any) -> Codec:
    return codec_of(ADAPTER, protocol, **context)


def line_of(message: Any) -> bytes:
    return message if isinstance(message, bytes) else json.dumps(message, ensure_ascii=False).encode()


def event(kind: str, /, session: str | None = LIVE, **payload: Any) -> dict[str, Any]:
    where = {} if session is None else {"session_id": session}
    return {"jsonrpc": "2.0", "method": "event", "params": {"type": kind, **where, "payload": payload}}


class HermesConversation:
    """A live codec, and a gateway whose lines the test chooses."""

    def __init__(self, **context: Any) -> None:
        self.codec = new_codec(**{"prompt": "hello", **context})
        self.sent: list[dict[str, Any]] = []
        """Messages that were written and not taken yet."""
        self.is_closed = False
        self.collect(self.codec.start())

    def collect(self, steps: Any) -> list[CodecOutput]:
        others = []
        for step in steps:
            match step:
                case WriteStdin(data):
                    self.sent.append(json.loads(data))
                case CloseStdin():
                    self.is_closed = True
                case _:
                    others.append(step)
        return without_ignored(others)

    def request(self, action: AnyAction) -> list[CodecOutput]:
        return self.collect(self.codec.request(action))

    def prints(self, *lines: Any, source: Source = Source.STDOUT) -> list[CodecOutput]:
        return [step for line in lines for step in self.collect(self.codec.receive(line_of(line), source))]

    def emits(self, kind: str, /, session: str | None = LIVE, **payload: Any) -> list[CodecOutput]:
        return self.prints(event(kind, session=session, **payload))

    def takes(self) -> tuple[str, dict[str, Any]]:
        """Take the oldest written message: its method and parameters. `answers` uses its id."""
        self._asked = self.sent.pop(0)
        return self._asked["method"], self._asked["params"]

    def receive_response(self, **result: Any) -> list[CodecOutput]:
        """Answer the message that was taken last."""
        return self.prints({"jsonrpc": "2.0", "id": self._asked["id"], "result": result})

    def receive_error(self, code: int, message: str) -> list[CodecOutput]:
        return self.prints({"jsonrpc": "2.0", "id": self._asked["id"], "error": {"code": code, "message": message}})

    # -- what happens in every conversation

    def opens(self, **info: Any) -> list[CodecOutput]:
        """Open a new session and build its agent."""
        assert self.takes()[0] == "session.create"
        steps = self.receive_response(
            session_id=LIVE, stored_session_id=STORED, message_count=0, info={"model": "fake-model"}
        )
        return [*steps, *self.is_built(**info)]

    def is_built(self, session: str = LIVE, stored: str = STORED, **info: Any) -> list[CodecOutput]:
        fields = {"model": "fake-model", "running": False, "stored_session_id": stored, "yolo": False, **info}
        return self.emits("session.info", session, **fields)

    def begins(self) -> list[CodecOutput]:
        """Begin a turn with its first model call."""
        return [*self.emits("message.start"), *self.emits("thinking.delta", text="(⊙_⊙) musing...")]

    def ends(
        self, answer: str = "", status: str = "complete", *, is_idle: bool = True, **payload: Any
    ) -> list[CodecOutput]:
        closing = {"text": answer, "usage": USAGE, "status": status, **payload}
        steps = self.emits("message.complete", **closing)
        return [*steps, *self.is_built()] if is_idle else steps


def talk_in_turn(**context: Any) -> HermesConversation:
    """Return a talk whose first turn is running."""
    talk = HermesConversation(**context)
    talk.opens()
    assert talk.takes()[0] == "prompt.submit"
    talk.begins()
    return talk
