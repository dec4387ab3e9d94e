"""The whole text of a run's last turn, read by range from the journal. See docs/spec/run-api.md, section 3.10.

The text is never in memory as a whole: one pass over the journal finds the messages of the last turn and their sizes,
and another one yields the wanted bytes fragment by fragment.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path

from agent_mux._util.sanitize import replace_surrogates
from agent_mux.errors import AgentMuxError
from agent_mux.events import AgentEvent
from agent_mux.events.content import MessageStartEvent, MessageStopEvent, TextDeltaEvent
from agent_mux.events.run import RetryEvent
from agent_mux.events.session import TurnEndEvent, TurnStartEvent
from agent_mux.run.answer import SEPARATOR
from agent_mux.run.derivation import CodecFactory, JournalEvents

_SEPARATOR = SEPARATOR.encode()


class WholeText:
    """The messages of the last turn, joined with blank lines, as UTF-8. Every call blocks."""

    def __init__(self, path: Path, make_codec: CodecFactory) -> None:
        """Read the journal once.

        Raises PARSE_ERROR for a file that is not a journal or is damaged, `OSError` for one that cannot be read.
        """
        self._path = path
        self._make_codec = make_codec
        turn = _LastTurn()
        for event in self._events():
            turn.observe(event)
        self._messages = frozenset(turn.messages)
        separators = len(_SEPARATOR) * max(len(turn.messages) - 1, 0)
        self.size = sum(turn.messages.values()) + separators
        """Bytes of UTF-8 of the text."""

    def chunks(self, offset: int = 0, limit: int | None = None) -> Iterator[bytes]:
        """Yield at most `limit` bytes of the text from a byte on, in chunks as the agent reported them."""
        end = self.size if limit is None else min(offset + limit, self.size)
        position = 0
        if offset >= end:
            return
        for chunk in _chunks_of(self._events(), self._messages):
            start, position = position, position + len(chunk)
            if position > offset:
                yield chunk[max(offset - start, 0) : end - start]
            if position >= end:
                return

    def read(self, offset: int = 0, limit: int | None = None) -> bytes:
        """Return at most `limit` bytes of the text from a byte on."""
        return b"".join(self.chunks(offset, limit))

    def _events(self) -> Iterator[AgentEvent]:
        journal = JournalEvents(self._path, self._make_codec, passes_texts=True)
        while (batch := journal.next_batch()) is not None:
            yield from batch
        yield from journal.cut_off()


def whole_text(path: str | Path | None, make_codec: CodecFactory, run_id: str) -> WholeText:
    """Return the text of a run. Raises RUN_NOT_FOUND without a journal, or when it is unreadable."""
    if path is None:
        message = f"run {run_id} has no journal, so that only the text of its result is known"
        raise AgentMuxError("RUN_NOT_FOUND", message)
    try:
        return WholeText(Path(path), make_codec)
    except OSError as error:
        message = f"cannot read the journal {path}: {error.strerror or error}; restore it"
        raise AgentMuxError("RUN_NOT_FOUND", message) from error


class _LastTurn:
    """Finds the messages of the last turn: those that the result has."""

    def __init__(self) -> None:
        self.messages: dict[int, int] = {}
        """By the number of a message among those of the main agent: its size in bytes."""
        self._number = -1
        self._size = 0
        self._is_in_turn = False

    def observe(self, event: AgentEvent) -> None:
        """Process the next event."""
        if event.subagent_id is not None:
            return
        match event:
            case TurnStartEvent():
                self.messages.clear()
                self._is_in_turn = True
            case TurnEndEvent():
                self._is_in_turn = False
            case RetryEvent() if not self._is_in_turn:
                self.messages.clear()
            case MessageStartEvent():
                self._number, self._size = self._number + 1, 0
            case TextDeltaEvent():
                self._size += len(_utf8(event.delta))
            case MessageStopEvent() if not event.abandoned:
                self.messages[self._number] = self._size
            case _:
                pass


def _chunks_of(events: Iterable[AgentEvent], wanted: frozenset[int]) -> Iterator[bytes]:
    number = -1
    is_first = True
    for event in events:
        if event.subagent_id is not None:
            continue
        if isinstance(event, MessageStartEvent):
            number += 1
            if number in wanted:
                if not is_first:
                    yield _SEPARATOR
                is_first = False
        elif isinstance(event, TextDeltaEvent) and number in wanted:
            yield _utf8(event.delta)


def _utf8(text: str) -> bytes:
    return replace_surrogates(text).encode()
