"""User input of a run: prompts, input filters, and the queues for messages that arrive during the run."""

from collections import deque
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass
from inspect import isawaitable
from typing import Any, Protocol

from agent_loop.behavior import QueueMode
from agent_loop.checked import Checked
from agent_loop.errors import ConfigurationError
from agent_loop.messages import Text, UserMessage, user
from agent_loop.messages.validation import validate_user_message

Prompt = str | UserMessage | Sequence[UserMessage]
"""A text, a user message, or several user messages."""


@dataclass(frozen=True, slots=True)
class Pass:
    """The filter accepts the prompt."""


@dataclass(frozen=True, slots=True)
class Warn(Checked):
    """The filter accepts the prompt with a warning, which the model sees."""

    message: str


@dataclass(frozen=True, slots=True)
class Reject(Checked):
    """The filter rejects the prompt."""

    reason: str


FilterVerdict = Pass | Warn | Reject


class InputFilter(Protocol):
    """A function, plain or async, that checks the text of a prompt."""

    def __call__(self, text: str) -> FilterVerdict | Awaitable[FilterVerdict]:
        """Return the verdict on this prompt text."""
        ...


@dataclass(frozen=True, slots=True)
class FilterResult:
    """The prompts after all filters, their warnings, and the reason of a rejection."""

    prompts: list[UserMessage]
    warnings: list[str]
    rejection: str | None = None


async def apply_filters(prompts: Sequence[UserMessage], filters: Sequence[InputFilter]) -> FilterResult:
    """Return the prompts after all filters, in order; the first rejection ends the filtering."""
    text = "\n".join(prompt.text for prompt in prompts)
    warnings: list[str] = []
    for input_filter in filters:
        outcome = input_filter(text)
        verdict = await outcome if isawaitable(outcome) else outcome
        match verdict:
            case Pass():
                continue
            case Reject(reason):
                return FilterResult(list(prompts), warnings, reason)
            case Warn(message):
                warnings.append(message)
            case _:  # a filter that returns nothing must not accept the prompt
                raise ConfigurationError(
                    f"an input filter returned {type(verdict).__name__}; expected Pass(), Warn(...) or Reject(...)"
                )
    return FilterResult(_append_warnings(prompts, warnings), warnings)


def _append_warnings(prompts: Sequence[UserMessage], warnings: Sequence[str]) -> list[UserMessage]:
    if not warnings or not prompts:
        return list(prompts)
    last = prompts[-1]
    notes = tuple(Text(f"[Warning: {warning}]") for warning in warnings)
    return [*prompts[:-1], UserMessage(content=last.content + notes, origin=last.origin, timestamp=last.timestamp)]


def to_user_message(message: str | UserMessage, origin: Any) -> UserMessage:
    """Return the message, or a message with this origin if it is a text. Raises `MessageError` if invalid."""
    return validate_user_message(user(message, origin=origin) if isinstance(message, str) else message)


def to_prompt_messages(prompt: Prompt) -> tuple[UserMessage, ...]:
    """Return a prompt as messages.

    Raises `ConfigurationError` for an empty prompt and `MessageError` for anything but user messages.
    """
    if isinstance(prompt, str):
        if not prompt.strip():
            raise ConfigurationError("the prompt is empty; pass a text, or use continue_run()")
        return (user(prompt),)
    return tuple(map(validate_user_message, (prompt,) if isinstance(prompt, UserMessage) else prompt))


class MessageQueue:
    """Messages that wait for the loop to read them. `put` is thread-safe."""

    def __init__(self) -> None:
        self._waiting: deque[UserMessage] = deque()

    def put(self, message: UserMessage) -> None:
        """Append a message to the queue."""
        self._waiting.append(message)

    def take(self, mode: QueueMode) -> list[UserMessage]:
        """Remove and return the oldest message, or all messages, depending on the mode."""
        if mode == "one_at_a_time":
            return [self._waiting.popleft()] if self._waiting else []
        taken = []
        while self._waiting:
            taken.append(self._waiting.popleft())
        return taken

    def clear(self) -> None:
        """Discard all queued messages at once."""
        self._waiting.clear()

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def __len__(self) -> int:
        return len(self._waiting)
