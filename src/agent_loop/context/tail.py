"""Leave out old tool outputs once there are too many bytes of them. Source: zidane, `compactStrategy: 'tail'`."""

from collections.abc import Sequence
from itertools import pairwise

import msgspec

from agent_loop.messages import AssistantMessage, Message, Text, ToolMessage
from agent_loop.tools.results import output_bytes


def keep_tail(messages: Sequence[Message], *, threshold: int, keep_turns: int) -> list[Message]:
    """The messages, with stubs for outputs before the last turns, where all outputs exceed the threshold (bytes).

    Whatever users and models said passes. A turn is one answer of the model with what its tools returned.
    """
    sizes = [output_bytes(each.content) if isinstance(each, ToolMessage) else 0 for each in messages]
    if sum(sizes) <= threshold:
        return list(messages)
    border = _turn_border(messages, keep_turns)
    return [
        stubbed(each, size) if index < border and isinstance(each, ToolMessage) else each
        for index, (each, size) in enumerate(zip(messages, sizes, strict=True))
    ]


def stubbed(message: ToolMessage, size: int) -> ToolMessage:
    """The result without its content, unless little is won by it: a stub stays as it is, too."""
    stub = f"[Output left out: {size} bytes. Call the tool again if you need it.]"
    return message if size <= 2 * len(stub) else msgspec.structs.replace(message, content=(Text(stub),))


def _turn_border(messages: Sequence[Message], keep_turns: int) -> int:
    """Where the last turns begin; 0 where there are no more than that."""
    if keep_turns <= 0:
        return len(messages)
    before = (None, *messages)
    begins = [
        index
        for index, (last, this) in enumerate(pairwise(before))
        if isinstance(this, AssistantMessage) and not isinstance(last, AssistantMessage)
    ]
    return begins[-keep_turns] if len(begins) > keep_turns else 0
