"""What looks at prompts before anything is done with them. Source: phi-core, "Input Filter Errors"."""
# DOC: """What people say, as messages."""
# DOC: """What people say while the agent works. Source: phi-core, "QueueMode"."""

from collections import deque
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass
from inspect import isawaitable
from typing import Any, Protocol

from agent_loop.behavior import QueueMode
from agent_loop.errors import ConfigurationError
from agent_loop.messages import Text, UserMessage, user
from agent_loop.messages.validation import validate_user_message


@dataclass(frozen=True, slots=True)
class Pass:
    """Nothing is wrong with it."""


@dataclass(frozen=True, slots=True)
class Warn:
    """It may go on, with this warning, which the model sees."""

    message: str


@dataclass(frozen=True, slots=True)
class Reject:
    """It may not go on."""

    reason: str


FilterVerdict = Pass | Warn | Reject


class InputFilter(Protocol):
    """Looks at the text of a prompt. May be a coroutine function."""

    def __call__(self, text: str) -> FilterVerdict | Awaitable[FilterVerdict]:
        """Say what is to become of it."""
        ...


@dataclass(frozen=True, slots=True)
class FilterResult:
    """What came of the filters."""

    prompts: list[UserMessage]
    warnings: list[str]
    rejection: str | None = None


async def apply_filters(prompts: Sequence[UserMessage], filters: Sequence[InputFilter]) -> FilterResult:
    """The prompts after all filters, in order; the first rejection ends it."""
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
            case _:  # nothing goes through because somebody forgot to say no
                raise ConfigurationError(
                    f"an input filter gave {type(verdict).__name__}; it must return Pass(), Warn(...) or Reject(...)"
                )
    return FilterResult(_append_warnings(prompts, warnings), warnings)


def _append_warnings(prompts: Sequence[UserMessage], warnings: Sequence[str]) -> list[UserMessage]:
    if not warnings or not prompts:
        return list(prompts)
    last = prompts[-1]
    notes = tuple(Text(f"[Warning: {warning}]") for warning in warnings)
    return [*prompts[:-1], UserMessage(content=last.content + notes, origin=last.origin, timestamp=last.timestamp)]


Prompt = str | UserMessage | Sequence[UserMessage]
"""A text, a message, or several."""


def to_user_message(message: str | UserMessage, origin: Any) -> UserMessage:
    """A message of this origin, where it is a text; else as it is. Raises `MessageError` for what is none."""
    return validate_user_message(user(message, origin=origin) if isinstance(message, str) else message)


def to_prompt_messages(prompt: Prompt) -> tuple[UserMessage, ...]:
    """A prompt as messages. Raises `ConfigurationError` for an empty one, `MessageError` for no user message."""
    if isinstance(prompt, str):
        if not prompt.strip():
            raise ConfigurationError("the prompt is empty; say what the agent is to do, or use continue_run()")
        return (user(prompt),)
    return tuple(map(validate_user_message, (prompt,) if isinstance(prompt, UserMessage) else prompt))


class MessageQueue:
    """Messages that wait for the loop to take them. `put` may be called from any thread."""

    def __init__(self) -> None:
        self._waiting: deque[UserMessage] = deque()

    def put(self, message: UserMessage) -> None:
        """Let it wait."""
        self._waiting.append(message)

    def take(self, mode: QueueMode) -> list[UserMessage]:
        """The oldest one, or all of them."""
        if mode == "one_at_a_time":
            return [self._waiting.popleft()] if self._waiting else []
        taken = []
        while self._waiting:
            taken.append(self._waiting.popleft())
        return taken

    def clear(self) -> None:
        """Forget all of them."""
        self._waiting.clear()

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def __len__(self) -> int:
        return len(self._waiting)
