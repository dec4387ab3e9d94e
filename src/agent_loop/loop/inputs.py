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
from agent_loop.messages.validation import checked_user


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


Verdict = Pass | Warn | Reject


class InputFilter(Protocol):
    """Looks at the text of a prompt. May be a coroutine function."""

    def __call__(self, text: str) -> Verdict | Awaitable[Verdict]:
        """Say what is to become of it."""
        ...


@dataclass(frozen=True, slots=True)
class Filtered:
    """What came of the filters."""

    prompts: list[UserMessage]
    warnings: list[str]
    rejection: str | None = None


async def filtered(prompts: Sequence[UserMessage], filters: Sequence[InputFilter]) -> Filtered:
    """The prompts after all filters, in order; the first rejection ends it."""
    text = "\n".join(prompt.text for prompt in prompts)
    warnings: list[str] = []
    for each in filters:
        outcome = each(text)
        verdict = await outcome if isawaitable(outcome) else outcome
        match verdict:
            case Pass():
                continue
            case Reject(reason):
                return Filtered(list(prompts), warnings, reason)
            case Warn(message):
                warnings.append(message)
            case _:  # nothing goes through because somebody forgot to say no
                raise ConfigurationError(
                    f"an input filter gave {type(verdict).__name__}; it must return Pass(), Warn(...) or Reject(...)"
                )
    return Filtered(_warned(prompts, warnings), warnings)


def _warned(prompts: Sequence[UserMessage], warnings: Sequence[str]) -> list[UserMessage]:
    if not warnings or not prompts:
        return list(prompts)
    last = prompts[-1]
    said = tuple(Text(f"[Warning: {warning}]") for warning in warnings)
    return [*prompts[:-1], UserMessage(content=last.content + said, origin=last.origin, timestamp=last.timestamp)]


Prompt = str | UserMessage | Sequence[UserMessage]
"""A text, a message, or several."""


def said_by(message: str | UserMessage, origin: Any) -> UserMessage:
    """A message of this origin, where it is a text; else as it is. Raises `MessageError` for what is none."""
    return checked_user(user(message, origin=origin) if isinstance(message, str) else message)


def prompts(prompt: Prompt) -> tuple[UserMessage, ...]:
    """A prompt as messages. Raises `ConfigurationError` for an empty one, `MessageError` for no user message."""
    if isinstance(prompt, str):
        if not prompt.strip():
            raise ConfigurationError("the prompt is empty; say what the agent is to do, or use continue_run()")
        return (user(prompt),)
    return tuple(map(checked_user, (prompt,) if isinstance(prompt, UserMessage) else prompt))


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
