"""Parts of a file tool's call: typed arguments with their schema, workspace, worker threads, and text encoding."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import msgspec
from anyio import from_thread, to_thread

from agent_loop.behavior import DEFAULTS, Behavior
from agent_loop.errors import InvalidArgumentsError, ToolError
from agent_loop.tools.tool import ToolContext
from agent_loop.workspace import Workspace

Arguments = TypeVar("Arguments", bound=msgspec.Struct)
Returned = TypeVar("Returned")


def parse_arguments(kind: type[Arguments], arguments: Mapping[str, Any]) -> Arguments:
    """Convert arguments to a struct of type `kind`. Raises `InvalidArgumentsError`."""
    try:
        return msgspec.convert(dict(arguments), kind)
    except msgspec.ValidationError as error:
        raise InvalidArgumentsError(f"invalid arguments: {error}") from error


def schema_of(kind: type[msgspec.Struct]) -> dict[str, Any]:
    """Return the JSON Schema of a struct without references, which not every provider resolves.

    Properties whose names begin with an underscore are internal and left out. Only `parse_arguments` then refuses
    unknown arguments, because the schema would refuse the internal ones.
    """
    whole = msgspec.json.schema(kind)
    schema: dict[str, Any] = _inline_references(whole, whole["$defs"])
    del schema["description"]
    hidden = [name for name in schema["properties"] if name.startswith("_")]
    for name in hidden:
        del schema["properties"][name]
    if hidden:
        schema.pop("additionalProperties", None)
    return schema


def workspace_of(context: ToolContext) -> Workspace:
    """Return the workspace of a call. Raises `ToolError` if the agent has none."""
    if context.workspace is None:
        raise ToolError("this agent has no workspace and cannot use files")
    return context.workspace


def behavior_of(context: ToolContext) -> Behavior:
    """Return the behavior of a call with defaults for all unset fields."""
    return (context.behavior or Behavior()).over(DEFAULTS)


async def run_in_thread(work: Callable[[], Returned]) -> Returned:
    """Run blocking work in a worker thread. A cancelled call waits until the work ends or calls `check_cancelled`."""
    return await to_thread.run_sync(work)


check_cancelled = from_thread.check_cancelled
"""A function for worker threads that raises the cancellation exception if the task was cancelled."""


def replace_surrogates(text: str) -> str:
    """Return text decoded with `surrogateescape` as text that can be sent: invalid bytes become U+FFFD."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def encode_text(text: str, argument: str) -> bytes:
    """Encode an argument as UTF-8. Raises `ToolError` for unpaired surrogates, which JSON allows and files do not."""
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        where = f"a character at position {error.start}"
        raise ToolError(f"{argument} has {where} that UTF-8 cannot encode; remove it") from error


def _inline_references(node: Any, definitions: Mapping[str, Any]) -> Any:
    match node:
        case {"$ref": str(reference)}:
            return _inline_references(definitions[reference.rpartition("/")[2]], definitions)
        case {"enum": [str(), *_], **others} if "type" not in others:
            return {"type": "string", **node}  # some providers refuse an enum without a type
        case dict():
            return {
                key: _inline_references(value, definitions)
                for key, value in node.items()
                if key != "$defs" and not (key == "title" and isinstance(value, str))  # a property may be called title
            }
        case list():
            return [_inline_references(value, definitions) for value in node]
        case _:
            return node
