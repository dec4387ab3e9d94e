"""Lines of stream-json: the decoder of the hot path, and the messages that we write.

The decoder reads only what a streamed fragment needs. All other lines are parsed as plain objects, see `tolerant`.
Messages follow the control protocol as recorded with Claude Code 2.1.330.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from agent_mux.sdk.codec import WriteStdin


class StreamDelta(msgspec.Struct, gc=False):
    """The fragment of a `content_block_delta`."""

    type: str = ""
    text: str | None = None
    thinking: str | None = None
    partial_json: str | None = None


class StreamEvent(msgspec.Struct, gc=False):
    """An event of the model's stream, with the fields that fragments need."""

    type: str
    index: int = 0
    delta: StreamDelta | None = None


class StreamLine(msgspec.Struct, gc=False):
    """A line, with the fields that fragments need. The keys may have any order; `type` is often the last."""

    type: str
    event: StreamEvent | None = None
    parent_tool_use_id: str | None = None


decode_line = msgspec.json.Decoder(StreamLine).decode


# -- messages to the agent

# JSON allows these characters unescaped in strings, but JavaScript's line readers may break a line at them.
RAW_SEPARATORS = ((b"\xe2\x80\xa8", b"\\u2028"), (b"\xe2\x80\xa9", b"\\u2029"))


def json_line(message: Mapping[str, Any]) -> WriteStdin:
    """Encode a message as one line."""
    line = msgspec.json.encode(message)
    for raw, escaped in RAW_SEPARATORS:
        line = line.replace(raw, escaped)
    return WriteStdin(line + b"\n")


def user_message(message_text: str) -> WriteStdin:
    """Encode a message of the user."""
    # An unpaired surrogate (from an argument that is not UTF-8) cannot be encoded and becomes U+FFFD.
    content = message_text.encode("utf-8", "surrogatepass").decode("utf-8", "replace")
    message = {"role": "user", "content": content}
    return json_line({"type": "user", "message": message, "parent_tool_use_id": None, "session_id": ""})


def control_request(request_id: str, subtype: str, **fields: Any) -> WriteStdin:
    """Encode a control request of ours."""
    return json_line({"type": "control_request", "request_id": request_id, "request": {"subtype": subtype, **fields}})


def control_response(request_id: str, response: Mapping[str, Any]) -> WriteStdin:
    """Encode the success response to a control request of the agent."""
    return json_line(
        {
            "type": "control_response",
            "response": {"subtype": "success", "request_id": request_id, "response": response},
        }
    )


def control_error(request_id: str, error: str) -> WriteStdin:
    """Encode the error response to an unsupported control request, for which the agent would otherwise wait forever."""
    return json_line(
        {"type": "control_response", "response": {"subtype": "error", "request_id": request_id, "error": error}}
    )


def allow_result(arguments: Any, permissions: Sequence[Any] = ()) -> dict[str, Any]:
    """Return the result that allows a tool to run with these arguments."""
    remembered = {"updatedPermissions": list(permissions)} if permissions else {}
    return {"behavior": "allow", "updatedInput": arguments, **remembered}


def deny_result(reason: str) -> dict[str, Any]:
    """Return the result that denies a tool; the model reads the reason."""
    return {"behavior": "deny", "message": reason}
