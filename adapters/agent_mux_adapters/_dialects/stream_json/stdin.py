"""What is written to the agent: one JSON object per line. Source: the recorded control protocol of Claude 2.1.330."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from agent_mux.effects import WriteStdin

# JavaScript's line readers may break a line at these, which JSON allows raw in strings.
RAW_SEPARATORS = ((b"\xe2\x80\xa8", b"\\u2028"), (b"\xe2\x80\xa9", b"\\u2029"))


def write(message: Mapping[str, Any]) -> WriteStdin:
    """One line."""
    line = msgspec.json.encode(message)
    for raw, escaped in RAW_SEPARATORS:
        line = line.replace(raw, escaped)
    return WriteStdin(line + b"\n")


def prompt(said: str) -> WriteStdin:
    """A message of the user."""
    # A lone surrogate (from an argument that is no UTF-8) cannot be encoded: it becomes U+FFFD.
    content = said.encode("utf-8", "surrogatepass").decode("utf-8", "replace")
    message = {"role": "user", "content": content}
    return write({"type": "user", "message": message, "parent_tool_use_id": None, "session_id": ""})


def control(request_id: str, subtype: str, **fields: Any) -> WriteStdin:
    """A request of ours."""
    return write({"type": "control_request", "request_id": request_id, "request": {"subtype": subtype, **fields}})


def answer(request_id: str, response: Mapping[str, Any]) -> WriteStdin:
    """The answer to a request of the agent."""
    return write(
        {
            "type": "control_response",
            "response": {"subtype": "success", "request_id": request_id, "response": response},
        }
    )


def cannot(request_id: str, error: str) -> WriteStdin:
    """The answer to a request that nobody here understands: without one it would wait for ever."""
    return write(
        {"type": "control_response", "response": {"subtype": "error", "request_id": request_id, "error": error}}
    )


def allow(arguments: Any, permissions: Sequence[Any] = ()) -> dict[str, Any]:
    """The tool may run, with these arguments."""
    remembered = {"updatedPermissions": list(permissions)} if permissions else {}
    return {"behavior": "allow", "updatedInput": arguments, **remembered}


def deny(reason: str) -> dict[str, Any]:
    """The tool may not run; the model reads the reason."""
    return {"behavior": "deny", "message": reason}
