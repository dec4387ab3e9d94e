"""Which step of a script answers a request, and what is inserted into it. Pure."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from agent_loop.messages import AssistantMessage, Message, ToolMessage, UserMessage
from agent_loop.providers.request import ModelRequest
from agent_loop.providers.script import PLACEHOLDER, Step


class Heard(msgspec.Struct, frozen=True):
    """What a request says to the model."""

    task: str
    """The first user message."""
    latest: str
    """User texts and tool results since the model spoke last, one below the other."""
    result: str
    """The last tool result; empty where there is none."""


def heard_in(messages: Sequence[Message]) -> Heard:
    """What these messages say to the model."""
    users = (message.text for message in messages if isinstance(message, UserMessage))
    results = (message.text for message in reversed(messages) if isinstance(message, ToolMessage))
    latest = "\n".join(message.text for message in since_last_answer(messages))
    return Heard(next(users, ""), latest, next(results, ""))


def since_last_answer(messages: Sequence[Message]) -> list[UserMessage | ToolMessage]:
    """The user messages and tool results behind the last assistant message."""
    spoken = [at for at, message in enumerate(messages) if isinstance(message, AssistantMessage)]
    behind = messages[spoken[-1] + 1 if spoken else 0 :]
    return [message for message in behind if isinstance(message, UserMessage | ToolMessage)]


def fits(step: Step, request: ModelRequest, heard: Heard, last_step: str | None) -> bool:
    """The step is for this request."""
    return (
        (step.after is None or step.after == last_step)
        and (step.purpose is None or step.purpose == request.purpose)
        and (step.task is None or step.task in heard.task)
        and (step.when is None or step.when in heard.latest)
        and (step.matches is None or re.search(step.matches, heard.latest) is not None)
    )


def filled(step: Step, heard: Heard) -> Step:
    """The step with everything inserted. What is inserted is never looked at again: it may be hostile."""
    if not step.templates:
        return step
    values = {"task": heard.task, "heard": heard.latest, "result": heard.result} | _groups(step, heard)
    spoken = ("thinking", "text", "chunks", "tool_calls", "output", "error")
    return msgspec.structs.replace(step, **{name: _insert(getattr(step, name), values) for name in spoken})


def _groups(step: Step, heard: Heard) -> dict[str, str]:
    found = re.search(step.matches, heard.latest) if step.matches is not None else None
    if found is None:
        return {}
    numbered = {str(number): found.group(number) or "" for number in range((found.re.groups or 0) + 1)}
    return numbered | {name: text or "" for name, text in found.groupdict().items()}


def _insert(value: Any, values: Mapping[str, str]) -> Any:
    match value:
        case str():
            return PLACEHOLDER.sub(lambda found: values.get(found[1], found[0]), value)
        case dict():
            return {key: _insert(item, values) for key, item in value.items()}
        case list() | tuple():
            return type(value)(_insert(item, values) for item in value)
        case msgspec.Struct():
            fields = {name: _insert(getattr(value, name), values) for name in value.__struct_fields__}
            return msgspec.structs.replace(value, **fields)
        case _:
            return value
