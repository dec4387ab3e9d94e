"""What looks at prompts before anything is done with them. Source: phi-core, "Input Filter Errors"."""

from collections.abc import Awaitable, Sequence
from dataclasses import dataclass
from inspect import isawaitable
from typing import Protocol

from agent_loop.errors import ConfigurationError
from agent_loop.messages import Text, UserMessage


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
