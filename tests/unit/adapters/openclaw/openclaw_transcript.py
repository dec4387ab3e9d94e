"""What the tests of OpenClaw share: codecs, and both sides of a conversation."""

import json
from typing import Any

from agent_mux.actions import AnyAction
from agent_mux.adapter import Codec, CodecContext, Source, Step
from agent_mux.effects import CloseStdin, Effect, WriteStdin
from agent_mux.facts import Fact
from agent_mux_adapters.openclaw import ADAPTER
from agent_mux_adapters.openclaw.argv import ACP, EXEC

__all__ = ["ACP", "ADAPTER", "EXEC", "SESSION", "Talk", "facts", "new_codec", "receive"]

SESSION = "11111111-2222-4333-8444-555555555555"
RUN = "99999999-2222-4333-8444-555555555555"


def new_codec(protocol: str, **context: Any) -> Codec:
    return ADAPTER.protocols[protocol].codec(CodecContext(agent="openclaw", protocol=protocol, cwd="/work", **context))


def receive(codec: Codec, *lines: Any, source: Source = Source.STDOUT) -> list[Step]:
    told = []
    for line in lines:
        raw = line if isinstance(line, bytes) else json.dumps(line, separators=(",", ":")).encode()
        new = list(codec.receive(raw, source))
        assert new, f"nothing is said about {line!r}"
        told += new
    return told


def facts(steps: list[Step]) -> list[Fact]:
    return [step for step in steps if isinstance(step, Fact)]


def effects(steps: list[Step]) -> list[Effect]:
    return [step for step in steps if isinstance(step, Effect)]


class Talk:
    """A live codec, a bridge that says what the test wants, and a gateway that writes down what it wants."""

    def __init__(self, *, hears_gateway: bool = True, **context: Any) -> None:
        self.codec = new_codec(ACP, **{"prompt": "hello", **context})
        self.steps = list(self.codec.start())
        self._read = 0
        self._at = 1_000_000
        if hears_gateway:
            self.notifies("listening")

    # -- the bridge

    def says(self, *lines: Any) -> list[Step]:
        new = receive(self.codec, *({"jsonrpc": "2.0", **line} for line in lines))
        self.steps += new
        return new

    def answers(self, request_id: int, result: Any) -> list[Step]:
        return self.says({"id": request_id, "result": result})

    def tells(self, kind: str, /, **update: Any) -> list[Step]:
        params = {"sessionId": SESSION, "update": {"sessionUpdate": kind, **update}}
        return self.says({"method": "session/update", "params": params})

    def chunk(self, text: str) -> list[Step]:
        return self.tells("agent_message_chunk", content={"type": "text", "text": text})

    def calls(self, call_id: str, name: str, kind: str = "other", **given: Any) -> list[Step]:
        pairs = ", ".join(f"{key}: {value}" for key, value in given.items())
        title = f"{name}: {pairs}" if pairs else name
        return self.tells("tool_call", toolCallId=call_id, title=title, status="in_progress", rawInput=given, kind=kind)

    def runs(self, call_id: str, command: str, **given: Any) -> list[Step]:
        return self.calls(call_id, "exec", "execute", command=command, **given)

    def prints(self, call_id: str, text: str, ended: str = "in_progress", /, **details: Any) -> list[Step]:
        return self.tells(
            "tool_call_update",
            toolCallId=call_id,
            status=ended,
            rawOutput={"content": [{"type": "text", "text": text}], "details": details},
            content=[{"type": "content", "content": {"type": "text", "text": text}}],
        )

    def exits(self, call_id: str, text: str, code: int = 0) -> list[Step]:
        return self.prints(call_id, text, "completed", status="completed", exitCode=code, aggregated=text)

    def ends(self, request_id: int = 3, reason: str = "end_turn") -> list[Step]:
        return self.answers(request_id, {"stopReason": reason})

    def opened(self) -> "Talk":
        """The session is open; the first prompt, if there is one, is sent."""
        sessions: dict[str, Any] = {"list": {}, "resume": {}, "close": {}}
        able = {"loadSession": True, "promptCapabilities": {"image": True}, "sessionCapabilities": sessions}
        self.answers(1, {"protocolVersion": 1, "agentCapabilities": able})
        self.answers(2, {"sessionId": SESSION})
        self.sent()
        return self

    # -- the gateway

    def notifies(self, what: str, **params: Any) -> list[Step]:
        return self.says({"method": f"_agent_mux/{what}", "params": params})

    def writes(self, text: str, thought: str = "", run: str = RUN, at: int | None = None) -> list[Step]:
        """A whole answer."""
        self._at += 1
        entry = {"event": "assistant_message_end", "runId": run, "rawText": text, "rawThinking": thought}
        return self.notifies("answer", ts=self._at if at is None else at, **entry)

    def thinks(self, thought: str) -> list[Step]:
        self._at += 1
        entry = {"event": "assistant_thinking_stream", "evtType": "thinking_end", "runId": RUN, "content": thought}
        return self.notifies("answer", ts=self._at, **entry)

    def logs(self, message: str = "", **entry: Any) -> list[Step]:
        self._at += 1
        time = f"1970-01-01T00:{self._at // 60_000:02}:{self._at // 1000 % 60:02}.{self._at % 1000:03}+00:00"
        return self.notifies("log", time=time, message=message, **entry)

    def fails(self, error: str, **entry: Any) -> list[Step]:
        return self.logs("embedded run agent end", event="embedded_run_agent_end", isError=True, error=error, **entry)

    def retries(self, reason: str = "timeout") -> list[Step]:
        return self.logs(f"transient same-model retry 1/8 for a/b reason={reason}: delayMs=1200")

    # -- we

    def asks(self, action: AnyAction) -> list[Step]:
        new = list(self.codec.request(action))
        self.steps += new
        return new

    def sent(self) -> list[Any]:
        """What went to the bridge since the last look."""
        new, self._read = self.steps[self._read :], len(self.steps)
        return [
            json.loads(step.data) if isinstance(step, WriteStdin) else "end of input"
            for step in new
            if isinstance(step, WriteStdin | CloseStdin)
        ]
