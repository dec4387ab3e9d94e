"""Cases that are one run, checked by all that it leaves: events, journal, processes, files, descriptors."""

import secrets
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any
from unittest import mock

import anyio

from agent_mux.assembler import ExitReason
from agent_mux.client import AgentMux
from agent_mux.contract import ContractChecker
from agent_mux.events import AgentEvent, TextDeltaEvent, encode_event
from agent_mux.journal.file import JournalReader
from agent_mux.journal.records import Kind, decode_control
from agent_mux.run.derivation import derive_events
from agent_mux.run.environment import temp_dir_of
from agent_mux.run.handle import RunHandle
from agent_mux.run.result import RunResult
from agent_mux.sdk.registry import AdapterRegistry
from agent_mux_testing.torture import census
from agent_mux_testing.torture.adapter import AGENT, TortureCodec, torture_adapter
from agent_mux_testing.torture.case import CaseOutcome, Circumstances

SETTLE_BOUND = 4.0
"""Seconds within which a run ends after the agent's last output, or after our order to end.

They cover the grace periods of the runner, and a busy machine.
"""
_MAX_COMPARED = 5000
"""Longer streams are compared by their count only: comparing accumulated text takes quadratic time."""
_MICROSECONDS = 1_000_000  # in a second
_ENDING_CONTROLS = frozenset({"abort", "timeout", "inactivity"})
_CLOCK_JUMPS = (timedelta(days=1), -timedelta(days=400), timedelta(seconds=-1), timedelta(days=3))


def one_line(_: int) -> int:
    """Return 1: the agent prints one line, whatever the size."""
    return 1


@dataclass(frozen=True, slots=True, kw_only=True)
class RunCase:
    """A case that is one run."""

    name: str
    meaning: str
    verdict: ExitReason
    behaviour: str = ""
    """The behaviour of the agent; empty when it has the name of the case."""
    bound: float = 60.0
    sizes: tuple[int, int] = (1, 1)
    at_terminal: bool = True
    lines: Callable[[int], int] = one_line
    """Size to the number of numbered lines that must arrive."""
    characters: Callable[[int], int] | None = None
    """Size to the number of characters in all lines together; None: not checked."""
    settle: float = SETTLE_BOUND
    meanwhile: Callable[[RunHandle], Awaitable[None]] | None = None
    """What the consumer does to the run."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Options of the run."""
    peak_mib: float | None = None
    """The allowed growth of memory in the full size, in MiB; None: not measured."""
    reads_slowly: bool = False
    clock_jumps: bool = False
    events: tuple[str, ...] = ()
    """Event types that must occur."""

    async def play(self, circumstances: Circumstances) -> CaseOutcome:
        """Play the run, end what it leaves, and report leaks among the findings."""
        token = f"torture-{secrets.token_hex(8)}"
        before = census.Footprint.now()
        with tempfile.TemporaryDirectory() as directory:
            try:
                outcome = await _play(self, circumstances, token, Path(directory))
                left = [f"process {census.name_of(pid)} was left" for pid in census.survivors(token)]
            finally:
                census.end(token)
        findings = (*outcome.findings, *left, *before.leaks())
        return replace(outcome, findings=findings)


@asynccontextmanager
async def _client(case: RunCase, where: Circumstances, token: str, directory: Path) -> AsyncIterator[AgentMux]:
    """Open a client whose only agent is that of the case."""
    registry = AdapterRegistry()
    registry.register(torture_adapter(case.behaviour or case.name, where.size, token, terminal=where.terminal))
    # Its own project directory: the user's configuration must not affect the case.
    async with AgentMux(
        adapters=registry, default_agent=AGENT, config_dir=directory, project_config_dir=directory
    ) as mux:
        yield mux


async def _play(case: RunCase, where: Circumstances, token: str, directory: Path) -> CaseOutcome:
    memory = census.Memory() if case.peak_mib is not None else None
    with _jumping_clock() if case.clock_jumps else _steady_clock():
        async with _client(case, where, token, directory) as mux, anyio.create_task_group() as tasks:
            run = mux.run(**{"prompt": "begin", "approval_mode": "prompt", "max_text_bytes": 0, **case.options})
            if memory is not None:
                tasks.start_soon(memory.watch)
            if case.meanwhile is not None:
                tasks.start_soon(_meanwhile, case.meanwhile, run)
            stream = _ReceivedStream()
            await stream.read(run, slowly=case.reads_slowly)
            result = await run
            tasks.cancel_scope.cancel()
    settle, differences = _check_journal(result, stream)
    peak = None if memory is None else memory.peak_mib
    findings = [*stream.findings(case, where.size), *_result_findings(case, where, result, peak), *differences]
    if temp_dir_of(run.run_id).exists():
        findings.append(f"{temp_dir_of(run.run_id)} was left")
    late = f"it settled after {settle:.1f} s, not within {case.settle:g} s" if settle > case.settle else None
    return CaseOutcome(verdict=result.exit_reason, findings=tuple(findings), late=late, settle=settle, peak_mib=peak)


