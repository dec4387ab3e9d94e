"""A provider that replays the answers of a stored conversation, offline and deterministically.

It compares each request with the recorded one. "strict": tool results must be identical. "lenient": they may differ
(times, paths), but must come from the same tools in the same order.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from agent_loop.errors import ConfigurationError, ModelAbortedError, ProviderError
from agent_loop.messages import AssistantMessage, Message, ToolMessage, UserMessage, is_user_input
from agent_loop.providers.chunking import emit_chunk, message_chunks
from agent_loop.providers.playback import since_last_answer
from agent_loop.providers.provider import ModelRequest, ModelResponse, OnChunk, ProviderCapabilities
from agent_loop.sessions.session import Session
from agent_loop.usage import Usage

Fit = Literal["strict", "lenient"]
Inputs = tuple[UserMessage | ToolMessage, ...]

MAX_RECORDING_BYTES = 256 * 1024 * 1024


class Exchange(msgspec.Struct, frozen=True):
    """One recorded answer and the messages that preceded it."""

    received: Inputs
    answers: tuple[AssistantMessage, ...]


class ReplayProvider:
    """Replays the model's side of a conversation. It keeps its position: use one provider per run."""

    id = "replay"
    capabilities = ProviderCapabilities()

    def __init__(self, messages: Sequence[Message], *, fit: Fit = "lenient") -> None:
        self._exchanges = tuple(exchanges_in(messages))
        self._fit: Fit = fit
        self._next = 0
        models = (answers.model for exchange in self._exchanges for answers in exchange.answers)
        self.model = next((model for model in models if model), "recording")

    @classmethod
    def from_name(cls, rest: str) -> "ReplayProvider":
        """Create a provider from the part after `replay:`, a path or `strict:PATH`.

        Raises `ConfigurationError` for an invalid recording.
        """
        prefix, _, path = rest.partition(":")
        return cls(load_messages(Path(path)), fit="strict") if prefix == "strict" else cls(load_messages(Path(rest)))

    async def respond(self, request: ModelRequest, on_chunk: OnChunk) -> ModelResponse:
        """Return the next answer. Raises `ProviderError` if none is left or the request differs."""
        number = self._next + 1
        if request.purpose == "summary" or self._next >= len(self._exchanges):
            raise self._error(f"the recording has no answer to request {number} ({request.purpose}); make a new one")
        exchange = self._exchanges[self._next]
        if (
            difference := describe_difference(exchange.received, since_last_answer(request.messages), self._fit)
        ) is not None:
            raise self._error(f"request {number} does not fit the recording: {difference}; make a new one")
        self._next += 1
        for chunk in message_chunks(exchange.answers):
            await emit_chunk(chunk, on_chunk)
        return self._to_response(exchange.answers)

    def _to_response(self, answers: tuple[AssistantMessage, ...]) -> ModelResponse:
        match answers[-1].stop_reason:
            case "error":
                raise self._error(answers[-1].error or "the recorded answer failed")
            case "aborted":
                raise ModelAbortedError(answers[-1].error or "the recorded answer was aborted", provider=self.id)
            case _:
                return ModelResponse(answers, sum((message.usage for message in answers), Usage()))

    def _error(self, message: str) -> ProviderError:
        return ProviderError(message, provider=self.id)


def exchanges_in(messages: Sequence[Message]) -> Iterator[Exchange]:
    """Yield the answers of a conversation in order; consecutive assistant messages form one answer."""
    received: list[UserMessage | ToolMessage] = []
    answers: list[AssistantMessage] = []
    for message in messages:
        match message:
            case AssistantMessage():
                answers.append(message)
            case UserMessage() | ToolMessage():
                if answers:
                    yield Exchange(tuple(received), tuple(answers))
                    received, answers = [], []
                received.append(message)
            case _:  # independent of the model
                continue
    if answers:
        yield Exchange(tuple(received), tuple(answers))


def describe_difference(recorded: Sequence[Message], received: Sequence[Message], fit: Fit) -> str | None:
    """Return how the request differs from the recorded one, or None if it matches."""
    recorded_items, received_items = _comparable(recorded, fit), _comparable(received, fit)
    for recorded_item, received_item in zip(recorded_items, received_items, strict=False):
        if recorded_item != received_item:
            recorded_text = f"{recorded_item[0]} {_quote(recorded_item[1])}".rstrip()
            received_text = f"{received_item[0]} {_quote(received_item[1])}".rstrip()
            return f"recorded {recorded_text}, received {received_text}"
    if len(recorded_items) != len(received_items):
        return f"recorded {len(recorded_items)} messages after the last answer, received {len(received_items)}"
    return None


def _comparable(messages: Sequence[Message], fit: Fit) -> list[tuple[str, str, bool]]:
    """Return what is compared. The loop's own messages depend on its options and are left out."""
    items = []
    for message in messages:
        match message:
            case UserMessage() if is_user_input(message):
                items.append(("the user message", message.text, False))
            case ToolMessage(name=name):
                is_strict = fit == "strict"
                items.append(
                    (f"the result of {name}", message.text if is_strict else "", message.is_error and is_strict)
                )
            case _:
                continue
    return items


def _quote(text: str) -> str:
    return repr(text if len(text) <= 80 else text[:80] + "…") if text else ""


def load_messages(path: Path) -> list[Message]:
    """Return the messages in a stored session or a JSON list. Raises `ConfigurationError`."""
    try:
        with path.open("rb") as file:
            data = file.read(MAX_RECORDING_BYTES + 1)
    except OSError as error:
        raise ConfigurationError(
            f"cannot read the recording {path}: {error.strerror}; pass a stored session"
        ) from error
    if len(data) > MAX_RECORDING_BYTES:
        raise ConfigurationError(f"the recording {path} is larger than {MAX_RECORDING_BYTES} bytes; pass a smaller one")
    try:
        if data.lstrip().startswith(b"["):
            return msgspec.json.decode(data, type=list[Message])
        return msgspec.json.decode(data, type=Session).history()
    except (msgspec.MsgspecError, RecursionError) as error:
        raise ConfigurationError(f"{path} is neither a session nor a list of messages: {error}") from error
