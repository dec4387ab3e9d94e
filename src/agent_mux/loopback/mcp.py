"""A stateless MCP server of Python functions: JSON-RPC messages in, JSON-RPC messages out. No I/O."""

from collections.abc import Mapping, Sequence
from typing import Any

import anyio
import msgspec
from anyio import CapacityLimiter

from agent_mux._util.version import __version__
from agent_mux.loopback.calls import MAX_THREADS
from agent_mux.loopback.functions import ToolFunction, ToolResult

PROTOCOL_VERSIONS = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
"""Supported versions of MCP, newest first."""
INVALID_REQUEST, METHOD_NOT_FOUND, INVALID_PARAMS = -32600, -32601, -32602  # JSON-RPC
MAX_BATCH = 100


class McpTools:
    """Answers the messages of MCP clients."""

    def __init__(self, functions: Sequence[ToolFunction]) -> None:
        self._functions = {function.name: function for function in functions}
        self._threads: CapacityLimiter | None = None  # needs an event loop

    async def answer(self, message: Any) -> Any:
        """Return the response to a message or a batch; None if nothing is to be returned."""
        if not isinstance(message, list):
            return await self._answer_one(message)
        if not 0 < len(message) <= MAX_BATCH:
            return _error(None, INVALID_REQUEST, f"a batch has 1 to {MAX_BATCH} messages")
        answers: list[Any] = [None] * len(message)

        async def answer_at(index: int) -> None:
            answers[index] = await self._answer_one(message[index])

        async with anyio.create_task_group() as tasks:
            for index in range(len(message)):
                tasks.start_soon(answer_at, index)
        return [answer for answer in answers if answer is not None] or None

    async def _answer_one(self, message: Any) -> dict[str, Any] | None:
        if not isinstance(message, Mapping):
            return _error(None, INVALID_REQUEST, "a message is a JSON object")
        if "method" not in message or message.get("id") is None:
            return None  # a notification, or a response although nothing was requested
        request_id, params = message["id"], message.get("params")
        params = params if isinstance(params, Mapping) else {}
        match message["method"]:
            case "initialize":
                result: dict[str, Any] = _initialize(params)
            case "ping":
                result = {}
            case "tools/list":
                result = {"tools": [_description(function) for function in self._functions.values()]}
            case "tools/call":
                function = self._functions.get(str(params.get("name")))
                if function is None:
                    return _error(request_id, INVALID_PARAMS, f"no such tool: {params.get('name')}")
                result = _call_result(await self._call(function, params.get("arguments")))
            case method:
                return _error(request_id, METHOD_NOT_FOUND, f"no such method: {method}")
        return {"jsonrpc": "2.0", "id": request_id, "result": result}

    async def _call(self, function: ToolFunction, arguments: Any) -> ToolResult:
        if arguments is not None and not isinstance(arguments, Mapping):
            return ToolResult(f"invalid arguments for {function.name}: not a JSON object", is_error=True)
        if self._threads is None:
            self._threads = CapacityLimiter(MAX_THREADS)
        return await function.call(arguments or {}, self._threads)


def _initialize(params: Mapping[str, Any]) -> dict[str, Any]:
    wanted = params.get("protocolVersion")
    return {
        "protocolVersion": wanted if wanted in PROTOCOL_VERSIONS else PROTOCOL_VERSIONS[0],
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "agent-mux", "version": __version__},
    }


def _description(function: ToolFunction) -> dict[str, Any]:
    return {"name": function.name, "description": function.description, "inputSchema": function.schema}


def _call_result(result: ToolResult) -> dict[str, Any]:
    answer = {"content": [{"type": "text", "text": result.text}], "isError": result.is_error}
    return answer | _structured_content(result.text)


def _structured_content(text: str) -> dict[str, Any]:
    """Return the structured content of an answer whose text is JSON other than an object; otherwise nothing.

    Gemini CLI takes such text for the structured content, and rejects the answer because that must be an object.
    """
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return {}
    return {} if isinstance(value, dict) else {"structuredContent": {"result": value}}


def _error(request_id: Any, code: int, message: str) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": request_id, "error": {"code": code, "message": message}}
