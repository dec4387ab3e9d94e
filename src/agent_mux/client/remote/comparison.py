"""The handle of a comparison that a service runs: its facts and events, its control and its result."""

import time
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Self

import anyio
import msgspec

from agent_mux.client.comparisons import CandidateLike, CheckLike, given_rules
from agent_mux.client.remote import lazy_httpx as httpx
from agent_mux.client.remote.connection import ServiceConnection, path_of
from agent_mux.client.remote.responses import decode_response, incompatible_response
from agent_mux.client.remote.stream import FIRST_DELAY, MAX_DELAY, TRANSIENT, ServerSentEventParser
from agent_mux.compare.candidates import make_candidate
from agent_mux.compare.ledger import AnyFact
from agent_mux.compare.records import Comparison
from agent_mux.errors import AgentMuxError
from agent_mux.events import AgentEvent, Rebuilder
from agent_mux.sdk.codec import Delivery
from agent_mux.settings.layers import fields_from_keywords
from agent_mux.settings.options_json import camel
from agent_mux.settings.requests import request_to_json


@dataclass(frozen=True, slots=True)
class TrialEvent:
    """An event of a trial's run."""

    trial: str
    candidate: str
    attempt: int
    """From 1."""
    event: AgentEvent


ComparisonMessage = AnyFact | TrialEvent
STOP_TIMEOUT = 300.0  # seconds: the agents end, and what they changed is stored, before the answer
MAX_WAITING = 256
"""Messages that are received ahead of their reader."""


class StoredFailure(msgspec.Struct):
    """Why a comparison was not carried out to its end."""

    code: Any
    message: str


class StoredView(msgspec.Struct, rename="camel"):
    """The fields of a comparison that the client reads."""

    id: str
    status: str
    record: Comparison | None = None
    error: StoredFailure | None = None


class _Message(msgspec.Struct):
    """A message of the stream: a fact, or an event of a trial."""

    type: str
    fact: msgspec.Raw = msgspec.Raw(b"null")
    event: msgspec.Raw = msgspec.Raw(b"null")
    trial: str = ""
    candidate: str = ""
    attempt: int = 0


class _CommandResponse(msgspec.Struct):
    """The field of a response to a command that the client reads."""

    delivery: Delivery = "applied"


class _ReceivedMessages:
    """Messages that a task of the client receives. A reader that leaves early leaves nothing behind but that task."""

    def __init__(self) -> None:
        self._waiting: deque[ComparisonMessage] = deque()
        self._changed = anyio.Event()
        self._is_complete = False
        self._error: AgentMuxError | None = None

    async def fill(self, messages: AsyncGenerator[ComparisonMessage, None]) -> None:
        """Receive the messages, at most `MAX_WAITING` ahead of the reader."""
        try:
            async with aclosing(messages):
                async for message in messages:
                    self._waiting.append(message)
                    self._announce()
                    while len(self._waiting) >= MAX_WAITING:
                        await self._changed.wait()
        except AgentMuxError as error:
            self._error = error
        finally:
            self._is_complete = True
            self._announce()

    def _announce(self) -> None:
        changed, self._changed = self._changed, anyio.Event()
        changed.set()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> ComparisonMessage:
        while not self._waiting:
            if self._error is not None:
                raise self._error
            if self._is_complete:
                raise StopAsyncIteration
            await self._changed.wait()
        message = self._waiting.popleft()
        self._announce()
        return message


