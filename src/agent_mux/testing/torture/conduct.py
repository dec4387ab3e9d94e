"""Plays a case that is one run, and looks at everything it leaves: events, journal, processes, files, descriptors."""

import secrets
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any
from unittest import mock

import anyio

from agent_mux.client import AgentMux
from agent_mux.contract import ContractChecker
from agent_mux.events import AgentEvent, TextDeltaEvent, encode_event
from agent_mux.registry import AdapterRegistry
from agent_mux.run.derive import derive_events
from agent_mux.run.handle import RunHandle
from agent_mux.run.journal import JournalReader
from agent_mux.run.records import Kind, control_of
from agent_mux.run.result import RunResult
from agent_mux.run.tempdir import temp_dir_of
from agent_mux.testing.torture import census
from agent_mux.testing.torture.adapter import AGENT, TortureCodec, torture_adapter
from agent_mux.testing.torture.case import Circumstances, Outcome, RunCase

COMPARED = 5000
"""Events that are compared byte by byte; more of them only by what they say: each shows all text so far."""
SECOND = 1_000_000  # microseconds
_ENDS = frozenset({"abort", "timeout", "inactivity"})
_JUMPS = (timedelta(days=1), -timedelta(days=400), timedelta(seconds=-1), timedelta(days=3))


async def conduct(case: RunCase, where: Circumstances) -> Outcome:
    """Play the case and say what came of it."""
    token = f"torture-{secrets.token_hex(8)}"
    before = census.Footprint.now()
    with tempfile.TemporaryDirectory() as directory:
        try:
            outcome = await _play(case, where, token, Path(directory))
            left = [f"process {census.name_of(pid)} was left" for pid in census.survivors(token)]
        finally:
            census.end(token)
    findings = (*outcome.findings, *left, *before.leaks())
    return Outcome(verdict=outcome.verdict, findings=findings, settle=outcome.settle, peak_mib=outcome.peak_mib)


@asynccontextmanager
async def client(case: RunCase, where: Circumstances, token: str, directory: Path) -> AsyncIterator[AgentMux]:
    """A client whose only agent is that of the case."""
    registry = AdapterRegistry()
    registry.register(torture_adapter(case.behaviour or case.name, where.size, token, terminal=where.terminal))
    # No project: what somebody's configuration says has nothing to do with this.
    async with AgentMux(
        adapters=registry, default_agent=AGENT, config_dir=directory, project_config_dir=directory
    ) as mux:
        yield mux


async def _play(case: RunCase, where: Circumstances, token: str, directory: Path) -> Outcome:
    memory = census.Memory() if case.peak_mib is not None else None
    with _jumping_clock() if case.clock_jumps else _steady_clock():
        async with client(case, where, token, directory) as mux, anyio.create_task_group() as tasks:
            run = mux.run(**{"prompt": "begin", "approval_mode": "prompt", **case.options})
            if memory is not None:
                tasks.start_soon(memory.watch)
            if case.meanwhile is not None:
                tasks.start_soon(_meanwhile, case.meanwhile, run)
            seen = Seen()
            await seen.read(run, slowly=case.reads_slowly)
            result = await run
            tasks.cancel_scope.cancel()
    settle, unlike = _ask_journal(result, seen)
    peak = None if memory is None else memory.peak_mib
    findings = [*seen.findings(case, where.size), *_judge(case, where, result, settle, peak), *unlike]
    if temp_dir_of(run.run_id).exists():
        findings.append(f"{temp_dir_of(run.run_id)} was left")
    return Outcome(verdict=result.exit_reason, findings=tuple(findings), settle=settle, peak_mib=peak)


async def _meanwhile(act: Callable[[RunHandle], Awaitable[None]], run: RunHandle) -> None:
    await act(run)


def _judge(case: RunCase, where: Circumstances, result: RunResult, settle: float, peak: float | None) -> Iterator[str]:
    if result.exit_reason != case.verdict:
        yield f"the verdict is {result.exit_reason}, not {case.verdict}"
    if settle > case.settle:
        yield f"it settled after {settle:.1f} s, not within {case.settle:g} s"
    if peak is not None and case.peak_mib is not None and peak > case.peak_mib and where.size == case.sizes[1]:
        yield f"memory grew by {peak:.0f} MiB, more than {case.peak_mib:g} MiB"


class Seen:
    """What a reader saw."""

    def __init__(self) -> None:
        self.events: list[AgentEvent] = []
        """The first of them."""
        self.count = 0
        self._types: set[str] = set()
        self._lines = 0
        self._characters = 0
        self._gap: str | None = None
        self._checker = ContractChecker()
        self._breaches: list[str] = []

    async def read(self, run: RunHandle, *, slowly: bool) -> None:
        """Read the run to its end."""
        async for event in run:
            self._see(event)
            if slowly and self.count % 100_000 == 1:
                await anyio.sleep(0.2)  # meanwhile the agent prints more than the window holds
        self._breaches += map(str, self._checker.finish())

    def _see(self, event: AgentEvent) -> None:
        self.count += 1
        self._types.add(event.type)
        self._breaches += map(str, self._checker.feed(event))
        if len(self.events) <= COMPARED:
            self.events.append(event)
        if isinstance(event, TextDeltaEvent):
            self._take(event.delta)

    def _take(self, text: str) -> None:
        number = text.partition(" ")[0]
        if number != str(self._lines) and self._gap is None:
            self._gap = f"line {number[:20]!r} came where line {self._lines} was due"
        self._lines += 1
        self._characters += len(text)

    def findings(self, case: RunCase, size: int) -> Iterator[str]:
        """What is not as the case says."""
        yield from (f"the stream is not lawful: {breach}" for breach in self._breaches[:5])
        if self._gap is not None:
            yield self._gap
        if self._lines != case.said(size):
            yield f"{self._lines} lines came, not {case.said(size)}"
        if case.characters is not None and self._characters != case.characters(size):
            yield f"{self._characters} characters came, not {case.characters(size)}"
        yield from (f"no event {wanted}" for wanted in case.events if wanted not in self._types)


def _ask_journal(result: RunResult, seen: Seen) -> tuple[float, list[str]]:
    """How long the end took, and whether the journal tells the same events."""
    assert result.journal is not None  # noqa: S101  # every case keeps one
    path = Path(result.journal)
    last, ended = 0, 0
    for record in JournalReader(path).read():
        is_order = record.kind is Kind.CONTROL and control_of(record).what in _ENDS
        if record.kind is Kind.STDOUT or record.kind is Kind.STDERR or is_order:
            last = record.at
        ended = record.at
    return (ended - last) / SECOND, _differences(path, seen)


def _differences(path: Path, seen: Seen) -> list[str]:
    count = 0
    for event in derive_events(path, TortureCodec):
        if seen.count <= COMPARED and encode_event(event) != encode_event(seen.events[count]):
            return [f"event {count} is another one when it is derived from the journal"]
        count += 1
    return [] if count == seen.count else [f"{seen.count} events were live, {count} are in the journal"]


@contextmanager
def _jumping_clock() -> Iterator[None]:
    """The wall clock leaps at every look, forth and back; the monotonic one does not."""
    real, looks = time.time_ns, 0

    def time_ns() -> int:
        nonlocal looks
        looks += 1
        return real() + int(_JUMPS[looks % len(_JUMPS)].total_seconds() * 1e9)

    def seconds() -> float:
        return time_ns() / 1e9

    patches: dict[str, Any] = {"time_ns": time_ns, "time": seconds}
    with mock.patch.multiple(time, **patches):
        yield


@contextmanager
def _steady_clock() -> Iterator[None]:
    yield
