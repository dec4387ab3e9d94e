"""A model that says again what a model said in a stored conversation. Offline, the same each time.

It checks that it is asked what was asked then. "strict": tool results are the same, to the letter. "lenient": they may
differ (times, paths), but come from the same tools in the same order. Source: phi-core, "MockProvider"; sessions.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from agent_loop.errors import ConfigurationError, ModelAbortedError, ProviderError
from agent_loop.messages import AssistantMessage, Message, ToolMessage, UserMessage
from agent_loop.providers.chunking import message_chunks, tell
from agent_loop.providers.playback import since_last_answer
from agent_loop.providers.provider import ModelRequest, ModelResponse, OnChunk, ProviderCapabilities
from agent_loop.sessions.session import Session
from agent_loop.usage import Usage

Fit = Literal["strict", "lenient"]
Heard = tuple[UserMessage | ToolMessage, ...]

MAX_RECORDING_BYTES = 256 * 1024 * 1024
SAID_BY_PEOPLE = frozenset({"user", "steering", "follow_up"})
"""Other user messages are the loop's own: they depend on how it is set."""


class Exchange(msgspec.Struct, frozen=True):
    """One answer of the recording, and what was asked."""

    asked: Heard
    said: tuple[AssistantMessage, ...]


class ReplayProvider:
    """Plays the model's side of a conversation. Its place is kept here: one provider for one run of it."""

    id = "replay"
    capabilities = ProviderCapabilities()

    def __init__(self, messages: Sequence[Message], *, fit: Fit = "lenient") -> None:
        self._exchanges = tuple(exchanges_in(messages))
        self._fit: Fit = fit
        self._next = 0
        models = (said.model for exchange in self._exchanges for said in exchange.said)
        self.model = next((model for model in models if model), "recording")

    @classmethod
    def from_name(cls, rest: str) -> "ReplayProvider":
        """What stands behind `replay:PATH`, or `replay:strict:PATH`. Raises `ConfigurationError`."""
        prefix, _, path = rest.partition(":")
        return cls(load_messages(Path(path)), fit="strict") if prefix == "strict" else cls(load_messages(Path(rest)))

    async def respond(self, request: ModelRequest, on_chunk: OnChunk) -> ModelResponse:
        """The next answer. Raises `ProviderError` where there is none, or the request is another than it was then."""
        number = self._next + 1
        if request.purpose == "summary" or self._next >= len(self._exchanges):
            raise self._error(f"the recording has no answer to request {number} ({request.purpose}); make a new one")
        exchange = self._exchanges[self._next]
        if (difference := difference_of(exchange.asked, since_last_answer(request.messages), self._fit)) is not None:
            raise self._error(f"request {number} does not fit the recording: {difference}; make a new one")
        self._next += 1
        for chunk in message_chunks(exchange.said):
            await tell(chunk, on_chunk)
        return self._answer(exchange.said)

    def _answer(self, said: tuple[AssistantMessage, ...]) -> ModelResponse:
        match said[-1].stop_reason:
            case "error":
                raise self._error(said[-1].error or "the recorded answer failed")
            case "aborted":
                raise ModelAbortedError(said[-1].error or "the recorded answer was aborted", provider=self.id)
            case _:
                return ModelResponse(said, sum((message.usage for message in said), Usage()))

    def _error(self, sentence: str) -> ProviderError:
        return ProviderError(sentence, provider=self.id)


def exchanges_in(messages: Sequence[Message]) -> Iterator[Exchange]:
    """The answers of a conversation in their order; assistant messages side by side are one answer."""
    asked: list[UserMessage | ToolMessage] = []
    said: list[AssistantMessage] = []
    for message in messages:
        match message:
            case AssistantMessage():
                said.append(message)
            case UserMessage() | ToolMessage():
                if said:
                    yield Exchange(tuple(asked), tuple(said))
                    asked, said = [], []
                asked.append(message)
            case _:  # neither the system's nor the application's words depend on the model
                continue
    if said:
        yield Exchange(tuple(asked), tuple(said))


def difference_of(recorded: Sequence[Message], asked: Sequence[Message], fit: Fit) -> str | None:
    """How what is asked differs from what was asked then; None: not."""
    then, now = _essence(recorded, fit), _essence(asked, fit)
    for was, is_now in zip(then, now, strict=False):
        if was != is_now:
            return f"there was {was[0]} {_short(was[1])}, and now there is {is_now[0]} {_short(is_now[1])}"
    if len(then) != len(now):
        return f"there were {len(then)} messages behind the last answer, and now there are {len(now)}"
    return None


def _essence(messages: Sequence[Message], fit: Fit) -> list[tuple[str, str, bool]]:
    essence = []
    for message in messages:
        match message:
            case UserMessage(origin=origin) if origin in SAID_BY_PEOPLE:
                essence.append(("the user's", message.text, False))
            case ToolMessage(name=name):
                exact = fit == "strict"
                essence.append((f"the result of {name}", message.text if exact else "", message.is_error and exact))
            case _:
                continue
    return essence


def _short(text: str) -> str:
    return repr(text if len(text) <= 80 else text[:80] + "…") if text else ""


def load_messages(path: Path) -> list[Message]:
    """The conversation in a file: a stored session, or a JSON list of messages. Raises `ConfigurationError`."""
    try:
        with path.open("rb") as file:
            data = file.read(MAX_RECORDING_BYTES + 1)
    except OSError as error:
        raise ConfigurationError(
            f"cannot read the recording {path}: {error.strerror}; give a stored session"
        ) from error
    if len(data) > MAX_RECORDING_BYTES:
        raise ConfigurationError(f"the recording {path} is larger than {MAX_RECORDING_BYTES} bytes; give a smaller one")
    try:
        if data.lstrip().startswith(b"["):
            return msgspec.json.decode(data, type=list[Message])
        return msgspec.json.decode(data, type=Session).history()
    except (msgspec.MsgspecError, RecursionError) as error:
        raise ConfigurationError(f"{path} is neither a session nor a list of messages: {error}") from error
