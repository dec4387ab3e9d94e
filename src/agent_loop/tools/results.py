"""What a tool, a hook or a wrapper gives for a result, made sure of: it can be stored, read again, and sent."""

from typing import Any

import msgspec

from agent_loop.errors import ToolError
from agent_loop.messages import Text
from agent_loop.messages.formatting import encode_json
from agent_loop.tools.tool import Output, ToolResult, result_of

NO_DETAILS = "(details that cannot be stored)"


def failure(text: str) -> ToolResult:
    """An error for the model to read."""
    return ToolResult((Text(text),), is_error=True)


def sound_result(given: Output) -> ToolResult:
    """The result, with details that are plain data. Raises `ToolError` for what is no result, also deep within."""
    result = result_of(given)
    try:
        msgspec.convert(msgspec.to_builtins(msgspec.structs.replace(result, details=None)), ToolResult)
    except (msgspec.ValidationError, TypeError, RecursionError) as error:
        raise ToolError(f"the tool returned a result that is none: {error}") from None
    if result.details is None and isinstance(result.content, tuple):
        return result
    return msgspec.structs.replace(result, content=tuple(result.content), details=_plain(result.details))


def result_or_failure(given: Output) -> ToolResult:
    """As `sound_result`; what is no result becomes an error for the model."""
    try:
        return sound_result(given)
    except ToolError as error:
        return failure(f"Error: {error}")


def _plain(details: Any) -> Any:
    try:
        return msgspec.json.decode(encode_json(details))
    except Exception:  # noqa: BLE001  # objects of anybody, which say themselves what they are
        return NO_DETAILS
