"""The one `msgspec` decode of the hot path: only what a streamed fragment needs, everything else is skipped.

All other lines are read as plain objects, see `tolerant`.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from agent_mux.effects import WriteStdin


class Delta(msgspec.Struct, gc=False):
    """The fragment of a `content_block_delta`."""

    type: str = ""
    text: str | None = None
    thinking: str | None = None
    partial_json: str | None = None


class StreamEvent(msgspec.Struct, gc=False):
    """An event of the model's own stream, as far as fragments go."""

    type: str
    index: int = 0
    delta: Delta | None = None


class StreamLine(msgspec.Struct, gc=False):
    """Any line, as far as fragments go. The keys may come in any order: `type` is often the last."""

    type: str
    event: StreamEvent | None = None
    parent_tool_use_id: str | None = None


decode_line = msgspec.json.Decoder(StreamLine).decode


# TODO What is written to the agent: one JSON object per line. Source: the recorded control protocol of Claude 2.1.330.

# JavaScript's line readers may break a line at these, which JSON allows raw in strings.
RAW_SEPARATORS = ((b"\xe2\x80\xa8", b"\\u2028"), (b"\xe2\x80\xa9", b"\\u2029"))


def json_line(message: Mapping[str, Any]) -> WriteStdin:
    """One line."""
    line = msgspec.json.encode(message)
    for raw, escaped in RAW_SEPARATORS:
        line = line.replace(raw, escaped)
    return WriteStdin(line + b"\n")


def user_message(said: str) -> WriteStdin:
    """A message of the user."""
    # A lone surrogate (from an argument that is no UTF-8) cannot be encoded: it becomes U+FFFD.
    content = said.encode("utf-8", "surrogatepass").decode("utf-8", "replace")
    message = {"role": "user", "content": content}
    return json_line({"type": "user", "message": message, "parent_tool_use_id": None, "session_id": ""})


def control_request(request_id: str, subtype: str, **fields: Any) -> WriteStdin:
    """A request of ours."""
    return json_line({"type": "control_request", "request_id": request_id, "request": {"subtype": subtype, **fields}})


def control_response(request_id: str, response: Mapping[str, Any]) -> WriteStdin:
    """The answer to a request of the agent."""
    return json_line(
        {
            "type": "control_response",
            "response": {"subtype": "success", "request_id": request_id, "response": response},
        }
    )


def control_error(request_id: str, error: str) -> WriteStdin:
    """The answer to a request that nobody here understands: without one it would wait for ever."""
    return json_line(
        {"type": "control_response", "response": {"subtype": "error", "request_id": request_id, "error": error}}
    )


def allow_result(arguments: Any, permissions: Sequence[Any] = ()) -> dict[str, Any]:
    """The tool may run, with these arguments."""
    remembered = {"updatedPermissions": list(permissions)} if permissions else {}
    return {"behavior": "allow", "updatedInput": arguments, **remembered}


def deny_result(reason: str) -> dict[str, Any]:
    """The tool may not run; the model reads the reason."""
    return {"behavior": "deny", "message": reason}
