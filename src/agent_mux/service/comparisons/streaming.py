"""The stream of a comparison: the facts of its ledger and the events of its trials, live and afterwards."""

from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import aclosing, suppress
from pathlib import Path

from anyio import to_thread

from agent_mux._util.sanitize import to_json_bytes
from agent_mux.compare.ledger import AnyFact, ComparisonFolder
from agent_mux.errors import AgentMuxError
from agent_mux.run.derivation import CodecFactory
from agent_mux.run.readers import EventReader
from agent_mux.service.comparisons.positions import OpenAttempts, StreamPosition, check_position
from agent_mux.service.comparisons.registry import ComparisonRegistry, LiveComparison
from agent_mux.service.known_secrets import KnownSecrets
from agent_mux.service.pieces import pieces_of
from agent_mux.service.runs.event_cache import EncodedEventCache
from agent_mux.service.runs.streaming import Batch, stored_batches

MessageFrame = Callable[[str, bytes], bytes]
"""Encode the id and the JSON of a message for transport."""
LARGEST_CHUNK = 1 << 16  # bytes of a chunk; a larger message is sent in pieces


def message_as_sse(position: str, line: bytes) -> bytes:
    """Encode a Server-Sent Event whose id is the position behind it."""
    return b"id: %b\ndata: %b\n\n" % (position.encode(), line)


def message_as_json_line(_: str, line: bytes) -> bytes:
    """Encode a line of JSON lines."""
    return line + b"\n"


class ComparisonStreams:
    """The streams of all comparisons of a service."""

    def __init__(
        self, registry: ComparisonRegistry, make_codec: CodecFactory, cache: EncodedEventCache, secrets: KnownSecrets
    ) -> None:
        self._registry = registry
        self._make_codec = make_codec
        self._cache = cache
        self._secrets = secrets

    async def is_past_end(self, comparison_id: str, position: StreamPosition) -> bool:
        """Return whether the comparison is over and nothing follows a position.

        Raises NOT_FOUND, and `ValidationError` for a position that the stream cannot have.
        """
        live = self._registry.live(comparison_id)
        facts = await to_thread.run_sync(self._registry.store.folder(comparison_id).facts)
        check_position(position, facts)
        return live is None and position.facts == len(facts) > 0 and not OpenAttempts(facts).by_trial

    async def chunks(
        self, comparison_id: str, position: StreamPosition, frame: MessageFrame, *, has_events: bool = True
    ) -> AsyncGenerator[bytes, None]:
        """Yield the encoded messages behind a position, until the comparison is over.

        `has_events`: with the events of trials, not only the facts.
        """
        folder = self._registry.store.folder(comparison_id)
        reader = _ComparisonReader(
            folder, self._registry.live(comparison_id), position, self._make_codec, self._cache, self._secrets
        )
        reader.has_events = has_events
        chunk: list[bytes] = []
        size = 0
        async with aclosing(reader.messages()) as messages:
            async for message in messages:
                if message is not None:
                    chunk.append(frame(*message))
                    size += len(chunk[-1])
                if chunk and (message is None or size >= LARGEST_CHUNK):
                    pieces, chunk, size = pieces_of(b"".join(chunk)), [], 0
                    for piece in pieces:
                        yield piece
        for piece in pieces_of(b"".join(chunk)) if chunk else ():
            yield piece


class _ComparisonReader:
    """One reader: its position, and a source of events for each open attempt."""

    def __init__(  # noqa: PLR0913, PLR0917  # the parts that it reads from
        self,
        folder: ComparisonFolder,
        live: LiveComparison | None,
        position: StreamPosition,
        make_codec: CodecFactory,
        cache: EncodedEventCache,
        secrets: KnownSecrets,
    ) -> None:
        self._folder = folder
        self._live = live
        self._position = position
        self._make_codec = make_codec
        self._cache = cache
        self._secrets = secrets
        self._readers: dict[str, EventReader] = {}
        """Readers of the live runs of open attempts, by trial."""
        self.has_events = True
        self._opened = OpenAttempts()

    async def messages(self) -> AsyncGenerator[tuple[str, bytes] | None, None]:
        """Yield the id and the JSON of each message; None before a wait."""
        stored = await to_thread.run_sync(self._folder.facts)
        self._opened = OpenAttempts(stored[: self._position.facts])
        while True:
            changed, is_over = (None, True) if self._live is None else (self._live.changed, self._live.is_over)
            before = str(self._position)
            async with aclosing(self._new(stored if self._live is None else self._live.run.recorded)) as new:
                async for message in new:
                    yield message
            if is_over:
                break
            if str(self._position) == before:
                yield None
                assert changed is not None  # noqa: S101  # the comparison is live
                await changed.wait()
        for trial in self._opened:  # those of a process that was killed
            async with aclosing(self._rest(trial)) as rest:
                async for message in rest:
                    yield message

    async def _new(self, facts: Sequence[AnyFact]) -> AsyncGenerator[tuple[str, bytes], None]:
        """Yield what follows the position now: facts, each behind the events that it closes, and events of trials."""
        while self._position.facts < len(facts):
            fact = facts[self._position.facts]
            for trial in self._opened.closed_by(fact):
                async with aclosing(self._rest(trial)) as rest:
                    async for message in rest:
                        yield message
                self._readers.pop(trial, None)
                self._position.events.pop(trial, None)
            self._opened.apply(fact)
            self._position.facts += 1
            yield str(self._position), self._fact_line(fact)
        for trial in self._opened if self.has_events else ():
            reader = self._reader(trial)
            batch = await reader.batch() if reader is not None and reader.has_more else None
            for message in () if batch is None else self._encode(trial, batch):
                yield message

    def _reader(self, trial: str) -> EventReader | None:
        """Return the reader of the live run of an open attempt."""
        if trial not in self._readers and self._live is not None:
            handle = self._live.run.runs.get(trial)
            if handle is not None and handle.run_id == self._opened.by_trial[trial].run_id:
                self._readers[trial] = handle.events(self._position.events.get(trial, 0))
        return self._readers.get(trial)

    async def _rest(self, trial: str) -> AsyncGenerator[tuple[str, bytes], None]:
        """Yield the messages of the remaining events of an open attempt, whose run is over."""
        if not self.has_events:
            return
        reader, attempt = self._reader(trial), self._opened.by_trial[trial]
        if reader is not None:
            while (batch := await reader.batch()) is not None:
                for message in self._encode(trial, batch):
                    yield message
            return
        path = None if attempt.journal is None else self._folder.path / attempt.journal
        if path is None or not await to_thread.run_sync(Path.is_file, path):
            return  # a built-in candidate, or an agent that did not start
        with suppress(AgentMuxError):  # the recording was removed or is damaged: the facts have the outcome
            async with aclosing(stored_batches(path, self._make_codec, self._position.events.get(trial, 0))) as batches:
                async for batch in batches:
                    for message in self._encode(trial, batch):
                        yield message

    def _encode(self, trial: str, batch: Batch) -> Iterator[tuple[str, bytes]]:
        (first, events), attempt = batch, self._opened.by_trial[trial]
        where = {"type": "event", "trial": trial, "candidate": trial.rpartition("-")[0], "attempt": attempt.number}
        head = to_json_bytes(where)[:-1]
        for number, event in enumerate(events, first):
            line = self._cache.line(attempt.run_id, number, event, accumulated=False)
            self._position.events[trial] = number + 1
            yield str(self._position), b'%b,"event":%b}' % (head, line)

    def _fact_line(self, fact: AnyFact) -> bytes:
        return self._secrets.mask(b'{"type":"fact","fact":%b}' % to_json_bytes(fact))
