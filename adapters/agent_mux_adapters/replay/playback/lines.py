"""Native lines as the player sees them: their kind, how requests and answers belong together, and their framing.

Two families are known: JSON-RPC (Codex, ACP) and the control requests of Claude Code. All other lines are of the kind
`aside`: they may come on stdin or not.
"""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

PROMPT = "prompt"
STEER = "steer"
INTERRUPT = "interrupt"
ANSWER = "answer"
HANDSHAKE = "handshake"
ASIDE = "aside"
"""Kinds of lines that an agent receives."""

ASK = "ask"
RESPONSE = "response"
TURN = "turn"
NOTICE = "notice"
"""Kinds of lines that an agent prints."""

NEEDED = frozenset({PROMPT, STEER, INTERRUPT, ANSWER})
"""Kinds that a consumer decides: the recording continues only if this run sends the same."""

_RPC_KINDS = {
    "initialize": (HANDSHAKE, "initialize"),
    "initialized": (HANDSHAKE, "initialized"),
    "thread/start": (HANDSHAKE, "session"),
    "thread/resume": (HANDSHAKE, "session"),
    "thread/fork": (HANDSHAKE, "session"),
    "session/new": (HANDSHAKE, "session"),
    "session/load": (HANDSHAKE, "session"),
    "turn/start": (PROMPT, ""),
    "session/prompt": (PROMPT, ""),
    "turn/steer": (STEER, ""),
    "turn/interrupt": (INTERRUPT, ""),
    "session/cancel": (INTERRUPT, ""),
}
_CONTROL_KINDS = {"initialize": (HANDSHAKE, "initialize"), "interrupt": (INTERRUPT, "")}

LINES = "lines"
CONTENT_LENGTH = "content-length"
CHUNKS = "chunks"  # a terminal: no messages, and pauses are significant
_LENGTH_HEADER = b"content-length:"


class ReplayLine(NamedTuple):
    """A native line: its kind, its subject, and the id that connects a request and its answer."""

    kind: str
    about: str = ""
    """For handshakes and asides, the method; for answers, `allow`, `deny`, `error` or `done`."""
    key: str | None = None
    """The id as JSON text, so that 1 and "1" differ."""

    def __str__(self) -> str:
        of_request = f" to request {self.key}" if self.kind == ANSWER else ""
        return f"{self.kind}{of_request}{f' ({self.about})' if self.about else ''}"


def parse_sent(data: bytes) -> ReplayLine:
    """Parse a line that the agent receives."""
    native = _load(data)
    if native is None:
        return ReplayLine(ASIDE, "not a JSON object")
    if "type" in native:
        return _sent_control(native)
    key = _key(native.get("id"))
    if "method" not in native:
        return ReplayLine(ANSWER, "error" if "error" in native else _verdict(native.get("result")), key)
    method = str(native["method"])
    kind, about = _RPC_KINDS.get(method, (ASIDE, method))
    return ReplayLine(kind, about, key)


def parse_printed(data: bytes) -> ReplayLine:
    """Parse a line that the agent prints."""
    native = _load(data)
    if native is None:
        return ReplayLine(NOTICE)
    if "type" in native:
        return _printed_control(native)
    if "id" not in native:
        return ReplayLine(NOTICE)
    return ReplayLine(ASK if "method" in native else RESPONSE, key=_key(native["id"]))


def with_key(data: bytes, key: str) -> bytes:
    """Return a response with the id of this run's request."""
    native = json.loads(data)
    if "type" in native:
        native["response"]["request_id"] = json.loads(key)
    else:
        native["id"] = json.loads(key)
    return json.dumps(native, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "surrogatepass") + b"\n"


def _sent_control(native: Mapping[str, Any]) -> ReplayLine:
    request, response = _mapping(native.get("request")), _mapping(native.get("response"))
    match native["type"]:
        case "user":
            return ReplayLine(PROMPT)
        case "control_request":
            subtype = str(request.get("subtype"))
            kind, about = _CONTROL_KINDS.get(subtype, (ASIDE, subtype))
            return ReplayLine(kind, about, _key(native.get("request_id")))
        case "control_response":
            failed = response.get("subtype") == "error"
            about = "error" if failed else _verdict(response.get("response"))
            return ReplayLine(ANSWER, about, _key(response.get("request_id")))
    return ReplayLine(ASIDE, str(native["type"]))


def _printed_control(native: Mapping[str, Any]) -> ReplayLine:
    match native["type"], native.get("subtype"):
        case "control_request", _:
            return ReplayLine(ASK, key=_key(native.get("request_id")))
        case "control_response", _:
            return ReplayLine(RESPONSE, key=_key(_mapping(native.get("response")).get("request_id")))
        case "system", "init":
            return ReplayLine(TURN)
    return ReplayLine(NOTICE)


def _verdict(result: Any) -> str:
    """Return whether an answer grants or refuses: in Claude's `behavior`, or Codex's `decision` or `action`."""
    fields = _mapping(result)
    decision = fields.get("behavior") or fields.get("decision") or fields.get("action")
    word = next(iter(decision), "") if isinstance(decision, dict) else decision
    if not isinstance(word, str):
        return "done"
    return "allow" if word.startswith(("allow", "accept", "approve")) else "deny"


def _load(data: bytes) -> dict[str, Any] | None:
    try:
        native = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return native if isinstance(native, dict) else None


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _key(value: Any) -> str | None:
    return None if value is None else json.dumps(value)


# -- framing


def wrap_message(line: bytes) -> bytes:
    """Return a line as a message with a `Content-Length` header."""
    body = line.rstrip(b"\n")
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


class MessageUnwrapper:
    """A splitter of messages with `Content-Length` headers into lines."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, chunk: bytes) -> list[bytes]:
        """Return the messages that this chunk completes, each as a line."""
        self._rest += chunk
        found = []
        while (message := self._next()) is not None:
            found.append(message.replace(b"\n", b" ") + b"\n")
        return found

    def _next(self) -> bytes | None:
        head, separator, body = self._rest.partition(b"\r\n\r\n")
        length = next(
            (int(line[len(_LENGTH_HEADER) :]) for line in head.splitlines() if line.lower().startswith(_LENGTH_HEADER)),
            None,
        )
        if not separator or length is None or len(body) < length:
            return None
        self._rest = body[length:]
        return body[:length]
