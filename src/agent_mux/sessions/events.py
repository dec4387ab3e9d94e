"""A stored session as events: the events that a run of it would have emitted, also while the session grows."""

import hashlib
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Self

import anyio
import msgspec

from agent_mux._util.ulids import ulid_from_bytes
from agent_mux.assembler import Ending, StreamAssembler, StreamContext
from agent_mux.errors import AgentMuxError
from agent_mux.events import AgentEvent
from agent_mux.sdk import facts
from agent_mux.sdk.adapter import Adapter
from agent_mux.sdk.models import prices_of
from agent_mux.sdk.session_databases import LOG_SUFFIX
from agent_mux.sdk.sessions import (
    ModelCalled,
    PromptSent,
    SessionCost,
    SessionDescribed,
    SessionEntry,
    SessionFact,
    SessionReader,
    UnreadableSessionError,
)
from agent_mux.sessions.library import StoredSession
from agent_mux.sessions.spending import CallCollector, UsageTotals
from agent_mux.sessions.summary import SessionSummary

POLL_INTERVAL = 0.2  # seconds between two checks of the file


class SessionEventConverter:
    """Converts the entries of a session to events. A prompt begins a turn; facts without an event are omitted."""

    def __init__(self, adapter: Adapter, summary: SessionSummary) -> None:
        context = StreamContext(
            run_id=run_id_of(summary.id),
            agent=adapter.agent,
            display_name=adapter.display_name,
            buffered=True,
            interactive=True,
            show_approvals=False,
            prices=prices_of(adapter.models()),
            auth_guidance=adapter.auth_guidance,
        )
        self._assembler = StreamAssembler(context)
        self._calls = CallCollector(context.prices)
        self._spent = UsageTotals()
        self._pending_call: ModelCalled | None = None
        """The last model call, which the next entry may replace."""
        self._assembler.now = summary.created_at or summary.updated_at  # for entries without a time

    def read(self, cursor: SessionReader) -> Iterator[AgentEvent]:
        """Yield the events of the entries that the cursor has not returned before."""
        for entry in cursor.read():
            yield from self.receive(entry)

    def receive(self, entry: SessionEntry) -> list[AgentEvent]:
        """Return the events of one entry."""
        if entry.at is not None:
            self._assembler.now = entry.at
        self._convert(entry.fact)
        return self._assembler.drain()

    def end(self) -> list[AgentEvent]:
        """Close what is open and return the last events."""
        self._count_pending_call()
        self._assembler.end(Ending(code=0))
        return self._assembler.drain()

    def _convert(self, fact: SessionFact) -> None:
        receive = self._assembler.receive
        match fact:
            case PromptSent():
                self._count_pending_call()
                if self._assembler.in_turn:  # the previous turn was cut off
                    receive(facts.TurnStopped())
                receive(facts.TurnBegin())
            case SessionDescribed(session_id):
                if session_id is not None:
                    receive(facts.SessionKnown(session_id))
            case ModelCalled(is_inside=False) as call:
                self._add_model_call(call)
            case SessionCost(usd):
                self._count_pending_call()
                receive(facts.RunCost(msgspec.structs.replace(self._spent.record(), total_usd=usd, source="native")))
            case facts.TurnDone() | facts.TurnFailed() | facts.TurnStopped() as closing:
                self._count_pending_call()
                receive(closing)
            case facts.Fact():
                receive(fact)

    def _add_model_call(self, call: ModelCalled) -> None:
        # Agents store several entries of one call. It is counted when the next call follows or the turn ends.
        if self._pending_call is not None and (not call.key or call.key != self._pending_call.key):
            self._count_pending_call()
        self._pending_call = call
        if call.model and call.model != self._assembler.model:
            self._assembler.receive(facts.SessionKnown(self._assembler.session_id or "", model=call.model))

    def _count_pending_call(self) -> None:
        call, self._pending_call = self._pending_call, None
        if call is not None:
            self._spent.add(self._calls.price(0, call))
            self._assembler.receive(call.usage)


class SessionWatcher:
    """An endless iterator over the events of a session: the stored ones, then those that its agent adds.

    No store records that a session is over, because it can be resumed at any time. An iterator and not a generator, so
    that a consumer may drop it at any point.
    """

    def __init__(self, known: StoredSession, cursor: SessionReader, *, from_start: bool = True) -> None:
        """`cursor` is at the beginning of the session. `from_start=False` skips the events that are stored already."""
        self._session = known.summary.id
        self._path = known.found.path
        self._cursor = cursor
        self._converter = SessionEventConverter(known.adapter, known.summary)
        self._waiting: deque[AgentEvent] = deque()
        self._emits = from_start
        self._last_state: tuple[tuple[int, int], ...] | None = None

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> AgentEvent:
        """Return the next event.

        Raises:
            AgentMuxError: SESSION_NOT_FOUND if the session was removed, or can no longer be read.
        """
        while not self._waiting:
            try:
                await self._poll()
            except FileNotFoundError as error:
                step = "`amux sessions list` shows the others"
                message = f"{self._session} was removed while it was followed; {step}"
                raise AgentMuxError("SESSION_NOT_FOUND", message) from error
            except (OSError, UnreadableSessionError) as error:
                message = f"{self._session} can no longer be read: {error}"
                raise AgentMuxError("SESSION_NOT_FOUND", message) from error
        return self._waiting.popleft()

    async def _poll(self) -> None:
        """Read what is new; wait if nothing is."""
        state = await anyio.to_thread.run_sync(_state_of, self._path)
        if state == self._last_state:
            await anyio.sleep(POLL_INTERVAL)
            return
        events = await anyio.to_thread.run_sync(self._read)
        self._last_state = state
        if self._emits:
            self._waiting.extend(events)
        self._emits = True

    def _read(self) -> list[AgentEvent]:
        return list(self._converter.read(self._cursor))


def _state_of(path: Path) -> tuple[tuple[int, int], ...]:
    log = path.with_name(path.name + LOG_SUFFIX)
    found = [path.stat(), *([log.stat()] if log.exists() else [])]
    return tuple((status.st_size, status.st_mtime_ns) for status in found)


def run_id_of(session_id: str) -> str:
    """Return the run id of a session's events, derived from its unified id so that it is the same every time."""
    digest = hashlib.sha256(session_id.encode("utf-8", "replace")).digest()
    return ulid_from_bytes(digest[:16])
