"""Shared helpers of the OpenClaw tests: codecs, and a scripted bridge and gateway."""

from typing import Any

from tests.unit.adapters import codec_conversation
from tests.unit.adapters.codec_conversation import codec_of

from agent_mux.sdk.codec import Codec, CodecOutput
from agent_mux.sdk.facts import Fact
from agent_mux_adapters.openclaw import ADAPTER
from agent_mux_adapters.openclaw.argv import ACP, EXEC

__all__ = ["ACP", "ADAPTER", "EXEC", "SESSION", "OpenclawConversation", "facts", "new_codec"]

SESSION = "11111111-2222-4333-8444-555555555555"
RUN = "99999999-2222-4333-8444-555555555555"


def new_codec(protocol: str, **context: Any) -> Codec:
    return codec_of(ADAPTER, protocol, **{"cwd": "/work", **context})


def facts(steps: list[CodecOutput]) -> list[Fact]:
    return [step for step in steps if isinstance(step, Fact)]


class OpenclawConversation(codec_conversation.CodecConversation):
    """A live codec, a bridge and a gateway whose output the test chooses."""

    def __init__(self, *, has_gateway: bool = True, **context: Any) -> None:
        super().__init__(new_codec(ACP, **{"prompt": "hello", **context}))
        self._at = 1_000_000
        if has_gateway:
            self.receive_notification("listening")

    # -- the bridge

    def receive(self, *lines: Any) -> list[CodecOutput]:
        return super().receive(*({"jsonrpc": "2.0", **line} for line in lines))

    def receive_response(self, request_id: int, result: Any) -> list[CodecOutput]:
        return self.receive({"id": request_id, "result": result})

    def receive_update(self, kind: str, /, **update: Any) -> list[CodecOutput]:
        params = {"sessionId": SESSION, "update": {"sessionUpdate": kind, **update}}
        return self.receive({"method": "session/update", "params": params})

    def chunk(self, text: str) -> list[CodecOutput]:
        return self.receive_update("agent_message_chunk", content={"type": "text", "text": text})

    def calls(self, call_id: str, name: str, kind: str = "other", **given: Any) -> list[CodecOutput]:
        pairs = ", ".join(f"{key}: {value}" for key, value in given.items())
        title = f"{name}: {pairs}" if pairs else name
        return self.receive_update(
            "tool_call", toolCallId=call_id, title=title, status="in_progress", rawInput=given, kind=kind
        )

    def runs(self, call_id: str, command: str, **given: Any) -> list[CodecOutput]:
        return self.calls(call_id, "exec", "execute", command=command, **given)

    def prints(self, call_id: str, text: str, ended: str = "in_progress", /, **details: Any) -> list[CodecOutput]:
        return self.receive_update(
            "tool_call_update",
            toolCallId=call_id,
            status=ended,
            rawOutput={"content": [{"type": "text", "text": text}], "details": details},
            content=[{"type": "content", "content": {"type": "text", "text": text}}],
        )

    def exits(self, call_id: str, text: str, code: int = 0) -> list[CodecOutput]:
        return self.prints(call_id, text, "completed", status="completed", exitCode=code, aggregated=text)

    def ends(self, request_id: int = 3, reason: str = "end_turn") -> list[CodecOutput]:
        return self.receive_response(request_id, {"stopReason": reason})

    def opened(self) -> "OpenclawConversation":
        """Open the session and skip what was written, the first prompt included."""
        sessions: dict[str, Any] = {"list": {}, "resume": {}, "close": {}}
        able = {"loadSession": True, "promptCapabilities": {"image": True}, "sessionCapabilities": sessions}
        self.receive_response(1, {"protocolVersion": 1, "agentCapabilities": able})
        self.receive_response(2, {"sessionId": SESSION})
        self.sent()
        return self

    # -- the gateway

    def receive_notification(self, what: str, **params: Any) -> list[CodecOutput]:
        return self.receive({"method": f"_agent_mux/{what}", "params": params})

    def writes(self, text: str, thought: str = "", run: str = RUN, at: int | None = None) -> list[CodecOutput]:
        """Record a whole answer."""
        self._at += 1
        entry = {"event": "assistant_message_end", "runId": run, "rawText": text, "rawThinking": thought}
        return self.receive_notification("answer", ts=self._at if at is None else at, **entry)

    def thinks(self, thought: str) -> list[CodecOutput]:
        self._at += 1
        entry = {"event": "assistant_thinking_stream", "evtType": "thinking_end", "runId": RUN, "content": thought}
        return self.receive_notification("answer", ts=self._at, **entry)

    def logs(self, message: str = "", **entry: Any) -> list[CodecOutput]:
        self._at += 1
        time = f"1970-01-01T00:{self._at // 60_000:02}:{self._at // 1000 % 60:02}.{self._at % 1000:03}+00:00"
        return self.receive_notification("log", time=time, message=message, **entry)

    def fails(self, error: str, **entry: Any) -> list[CodecOutput]:
        return self.logs("embedded run agent end", event="embedded_run_agent_end", isError=True, error=error, **entry)

    def retries(self, reason: str = "timeout") -> list[CodecOutput]:
        return self.logs(f"transient same-model retry 1/8 for a/b reason={reason}: delayMs=1200")