async def _meanwhile(act: Callable[[RunHandle], Awaitable[None]], run: RunHandle) -> None:
    await act(run)


def _result_findings(case: RunCase, where: Circumstances, result: RunResult, peak: float | None) -> Iterator[str]:
    if result.exit_reason != case.verdict:
        yield f"the verdict is {result.exit_reason}, not {case.verdict}"
    if peak is not None and case.peak_mib is not None and peak > case.peak_mib and where.size == case.sizes[1]:
        yield f"memory grew by {peak:.0f} MiB, more than {case.peak_mib:g} MiB"


class _ReceivedStream:
    """The events that a consumer received, checked while they arrive."""

    def __init__(self) -> None:
        self.events: list[AgentEvent] = []
        """The first events, one more than are compared."""
        self.count = 0
        self._types: set[str] = set()
        self._lines = 0
        self._characters = 0
        self._gap: str | None = None
        self._checker = ContractChecker()
        self._violations: list[str] = []

    async def read(self, run: RunHandle, *, slowly: bool) -> None:
        """Read the run to its end; `slowly` with pauses in which the agent prints more than the window holds."""
        async for event in run:
            self._add(event)
            if slowly and self.count % 100_000 == 1:
                await anyio.sleep(0.2)
        self._violations += map(str, self._checker.finish())

    def _add(self, event: AgentEvent) -> None:
        self.count += 1
        self._types.add(event.type)
        self._violations += map(str, self._checker.feed(event))
        if len(self.events) <= _MAX_COMPARED:
            self.events.append(event)
        if isinstance(event, TextDeltaEvent):
            self._add_line(event.delta)

    def _add_line(self, text: str) -> None:
        number = text.partition(" ")[0]
        if number != str(self._lines) and self._gap is None:
            self._gap = f"line {number[:20]!r} came where line {self._lines} was due"
        self._lines += 1
        self._characters += len(text)

    def findings(self, case: RunCase, size: int) -> Iterator[str]:
        """Yield how the stream differs from what the case requires."""
        yield from (f"the stream breaks the contract: {violation}" for violation in self._violations[:5])
        if self._gap is not None:
            yield self._gap
        if self._lines != case.lines(size):
            yield f"{self._lines} lines came, not {case.lines(size)}"
        if case.characters is not None and self._characters != case.characters(size):
            yield f"{self._characters} characters came, not {case.characters(size)}"
        yield from (f"no event {required}" for required in case.events if required not in self._types)


def _check_journal(result: RunResult, stream: _ReceivedStream) -> tuple[float, list[str]]:
    """Return how many seconds the end took, and how the events of the journal differ from the live ones."""
    assert result.journal is not None  # noqa: S101  # every case keeps a journal
    path = Path(result.journal)
    last, ended = 0, 0
    for record in JournalReader(path).read():
        is_order = record.kind is Kind.CONTROL and decode_control(record).what in _ENDING_CONTROLS
        if record.kind is Kind.STDOUT or record.kind is Kind.STDERR or is_order:
            last = record.at
        ended = record.at
    return (ended - last) / _MICROSECONDS, _differences(path, stream)


def _differences(path: Path, stream: _ReceivedStream) -> list[str]:
    count = 0
    for event in derive_events(path, TortureCodec):
        if stream.count <= _MAX_COMPARED and encode_event(event) != encode_event(stream.events[count]):
            return [f"event {count} differs when it is derived from the journal"]
        count += 1
    return [] if count == stream.count else [f"{stream.count} events were live, {count} are in the journal"]


@contextmanager
def _jumping_clock() -> Iterator[None]:
    """Let the wall clock jump forwards and backwards at every reading; the monotonic clock stays correct."""
    real, readings = time.time_ns, 0

    def time_ns() -> int:
        nonlocal readings
        readings += 1
        return real() + int(_CLOCK_JUMPS[readings % len(_CLOCK_JUMPS)].total_seconds() * 1e9)

    def seconds() -> float:
        return time_ns() / 1e9

    patches: dict[str, Any] = {"time_ns": time_ns, "time": seconds}
    with mock.patch.multiple(time, **patches):
        yield


@contextmanager
def _steady_clock() -> Iterator[None]:
    yield
