"""Framing + codec + assembler against the bare `orjson.loads`, for each native protocol of each agent.

The stream is that of a long session, made of the recordings: all that were completed and have a tool call in them, one
after the other. Recorded answers are short, so each line that brings a fragment is repeated, until a model call brings
as many as a long answer. What the consumer sent is read beforehand; a protocol without fragments is as recorded.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, repeat
from pathlib import Path

import orjson

from agent_mux.adapter import Adapter, NativeProtocol
from agent_mux.facts import Fact, StepBegin, TextDelta, TextEnd, ThinkingDelta, ThinkingEnd, ToolInput
from agent_mux.process.pump import CHUNK
from agent_mux.registry import AdapterRegistry
from agent_mux.run.normalizer import Normalizer
from agent_mux.run.records import Kind, Record
from agent_mux.testing.conformance.recorded import Recorded
from agent_mux.testing.fixtures import find_fixtures
from agent_mux.testing.live.shapes import kind_of
from benchmarks.measure import Rounds, interleaved, report, verdict
from benchmarks.synthetic import DELTAS_PER_MESSAGE

FIXTURES = Path(__file__).parents[1] / "fixtures"
FRAGMENTS = DELTAS_PER_MESSAGE  # in a model call: some hundred tokens
LINES = 20_000
ROUNDS = 9
_COMPANIONS = ("streaming_delta", "toolcall_delta", "tool_call_delta")
_SAID = (TextDelta, ThinkingDelta, ToolInput)
_BETWEEN = (StepBegin, TextEnd, ThinkingEnd)


@dataclass(frozen=True, slots=True)
class Session:
    """A recording, its answers made long."""

    recorded: Recorded
    lines: Sequence[bytes]
    fragments: int

    def normalizer(self) -> Normalizer:
        """As it is when the agent begins to print."""
        header = self.recorded.header()
        normalizer = Normalizer(header, self.recorded.protocol.codec)
        for record in self.recorded.sent:
            normalizer.feed(record)
        return normalizer

    def chunks(self) -> list[Record]:
        """The lines as a pipe would give them."""
        data = b"".join(map(self.recorded.framed, self.lines))
        return [Record(Kind.STDOUT, at, data[at : at + CHUNK]) for at in range(0, len(data), CHUNK)]


def sessions_of(adapter: Adapter, protocol: NativeProtocol) -> list[Session]:
    """The recordings of this protocol as long sessions; those without a tool call where there are no others."""
    every = (Recorded(adapter, folder) for folder in find_fixtures(FIXTURES, adapter.agent))
    own = [one for one in every if one.fixture.protocol == protocol.name and protocol.framing != "chunks"]
    good = [one for one in own if one.played.verdict is not None and one.played.verdict.exit_reason == "completed"]
    with_tools = [one for one in good if any(event.type == "tool_call_ready" for event in one.played.events)]
    return [session for session in map(_long, with_tools or good or own) if session.lines]


def _long(recorded: Recorded) -> Session:
    told = [(line, facts) for line, facts in recorded.facts_by_line() if _is_object(line)]
    calls = sum(isinstance(fact, StepBegin) for _, facts in told for fact in facts)
    brings = [_is_fragment(line, facts) for line, facts in told]
    times = max(FRAGMENTS * max(calls, 1) // max(sum(brings), 1), 1) if recorded.protocol.streams else 1
    often = [repeat(line, times if is_one else 1) for (line, _), is_one in zip(told, brings, strict=True)]
    return Session(recorded, [*chain.from_iterable(often)], times * sum(brings) if times > 1 else 0)


def _is_object(line: bytes) -> bool:
    try:
        return isinstance(orjson.loads(line), dict)
    except ValueError:
        return False


def _is_fragment(line: bytes, facts: Sequence[Fact]) -> bool:
    # By its name, too: some are printed as often as those that bring text, and say nothing new.
    said = [fact for fact in facts if not isinstance(fact, _BETWEEN)]
    is_said = bool(said) and all(isinstance(fact, _SAID) for fact in said)
    return is_said or kind_of(orjson.loads(line)).endswith(_COMPANIONS)


def measure(sessions: Sequence[Session]) -> tuple[Rounds, int]:
    """Seconds for all of these sessions, and how many lines they have."""
    times = max(LINES // sum(len(session.lines) for session in sessions), 1)
    lines = [line for session in sessions for line in session.lines] * times
    chunks = [session.chunks() for session in sessions] * times
    rounds = iter([[session.normalizer() for session in sessions * times] for _ in range(ROUNDS)])

    def floor() -> None:
        for line in lines:
            orjson.loads(line)

    def ours() -> None:
        for normalizer, records in zip(next(rounds), chunks, strict=True):
            for record in records:
                normalizer.feed(record)

    return interleaved({"floor": floor, "ours": ours}, ROUNDS, time.process_time), len(lines)


def main(_: Path) -> None:
    """Print a line for each protocol."""
    rows = []
    for adapter in AdapterRegistry():
        for protocol in adapter.protocols.values():
            sessions = sessions_of(adapter, protocol)
            if sessions:
                rows.append(_row(f"{adapter.agent}/{protocol.name}", sessions))
    report(f"Parse only, each protocol, at least {LINES:,} lines: orjson.loads and ours", rows)


def _row(name: str, sessions: Sequence[Session]) -> str:
    lines = [line for session in sessions for line in session.lines]
    length, fragments = sum(map(len, lines)) // len(lines), sum(session.fragments for session in sessions) / len(lines)
    seconds, count = measure(sessions)
    floor, ours = (seconds.typical(one) / count * 1e6 for one in ("floor", "ours"))
    share = seconds.ratio("floor", "ours")
    stream = f"{name:<27} {length:5} B/line {fragments:4.0%} fragments"
    speed = f"{floor:5.2f} {ours:5.2f} us/line {1e6 / ours:8,.0f} lines/s"
    return f"{stream} {speed} {share:6.0%} {verdict(share, least=0.25)}"
