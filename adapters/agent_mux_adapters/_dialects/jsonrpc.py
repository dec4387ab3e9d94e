"""JSON-RPC, seen from the client: our requests and the answers to them, apart from the server's requests.

Both sides count their ids for themselves, so the same id may be under way in both directions. A line with a `method`
is never an answer to us.
"""

import json
from typing import Any

import msgspec

from agent_mux.framing import Framing, framed

METHOD_NOT_FOUND = -32601


class RpcError(msgspec.Struct, frozen=True, gc=False):
    """The `error` of an answer. Tolerant: whatever is missing or misshapen is replaced."""

    code: int
    message: str
    data: Any = None
    """Whatever the server adds."""

    @classmethod
    def read(cls, value: Any) -> "RpcError":
        """The error object of an answer, whatever it looks like."""
        fields = value if isinstance(value, dict) else {"message": value}
        code, message = fields.get("code"), fields.get("message")
        whole = isinstance(code, int) and not isinstance(code, bool)
        text = message if isinstance(message, str) else json.dumps(value)
        return cls(code if whole and code is not None else 0, text, fields.get("data"))


class PendingRequest(msgspec.Struct, frozen=True, gc=False):
    """A request of ours that has no answer yet."""

    method: str
    params: Any = None


class JsonRpcClient:
    """Numbers our requests from 1 and remembers what each one asked."""

    def __init__(self, *, with_version: bool, framing: Framing = "lines") -> None:
        self._head = {"jsonrpc": "2.0"} if with_version else {}
        self._framing: Framing = framing
        self._last_id = 0
        self._waiting: dict[str, PendingRequest] = {}

    def request(self, method: str, params: Any) -> bytes:
        """A request; its answer is found with `take`."""
        self._last_id += 1
        self._waiting[key_of(self._last_id)] = PendingRequest(method, params)
        return self._line({"id": self._last_id, "method": method, "params": params})

    def notify(self, method: str, params: Any = None) -> bytes:
        """A notification: nobody answers it."""
        return self._line({"method": method} if params is None else {"method": method, "params": params})

    def respond(self, request_id: Any, result: Any) -> bytes:
        """Our answer to a request of the server."""
        return self._line({"id": request_id, "result": result})

    def respond_error(self, request_id: Any, code: int, message: str) -> bytes:
        """Our refusal of a request of the server."""
        return self._line({"id": request_id, "error": {"code": code, "message": message}})

    def observe_request(self, request_id: Any, method: str, params: Any = None) -> None:
        """Somebody else's request in a transcript: its answer is recognised as if it were ours."""
        self._waiting[key_of(request_id)] = PendingRequest(method, params)

    def take_request(self, request_id: Any) -> PendingRequest | None:
        """The request that this answer belongs to; None when it is not one of ours."""
        return self._waiting.pop(key_of(request_id), None)

    def _line(self, message: dict[str, Any]) -> bytes:
        # The standard library writes integers of any size; a lone surrogate, which no parser takes, becomes "?".
        text = json.dumps({**self._head, **message}, ensure_ascii=False, separators=(",", ":"))
        return framed(self._framing, text.encode("utf-8", "replace"))


def key_of(request_id: Any) -> str:
    """A JSON-RPC id as one text: 1 and "1" are different ids."""
    return json.dumps(request_id)
