"""How many tokens something takes, roughly: four bytes of UTF-8 each.

Source: phi-core, `estimate_tokens`; hooks seed, section 1.6.

English text has about four characters to the token. Other scripts have fewer, and more bytes to the character, so that
bytes come closer than characters.
"""
# DOC: """How full the context is: what the provider counted, and estimates for what came since.
#
#      Source: phi-core, `ContextTracker`.
#      """

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
"""Of one picture, whatever its size: about what a picture of a megapixel takes."""
MESSAGE_TOKENS = 4
"""What the role and the frame of a message take."""


def estimate_tokens(text: str) -> int:
    """Tokens of a text, rounded up."""
    size = len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
    return -(-size // BYTES_PER_TOKEN)


def estimate_message(message: Message) -> int:
    """Tokens of a message as the model sees it; 0 for what no model sees."""
    match message:
        case ExtensionMessage():
            return 0
        case SystemMessage(content=text):
            return MESSAGE_TOKENS + estimate_tokens(text)
        case _:
            return MESSAGE_TOKENS + sum(map(_block, message.content))


def estimate_tools(tools: Iterable[ToolDefinition]) -> int:
    """Tokens of what the model is told about its tools."""
    return sum(
        MESSAGE_TOKENS + estimate_tokens(tool.name + tool.description) + _json_tokens(tool.parameters) for tool in tools
    )


def estimate_overhead(system: str, tools: Iterable[ToolDefinition] = ()) -> int:
    """Tokens that each request takes besides its messages."""
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
    """Estimates that are made once per message object: messages are values, so they stay true."""

    def __init__(self, measure: Callable[[Message], int] = estimate_message) -> None:
        self._measure = measure
        self._estimates: dict[int, tuple[Message, int]] = {}

    def message(self, message: Message) -> int:
        """Tokens of one message."""
        known = self._estimates.get(id(message))
        if known is None:
            # The message is kept along: its id belongs to it alone as long as it lives.
            known = self._estimates[id(message)] = (message, self._measure(message))
        return known[1]

    def total(self, messages: Sequence[Message]) -> int:
        """Tokens of all of them."""
        known = self._estimates
        # Asked in each turn for the whole history: no call for those that are known.
        return sum(known[id(each)][1] if id(each) in known else self.message(each) for each in messages)

    def retain_only(self, messages: Sequence[Message]) -> None:
        """Only these will be asked for again. Does nothing while little would be forgotten."""
        if len(self._estimates) > 2 * len(messages) + 1_000:
            kept_ids = {id(each) for each in messages}
            self._estimates = {key: known for key, known in self._estimates.items() if key in kept_ids}


MAX_SCALE = 4.0
"""A provider that counts more than this times our estimate is counting something else."""
MIN_TO_SCALE = 2_000
"""Tokens: of less than this, what we do not see of a request is too large a part for the two counts to be compared."""


class ContextTracker:
    """Of one conversation, in the form in which it is sent."""

    def __init__(self, estimator: Estimator | None = None) -> None:
        self._estimator = estimator or Estimator()
        self._reported: tuple[int, int] | None = None
        self.scale = 1.0
        """How many tokens the provider counts where we estimate one; at least 1."""

    def record(self, prompt_tokens: int, messages: Sequence[Message], overhead_tokens: int = 0) -> None:
        """The provider counted this for a request of these messages, besides the overhead. 0 is no count."""
        if prompt_tokens <= 0:
            return
        self._reported = (max(0, prompt_tokens - overhead_tokens), len(messages))
        estimated = self._estimator.total(messages) + overhead_tokens
        if estimated >= MIN_TO_SCALE:
            self.scale = min(MAX_SCALE, max(1.0, prompt_tokens / estimated))

    def reset(self) -> None:
        """What was sent last is not what will be sent: the provider's count no longer counts; its scale does."""
        self._reported = None

    def used(self, messages: Sequence[Message]) -> int:
        """Tokens of these messages, which begin with those that were recorded."""
        if self._reported is None or self._reported[1] > len(messages):
            return self.estimate(messages)
        tokens, count = self._reported
        return tokens + self.estimate(messages[count:])

    def estimate(self, messages: Sequence[Message]) -> int:
        """Our estimate alone, at the provider's scale."""
        return int(self._estimator.total(messages) * self.scale)
