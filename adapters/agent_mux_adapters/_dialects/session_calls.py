"""Requests to a program that changes stored sessions: each is a step, and its response is awaited."""

from collections.abc import Mapping
from typing import Any

from agent_mux.sdk.session_changes import ReceiveMessage, SendMessage, SessionChangeRefusedError, SessionSteps
from agent_mux_adapters._dialects.jsonrpc import RpcError
from agent_mux_adapters._dialects.tolerant import mapping


class SessionRpc:
    """A JSON-RPC client that has one request at a time."""

    def __init__(self, *, with_version: bool) -> None:
        self._head = {"jsonrpc": "2.0"} if with_version else {}
        self._last_id = 0

    def call(self, method: str, params: Mapping[str, Any]) -> SessionSteps[Mapping[str, Any]]:
        """Send a request and return its result. Raises `SessionChangeRefusedError` for an error response."""
        self._last_id += 1
        yield SendMessage({**self._head, "id": self._last_id, "method": method, "params": params})
        while True:
            message = yield ReceiveMessage()
            if "method" in message or message.get("id") != self._last_id:
                continue
            if "error" in message:
                raise SessionChangeRefusedError(f"{method}: {RpcError.read(message['error']).message}")
            return mapping(message.get("result"))
