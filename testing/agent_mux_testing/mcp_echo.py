"""A small MCP server on stdio for tests: the tool `echo` returns its text, `boom` fails. Standard library only.

Run it by its path (`python3 mcp_echo.py`), so that an agent can start it in an environment without this package.
"""

import json
import sys
from typing import Any

PROTOCOL_VERSION = "2025-06-18"  # for a client that names no version
METHOD_NOT_FOUND = -32601  # JSON-RPC

TOOLS = [
    {
        "name": "echo",
        "description": "Echo text back",
        "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
    },
    {"name": "boom", "description": "Always fails", "inputSchema": {"type": "object", "properties": {}}},
]


def answer(message: dict[str, Any]) -> dict[str, Any] | None:
    """Return the response to one message; None for notifications."""
    if message.get("id") is None:
        return None
    response = {"jsonrpc": "2.0", "id": message["id"]}
    result = _result(str(message.get("method")), message.get("params") or {})
    if result is None:
        return {**response, "error": {"code": METHOD_NOT_FOUND, "message": f"no such method: {message.get('method')}"}}
    return {**response, "result": result}


def _result(method: str, params: dict[str, Any]) -> dict[str, Any] | None:
    match method:
        case "initialize":
            return {
                "protocolVersion": params.get("protocolVersion", PROTOCOL_VERSION),
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "echo", "version": "0.1"},
            }
        case "tools/list":
            return {"tools": TOOLS}
        case "tools/call":
            return _call(str(params.get("name")), params.get("arguments") or {})
        case "ping":
            return {}
    return None


def _call(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    text = f"echo: {arguments.get('text', '')}" if name == "echo" else f"{name} failed"
    return {"content": [{"type": "text", "text": text}], "isError": name != "echo"}


def main() -> None:
    """Answer messages until stdin ends."""
    for line in sys.stdin:
        response = answer(json.loads(line))
        if response is not None:
            sys.stdout.write(json.dumps(response) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
