"""A stored session as the events that a run of it would have had."""

import hashlib
from collections.abc import Iterator

import msgspec
from ulid import ULID

from agent_mux.assembler import Ending, StreamAssembler, StreamContext
from agent_mux.events import AgentEvent
from agent_mux.sdk import facts
from agent_mux.sdk.adapter import Adapter
from agent_mux.sdk.models import prices_of
from agent_mux.sdk.sessions import Cursor, Described, Entry, ModelCalled, Prompted, SpentSoFar, Told
from agent_mux.sessions.spending import CallCollector, UsageTotals
from agent_mux.sessions.summary import SessionSummary


class SessionEvents:
    """Entries in, events out. Prompts begin turns; what only stores know is left out."""

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
        self._tally = CallCollector(context.prices)
        self._spent = UsageTotals()
        self._call: ModelCalled | None = None
        """The last one, which may be told of again."""
        self._assembler.now = summary.created_at or summary.updated_at  # of what has no other time

    def read(self, cursor: Cursor) -> Iterator[AgentEvent]:
        """The events of what was not read yet."""
        for entry in cursor.read():
            yield from self.take(entry)

    def take(self, entry: Entry) -> list[AgentEvent]:
        """The events of one entry."""
        if entry.at is not None:
            self._assembler.now = entry.at
        self._tell(entry.fact)
        return self._assembler.drain()

    def _tell(self, told: Told) -> None:
        tell = self._assembler.receive
        match told:
            case Prompted():
                self._count()
                if self._assembler.in_turn:  # it was broken off
                    tell(facts.TurnStopped())
                tell(facts.TurnBegin())
            case Described(session_id):
                if session_id is not None:
                    tell(facts.SessionKnown(session_id))
            case ModelCalled(is_inside=False) as call:
                self._called(call)
            case SpentSoFar(usd):
                self._count()
                tell(facts.RunCost(msgspec.structs.replace(self._spent.record(), total_usd=usd, source="native")))
            case facts.TurnDone() | facts.TurnFailed() | facts.TurnStopped() as closing:
                self._count()
                tell(closing)
            case facts.Fact() as fact:
                tell(fact)

    def _called(self, call: ModelCalled) -> None:
        """Agents tell of one call several times: it counts when the next one is told of, or when the turn is over."""
        if self._call is not None and (not call.key or call.key != self._call.key):
            self._count()
        self._call = call
        if call.model and call.model != self._assembler.model:
            self._assembler.receive(facts.SessionKnown(self._assembler.session_id or "", model=call.model))

    def _count(self) -> None:
        call, self._call = self._call, None
        if call is not None:
            self._spent.add(self._tally.priced(0, call))
            self._assembler.receive(call.usage)

    def end(self) -> list[AgentEvent]:
        """Nothing more will come: what is open is closed."""
        self._count()
        self._assembler.end(Ending(code=0))
        return self._assembler.drain()


def run_id_of(session_id: str) -> str:
    """A run id for the events of the session with this unified id: the same each time it is read."""
    digest = hashlib.sha256(session_id.encode("utf-8", "replace")).digest()
    return str(ULID.from_bytes(digest[:16]))
