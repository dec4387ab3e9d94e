"""Which of Hermes' protocols a line is of."""

from collections.abc import Mapping
from typing import Any

from agent_mux_adapters._dialects.tolerant import mapping, text


def is_gateway_line(line: Mapping[str, Any]) -> bool:
    """An event of the gateway, or its answer to the request that opens a session."""
    if line.get("jsonrpc") != "2.0":
        return False
    if line.get("method") == "event":
        return "." in text(mapping(line.get("params")).get("type"))
    result = mapping(line.get("result"))
    return "session_id" in result and "message_count" in result
