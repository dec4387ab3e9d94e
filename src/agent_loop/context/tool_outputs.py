"""Reduction of tool outputs in a request: stale reads, old outputs, images, oversized texts, and the output budget."""

import posixpath
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise

import msgspec

from agent_loop.errors import ToolError
from agent_loop.messages import AssistantMessage, Image, Message, Text, ToolCall, ToolMessage, UserMessage, user
from agent_loop.tools.patch_format import parse_patch
from agent_loop.tools.results import as_text, output_bytes
from agent_loop.tools.tool import ToolResult

READ_TOOLS = frozenset({"read_file"})
WRITE_TOOLS = frozenset({"write_file", "edit", "multi_edit"})
PATCH_TOOL = "apply_patch"
PATH_ARGUMENT = "path"
"""Name of the argument of these tools that contains the path."""

MAX_RESULT_CHARACTERS = 80_000
"""About 20,000 tokens."""
KEPT_CHARACTERS = 2_000
"""Characters that are kept at the beginning and at the end."""


def elide_stale_reads(
    messages: Sequence[Message], *, resolve: Callable[[str], str] = posixpath.normpath
) -> list[Message]:
    """Return the messages with stubs for reads of files that a later call changed.

    `resolve` maps different paths of one file to the same string.
    """
    calls = _calls_by_result(messages)
    changed: set[str] = set()
    kept: list[Message] = []
    for index in range(len(messages) - 1, -1, -1):
        message, call = messages[index], calls.get(index)
        if isinstance(message, ToolMessage) and call is not None and not message.is_error:
            paths = [resolve(path) for path in _file_paths(call)]
            if call.name not in READ_TOOLS:
                changed.update(paths)
            elif paths and paths[0] in changed:
                message = _stub_read(message, paths[0])
        kept.append(message)
    return kept[::-1]


def _calls_by_result(messages: Sequence[Message]) -> Mapping[int, ToolCall]:
    """Return the tool call of each tool result, by the result's index."""
    calls: dict[str, ToolCall] = {}
    calls_by_result: dict[int, ToolCall] = {}
    for index, message in enumerate(messages):
        if isinstance(message, AssistantMessage):
            calls.update((call.id, call) for call in message.tool_calls)
        elif isinstance(message, ToolMessage) and (call := calls.get(message.tool_call_id)) is not None:
            calls_by_result[index] = call
    return calls_by_result


def _file_paths(call: ToolCall) -> list[str]:
    """Return the paths of the files that a call reads or changes."""
    if call.name == PATCH_TOOL:
        try:
            changes = parse_patch(str(call.arguments.get("patch")))
        except ToolError:
            return []
        return [path for change in changes for path in (change.path, change.target) if path]
    path = call.arguments.get(PATH_ARGUMENT) if call.name in READ_TOOLS | WRITE_TOOLS else None
    return [path] if isinstance(path, str) and path else []


def _stub_read(message: ToolMessage, path: str) -> ToolMessage:
    stub = f"[Older content of {path!r}: the file was changed since. Read it again if you need it.]"
    is_shorter = len(stub.encode("utf-8", "replace")) < output_bytes(message.content)
    return msgspec.structs.replace(message, content=(Text(stub),)) if is_shorter else message


def elide_old_outputs(messages: Sequence[Message], *, threshold: int, keep_turns: int) -> list[Message]:
    """Return the messages with stubs for outputs before the last turns, if all outputs exceed `threshold` bytes.

    Texts of users and models are unchanged. A turn is one answer of the model with the results of its tools.
    """
    sizes = [output_bytes(each.content) if isinstance(each, ToolMessage) else 0 for each in messages]
    if sum(sizes) <= threshold:
        return list(messages)
    first_kept = _first_kept_index(messages, keep_turns)
    return [
        stub_output(each, size) if index < first_kept and isinstance(each, ToolMessage) else each
        for index, (each, size) in enumerate(zip(messages, sizes, strict=True))
    ]


def stub_output(message: ToolMessage, size: int) -> ToolMessage:
    """Return the result without its content, unless a stub would save little."""
    stub = f"[Output left out: {size} bytes. Call the tool again if you need it.]"
    return message if size <= 2 * len(stub) else msgspec.structs.replace(message, content=(Text(stub),))


def _first_kept_index(messages: Sequence[Message], keep_turns: int) -> int:
    """Return the index at which the last turns begin; 0 if there are no earlier ones."""
    if keep_turns <= 0:
        return len(messages)
    before = (None, *messages)
    turn_starts = [
        index
        for index, (last, this) in enumerate(pairwise(before))
        if isinstance(this, AssistantMessage) and not isinstance(last, AssistantMessage)
    ]
    return turn_starts[-keep_turns] if len(turn_starts) > keep_turns else 0


def replace_images(messages: Iterable[Message]) -> list[Message]:
    """Return the messages for a model without vision: a text replaces each image.

    New results already have such texts, but a session can continue with another model, and users send images as well.
    Messages without images are the same objects.
    """
    return [_replace_images(message) for message in messages]


def _replace_images(message: Message) -> Message:
    if not isinstance(message, UserMessage | ToolMessage) or not any(isinstance(b, Image) for b in message.content):
        return message
    return msgspec.structs.replace(message, content=tuple(as_text(block) for block in message.content))


def truncate_middle(text: str, limit: int = MAX_RESULT_CHARACTERS, kept: int = KEPT_CHARACTERS) -> str:
    """Return the beginning and the end of a text longer than `limit` characters; other texts unchanged."""
    if len(text) <= limit:
        return text
    return f"{text[:kept]}\n\n... (truncated {len(text) - 2 * kept} characters) ...\n\n{text[-kept:]}"


def truncate_result(result: ToolResult) -> ToolResult:
    """Return the result with its text joined and truncated if it is too long; images are kept."""
    if len(result.text) <= MAX_RESULT_CHARACTERS:
        return result
    images = tuple(block for block in result.content if not isinstance(block, Text))
    return msgspec.structs.replace(result, content=(Text(truncate_middle(result.text)), *images))


def turn_output_bytes(results: Iterable[ToolMessage]) -> int:
    """Return the total size of the tool results of one turn in bytes."""
    return sum(output_bytes(result.content) for result in results)


def over_output_budget(results: Sequence[ToolMessage], budget: int | None) -> UserMessage | None:
    """Return the message for the model if the results exceed the budget (bytes), else None."""
    size = turn_output_bytes(results)
    return output_budget_message(size, budget) if budget is not None and size > budget else None


def output_budget_message(size: int, budget: int) -> UserMessage:
    """Return the user message that asks the model to summarize the findings."""
    return user(
        f"[Tool output budget exceeded: {size} bytes returned in this turn (cap: {budget}). "
        "Summarize the salient findings before calling more tools.]",
        origin="budget",
    )
