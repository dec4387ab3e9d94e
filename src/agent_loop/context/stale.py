"""Leave out what was read of files that were changed since. Source: zidane, `elideStaleReads`."""

import posixpath
from collections.abc import Callable, Mapping, Sequence

import msgspec

from agent_loop.messages import AssistantMessage, Message, Text, ToolCall, ToolMessage
from agent_loop.tools.results import output_bytes

READ_TOOLS = frozenset({"read_file"})
WRITE_TOOLS = frozenset({"write_file", "edit", "multi_edit"})
PATH = "path"
"""The argument that names the file, of all those tools."""


def elide_stale_reads(
    messages: Sequence[Message], *, resolve: Callable[[str], str] = posixpath.normpath
) -> list[Message]:
    """The messages, with stubs for reads of files that a later call changed. Two names of one file `resolve` alike."""
    calls = _answered(messages)
    changed: set[str] = set()
    kept: list[Message] = []
    for index in range(len(messages) - 1, -1, -1):
        message, call = messages[index], calls.get(index)
        path = _path(call, resolve)
        if isinstance(message, ToolMessage) and call is not None and path and not message.is_error:
            if call.name in WRITE_TOOLS:
                changed.add(path)
            elif call.name in READ_TOOLS and path in changed:
                message = _stub(message, path)
        kept.append(message)
    return kept[::-1]


def _answered(messages: Sequence[Message]) -> Mapping[int, ToolCall]:
    """Position of each tool result -> its call."""
    calls: dict[str, ToolCall] = {}
    answered: dict[int, ToolCall] = {}
    for index, message in enumerate(messages):
        if isinstance(message, AssistantMessage):
            calls.update((call.id, call) for call in message.tool_calls)
        elif isinstance(message, ToolMessage) and (call := calls.get(message.tool_call_id)) is not None:
            answered[index] = call
    return answered


def _path(call: ToolCall | None, resolve: Callable[[str], str]) -> str | None:
    path = call.arguments.get(PATH) if call is not None and call.name in READ_TOOLS | WRITE_TOOLS else None
    return resolve(path) if isinstance(path, str) and path else None


def _stub(message: ToolMessage, path: str) -> ToolMessage:
    stub = f"[Older content of {path!r}: the file was changed since. Read it again if you need it.]"
    is_shorter = len(stub.encode("utf-8", "replace")) < output_bytes(message.content)
    return msgspec.structs.replace(message, content=(Text(stub),)) if is_shorter else message
