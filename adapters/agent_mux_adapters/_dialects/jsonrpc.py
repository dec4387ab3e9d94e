"""The client side of JSON-RPC: numbered requests, notifications, and responses in both directions.

Each side numbers its own requests, so the same id may be pending in both directions. A message with a `method` is never
a response to one of our requests.
"""

import json
from typing import Any

import msgspec

from agent_mux.sdk.framing import Framing, frame_message

METHOD_NOT_FOUND = -32601


class RpcError(msgspec.Struct, frozen=True, gc=False):
    """The `error` of a response. Missing or malformed fields are replaced by defaults."""

    code: int
    message: str
    data: Any = None
    """Additional data from the server, of any type."""

    @classmethod
    def read(cls, value: Any) -> "RpcError":
        """Parse the error object of a response; accept any value."""
        fields = value if isinstance(value, dict) else {"message": value}
        code, message = fields.get("code"), fields.get("message")
        whole = isinstance(code, int) and not isinstance(code, bool)
        text = message if isinstance(message, str) else json.dumps(value)
        return cls(code if whole and code is not None else 0, text, fields.get("data"))


class PendingRequest(msgspec.Struct, frozen=True, gc=False):
    """One of our requests that has no response yet."""

    method: str
    params: Any = None


class JsonRpcClient:
    """A client that numbers its requests from 1 and remembers each until its response arrives."""

    def __init__(self, *, with_version: bool, framing: Framing = "lines") -> None:
        self._head = {"jsonrpc": "2.0"} if with_version else {}
        self._framing: Framing = framing
        self._last_id = 0
        self._waiting: dict[str, PendingRequest] = {}

    def request(self, method: str, params: Any) -> bytes:
        """Encode a request; `take_request` returns it when its response arrives."""
        self._last_id += 1
        self._waiting[key_of(self._last_id)] = PendingRequest(method, params)
        return self._line({"id": self._last_id, "method": method, "params": params})

    def notify(self, method: str, params: Any = None) -> bytes:
        """Encode a notification, which has no response."""
        return self._line({"method": method} if params is None else {"method": method, "params": params})

    def respond(self, request_id: Any, result: Any) -> bytes:
        """Encode our response to a request of the server."""
        return self._line({"id": request_id, "result": result})

    def respond_error(self, request_id: Any, code: int, message: str) -> bytes:
        """Encode our error response to a request of the server."""
        return self._line({"id": request_id, "error": {"code": code, "message": message}})

    def observe_request(self, request_id: Any, method: str, params: Any = None) -> None:
        """Record a request of another client in a transcript, so that its response is recognized."""
        self._waiting[key_of(request_id)] = PendingRequest(method, params)

    def take_request(self, request_id: Any) -> PendingRequest | None:
        """Remove and return the request that this id belongs to; None when it is not one of ours."""
        return self._waiting.pop(key_of(request_id), None)

    def _line(self, message: dict[str, Any]) -> bytes:
        # The standard library writes integers of any size. An unpaired surrogate, which no parser accepts, becomes "?".
        text = json.dumps({**self._head, **message}, ensure_ascii=False, separators=(",", ":"))
        return frame_message(self._framing, text.encode("utf-8", "replace"))


def key_of(request_id: Any) -> str:
    """Return a JSON-RPC id as a string; 1 and "1" stay different."""
    return json.dumps(request_id)
