"""Shapes of native messages: their kinds, and the fields of each kind.

Values are ignored, and so are objects that the CLI does not define itself: inputs and results of tools.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from agent_mux.sdk.native_json import load_object

__all__ = ["Shapes", "kind_of", "shapes_of", "without"]

Shapes = dict[str, set[str]]
"""Kind -> paths of its fields: `params.update.content.type`, `message.content[].text`."""

_MAX_DEPTH = 5
_KIND_FIELDS = ("method", "type", "subtype", "event", "kind", "status")
_ENVELOPES = (
    "params",
    "update",
    "event",
    "item",
    "msg",
    "payload",
    "properties",
    "part",
    "data",
    "assistantMessageEvent",
)
_KIND_WORDS = frozenset({"sessionUpdate", *_KIND_FIELDS[:3]})
_FOREIGN_OBJECTS = frozenset({
    "input", "args", "arguments", "parameters", "rawInput", "rawOutput", "tool_input", "toolInput", "result", "output",
    "details", "metadata", "env", "structuredContent", "structured_content", "tools", "models", "commands", "skills",
    "tool_use_result", "rawArguments", "modelUsage",
})  # fmt: skip


def shapes_of(lines: Iterable[bytes]) -> Shapes:
    """Return the shapes of native lines. Lines that are no JSON objects count as one kind.

    All lines together may also be one object: a document over many lines.
    """
    lines = list(lines)
    document = load_object(b"\n".join(lines))
    shapes: Shapes = {}
    for native in [document] if document is not None else map(load_object, lines):
        if native is None:
            shapes.setdefault("(text)", set())
        else:
            shapes.setdefault(kind_of(native), set()).update(_paths(native, "", 0))
    return shapes


def without(shapes: Shapes, unstable: re.Pattern[str]) -> Shapes:
    """Return the shapes without fields whose "kind path" matches, and without kinds for which "kind " matches."""
    return {
        kind: {path for path in paths if not unstable.fullmatch(f"{kind} {path}")}
        for kind, paths in shapes.items()
        if not unstable.fullmatch(f"{kind} ")
    }


def kind_of(native: Mapping[str, Any]) -> str:
    """Return the kind of a message, joined from its parts: `session/update:agent_message_chunk`, `system:init`."""
    return ":".join(_kinds(native)) or ("answer" if "id" in native else "(message)")


def _kinds(native: Mapping[str, Any]) -> Iterator[str]:
    yield from (native[name] for name in sorted(_KIND_WORDS) if _is_word(native.get(name)))
    for name in _ENVELOPES:
        inner = native.get(name)
        if isinstance(inner, dict):
            yield from _kinds(inner)


def _is_word(value: Any) -> bool:
    return isinstance(value, str) and len(value) < 60 and " " not in value


def _paths(value: Any, place: str, depth: int) -> Iterator[str]:
    if depth >= _MAX_DEPTH:
        return
    if isinstance(value, list):
        for item in value:
            yield from _paths(item, f"{place}[]", depth + 1)
    if isinstance(value, dict):
        for name, inner in value.items():
            if not name.replace("_", "").replace("-", "").isalpha():
                continue  # the key is data: an id, a path, a host
            path = f"{place}.{name}" if place else name
            yield path
            if name not in _FOREIGN_OBJECTS:
                yield from _paths(inner, path, depth + 1)