class RemoteComparison:
    """A comparison of a service, with the interface of `ComparisonRun` as far as it does not concern the machine."""

    def __init__(
        self,
        connection: ServiceConnection,
        comparison_id: str,
        *,
        reconnect_for: float,
        spawn: Callable[[Callable[[], Any]], None],
    ) -> None:
        """Create the handle without sending a request.

        `reconnect_for`: seconds, as of `RemoteMux`. `spawn`: starts a function in the task group of the client.
        """
        self._connection = connection
        self._reconnect_for = reconnect_for
        self._spawn = spawn
        self._path = f"/v1/comparisons/{comparison_id}"
        self.id = comparison_id
        """ULID of the comparison."""
        self._is_over = False
        self.is_detached = False
        """Whether the comparison outlives the client."""

    @property
    def is_over(self) -> bool:
        """Whether the comparison is known to be over."""
        return self._is_over

    def messages(self, *, has_events: bool = True) -> AsyncIterator[ComparisonMessage]:
        """Return the facts of the ledger and the events of the trials, from the first, until the comparison is over.

        A connection that breaks is opened again where it broke. `has_events`: False for facts only.

        The iterator raises the error that the service returns, unless it is transient, and UNAVAILABLE.
        """
        received = _ReceivedMessages()
        self._spawn(partial(received.fill, self._receive(has_events=has_events)))
        return received

    async def _receive(self, *, has_events: bool) -> AsyncGenerator[ComparisonMessage, None]:
        position, delay, received_at = "", FIRST_DELAY, time.monotonic()
        rebuilders: dict[tuple[str, int], Rebuilder] = {}
        params = {"events": "true" if has_events else "false"}
        while True:
            try:
                parser = ServerSentEventParser()
                async with self._connection.stream(f"{self._path}/events", params, position) as chunks:
                    async for chunk in chunks:
                        received_at = time.monotonic()
                        for received in parser.feed(chunk):
                            position, delay = received.id, FIRST_DELAY
                            yield _decode(received.data, rebuilders)
                if (await self._view()).status != "active":
                    self._is_over = True
                    return
                failure = AgentMuxError("UNAVAILABLE", f"the service ended the stream of comparison {self.id}")
            except httpx.RequestError as error:
                failure = self._connection.unreachable(error)
            except AgentMuxError as error:
                if error.code not in TRANSIENT:
                    raise
                failure = error
            if time.monotonic() + delay > received_at + self._reconnect_for:
                raise failure
            await anyio.sleep(delay)
            delay = min(delay * 2, MAX_DELAY)

    async def facts(self, start: int = 0) -> AsyncIterator[AnyFact]:
        """Yield the facts of the ledger from number `start`, until the comparison is over. Raises as `messages`."""
        number = 0
        async for message in self.messages(has_events=False):
            if not isinstance(message, TrialEvent):
                if number >= start:
                    yield message
                number += 1

    def __await__(self) -> Generator[Any, Any, Comparison]:
        return self.result().__await__()

    async def result(self) -> Comparison:
        """Wait for the end and return the comparison.

        Raises:
            AgentMuxError: The comparison could not be carried out; what was recorded stays at the service. Also the
                errors of `messages`.
        """
        async for _ in self.messages(has_events=False):
            pass
        view = await self._view(has_record=True)
        if view.error is not None:
            raise AgentMuxError(view.error.code, view.error.message)
        return record_of(view)

    async def comparison(self) -> Comparison:
        """Return everything that is known about it now."""
        return record_of(await self._view(has_record=True))

    def detach(self) -> None:
        """Leave the comparison active when the block of the client that started it is left."""
        self.is_detached = True

    async def stop(self) -> None:
        """Abort the active trials and start no further one. Return when the comparison is over; it can be resumed."""
        await self._connection.request("POST", f"{self._path}/stop", {}, is_idempotent=True, timeout=STOP_TIMEOUT)
        self._is_over = True

    # -- the runs of trials

    async def approve(self, trial: str, *, interaction_id: str | None = None, always: bool = False) -> Delivery:
        """Approve an action that the agent of a trial asks for; without an id, the oldest one."""
        return await self._command(trial, "approve", {"interactionId": interaction_id, "always": always})

    async def deny(self, trial: str, reason: str | None = None, *, interaction_id: str | None = None) -> Delivery:
        """Deny an action that the agent of a trial asks for, or its question; without an id, the oldest action."""
        return await self._command(trial, "deny", {"interactionId": interaction_id, "reason": reason})

    async def respond(self, trial: str, interaction_id: str, answer: str | int) -> Delivery:
        """Answer a question of a trial's agent with a text, or with one of its options by position from 0."""
        name = "option" if isinstance(answer, int) else "text"
        return await self._command(trial, "respond", {"interactionId": interaction_id, name: answer})

    async def steer(self, trial: str, text: str) -> Delivery:
        """Send a message into the running turn of a trial."""
        return await self._command(trial, "steer", {"text": text})

    async def abort(self, trial: str) -> Delivery:
        """Abort the run of a trial, which is then excluded. The other trials continue."""
        return await self._command(trial, "abort", {})

    async def _command(self, trial: str, name: str, fields: Mapping[str, Any]) -> Delivery:
        """Send a command to the run of a trial. Raises the error that the service returns: RUN_NOT_ACTIVE, ..."""
        given = {field: value for field, value in fields.items() if value is not None}
        body = await self._connection.request("POST", path_of("comparisons", self.id, "trials", trial, name), given)
        response: _CommandResponse = decode_response(body, _CommandResponse)
        return response.delivery

    async def _view(self, *, has_record: bool = False) -> StoredView:
        path = path_of("comparisons", self.id, **({"records": "true"} if has_record else {}))
        body = await self._connection.request("GET", path, is_idempotent=True)
        view: StoredView = decode_response(body, StoredView)
        return view


def comparison_body(prompt: str, candidates: Sequence[CandidateLike], rules: Mapping[str, Any]) -> dict[str, Any]:
    """Return the body of a request for a comparison. Raises `ValidationError`."""
    values = given_rules(rules)
    options, checks = values.pop("options", {}), values.pop("checks", ())
    return {
        "prompt": prompt,
        "candidates": [_candidate(one) for one in candidates],
        "checks": [_check(one) for one in checks],
        "options": request_to_json(fields_from_keywords(options)),
        **{camel(name): _plain(value) for name, value in values.items()},
    }


def _candidate(given: CandidateLike) -> dict[str, Any]:
    candidate = make_candidate(given)
    patch = None if candidate.patch is None else str(candidate.patch)
    own = {"kind": candidate.kind, "name": candidate.name, "trials": candidate.trials, "patch": patch}
    known = {name: value for name, value in own.items() if value is not None}
    return {**request_to_json(fields_from_keywords(candidate.options)), **known}


def _check(given: CheckLike) -> Any:
    return msgspec.to_builtins(given) if isinstance(given, msgspec.Struct) else given


def _plain(value: Any) -> Any:
    if isinstance(value, Path):
        return str(value)
    return list(value) if isinstance(value, tuple) else value


def _decode(data: bytes, rebuilders: dict[tuple[str, int], Rebuilder]) -> ComparisonMessage:
    try:
        message = msgspec.json.decode(data, type=_Message)
        if message.type == "fact":
            fact: AnyFact = msgspec.json.decode(message.fact, type=AnyFact)
            return fact
        rebuilder = rebuilders.setdefault((message.trial, message.attempt), Rebuilder())
        event: Any = rebuilder.decode(bytes(message.event))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise incompatible_response(error) from error
    return TrialEvent(message.trial, message.candidate, message.attempt, event)


def record_of(view: StoredView) -> Comparison:
    """Return the records of a comparison. Raises UNAVAILABLE if the service did not send them."""
    if view.record is None:
        raise AgentMuxError("UNAVAILABLE", f"the service sent no records of comparison {view.id}; update the service")
    return view.record
