"""Estimates of token counts: four bytes of UTF-8 per token, corrected by the counts that the provider reports.

English text has about four characters per token. Other scripts have fewer characters per token and more bytes per
character, so that bytes are the better measure.
"""

import json
from collections.abc import Callable, Iterable, Sequence

from agent_loop.messages import (
    Block,
    ExtensionMessage,
    Image,
    Message,
    SystemMessage,
    Text,
    Thinking,
    ToolCall,
)
from agent_loop.providers.provider import ToolDefinition

BYTES_PER_TOKEN = 4
IMAGE_TOKENS = 1_600
"""Tokens of one image of any size, about those of a one-megapixel image."""
MESSAGE_TOKENS = 4
"""Tokens of the role and frame of a message."""

MAX_SCALE = 4.0
"""Maximum ratio of reported to estimated tokens; a higher one means that the provider counts something else."""
MIN_TO_SCALE = 2_000
"""Minimum estimate for a comparison: in smaller requests the provider's own additions distort the ratio."""


def estimate_tokens(text: str) -> int:
    """Return the estimated tokens of a text, rounded up."""
    size = len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
    return -(-size // BYTES_PER_TOKEN)


def estimate_message(message: Message) -> int:
    """Return the estimated tokens of a message; 0 for messages that are never sent to a model."""
    match message:
        case ExtensionMessage():
            return 0
        case SystemMessage(content=text):
            return MESSAGE_TOKENS + estimate_tokens(text)
        case _:
            return MESSAGE_TOKENS + sum(map(_block, message.content))


def estimate_tools(tools: Iterable[ToolDefinition]) -> int:
    """Return the estimated tokens of the tool definitions."""
    return sum(
        MESSAGE_TOKENS + estimate_tokens(tool.name + tool.description) + _json_tokens(tool.parameters) for tool in tools
    )


def estimate_overhead(system: str, tools: Iterable[ToolDefinition] = ()) -> int:
    """Return the estimated tokens of a request besides its messages."""
    return estimate_tokens(system) + estimate_tools(tools)


def _block(block: Block) -> int:
    match block:
        case Image():
            return IMAGE_TOKENS
        case Text(text=text):
            return estimate_tokens(text)
        case Thinking(text=text, signature=signature, redacted=redacted):
            return estimate_tokens(text) + estimate_tokens(signature or "") + estimate_tokens(redacted or "")
        case ToolCall(name=name, arguments=arguments, raw_arguments=raw):
            return estimate_tokens(name) + (estimate_tokens(raw) if raw else _json_tokens(arguments))


def _json_tokens(value: object) -> int:
    return estimate_tokens(json.dumps(value, default=str))


class Estimator:
    """Estimates per message object, computed once: messages are immutable."""

    def __init__(self, measure: Callable[[Message], int] = estimate_message) -> None:
        self._measure = measure
        self._estimates: dict[int, tuple[Message, int]] = {}

    def message(self, message: Message) -> int:
        """Return the estimated tokens of one message."""
        known = self._estimates.get(id(message))
        if known is None:
            # Keep the message as well: its id is unique only while it exists.
            known = self._estimates[id(message)] = (message, self._measure(message))
        return known[1]

    def total(self, messages: Sequence[Message]) -> int:
        """Return the estimated tokens of several messages."""
        known = self._estimates
        # Runs in each turn over the whole history: avoid a function call for cached messages.
        return sum(known[id(each)][1] if id(each) in known else self.message(each) for each in messages)

    def retain_only(self, messages: Sequence[Message]) -> None:
        """Discard the cached estimates of all other messages, once they are many."""
        if len(self._estimates) > 2 * len(messages) + 1_000:
            kept_ids = {id(each) for each in messages}
            self._estimates = {key: known for key, known in self._estimates.items() if key in kept_ids}


class ContextTracker:
    """The size of a conversation's context: the provider's last count plus estimates of newer messages."""

    def __init__(self, estimator: Estimator | None = None) -> None:
        self._estimator = estimator or Estimator()
        self._reported: tuple[int, int] | None = None
        self.scale = 1.0
        """Tokens that the provider counts per estimated token; at least 1."""

    def record(self, prompt_tokens: int, messages: Sequence[Message], overhead_tokens: int = 0) -> None:
        """Record the provider's count for a request of these messages and the overhead; ignore a count of 0."""
        if prompt_tokens <= 0:
            return
        self._reported = (max(0, prompt_tokens - overhead_tokens), len(messages))
        estimated = self._estimator.total(messages) + overhead_tokens
        if estimated >= MIN_TO_SCALE:
            self.scale = min(MAX_SCALE, max(1.0, prompt_tokens / estimated))

    def reset(self) -> None:
        """Discard the provider's count, because the next request differs; keep the scale."""
        self._reported = None

    def used(self, messages: Sequence[Message]) -> int:
        """Return the tokens of these messages, which begin with the recorded ones."""
        if self._reported is None or self._reported[1] > len(messages):
            return self.estimate(messages)
        tokens, count = self._reported
        return tokens + self.estimate(messages[count:])

    def estimate(self, messages: Sequence[Message]) -> int:
        """Return the estimate at the provider's scale, without its counts."""
        return int(self._estimator.total(messages) * self.scale)
