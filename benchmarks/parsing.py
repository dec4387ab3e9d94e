"""Framing, codec and assembler, compared with `orjson.loads` of the same lines.

`measure_claude` uses the synthetic Claude Code stream. `measure_protocols` uses long sessions for each native protocol
of each agent: all completed recordings with a tool call, in sequence. Recorded answers are short, so lines with a
fragment are repeated until a model call has as many fragments as a long answer. Input of the consumer is fed before the
measurement. A protocol without fragments is used as recorded.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, repeat
from pathlib import Path

import orjson

from agent_mux.journal.records import Kind, Record
from agent_mux.process.pump import CHUNK
from agent_mux.run.normalizer import Normalizer
from agent_mux.run.transcripts import observing_normalizer
from agent_mux.sdk.adapter import Adapter, NativeProtocol
from agent_mux.sdk.facts import Fact, StepBegin, TextDelta, TextEnd, ThinkingDelta, ThinkingEnd, ToolInput
from agent_mux.sdk.registry import AdapterRegistry
from agent_mux_testing.conformance.recorded import Recorded
from agent_mux_testing.fixtures import find_fixtures
from agent_mux_testing.live.shapes import kind_of
from benchmarks.measure import Rounds, interleaved, report, verdict
from benchmarks.synthetic import DELTAS_PER_MESSAGE, write_stream

STREAM_LINES, STREAM_ROUNDS = 100_000, 5
FIXTURES = Path(__file__).parents[1] / "fixtures"
FRAGMENTS = DELTAS_PER_MESSAGE  # per model call: some hundred tokens
LINES = 20_000
ROUNDS = 9
_DELTA_KINDS = ("streaming_delta", "toolcall_delta", "tool_call_delta")
_CONTENT = (TextDelta, ThinkingDelta, ToolInput)
_BETWEEN = (StepBegin, TextEnd, ThinkingEnd)


def normalize(data: bytes) -> int:
    """Convert a stream to events, in chunks as from a pipe. Return the number of events."""
    adapter = AdapterRegistry().get("claude")
    normalizer = observing_normalizer(adapter, adapter.protocols["stream-json"])
    events = 0
    for start in range(0, len(data), CHUNK):
        events += len(normalizer.feed(Record(Kind.STDOUT, start, data[start : start + CHUNK])))
    return events


def parse_json(data: bytes) -> None:
    """Parse each line with orjson: the lower bound for any parser in Python."""
    loads = orjson.loads
    for line in data.splitlines():
        loads(line)


def measure_claude(scratch: Path) -> None:
    """Print the time per line of the synthetic Claude Code stream, compared with `orjson.loads`."""
    data = write_stream(scratch / "parse.jsonl", STREAM_LINES).read_bytes()
    seconds = interleaved({"floor": lambda: parse_json(data), "ours": lambda: normalize(data)}, STREAM_ROUNDS)
    share = seconds.ratio("floor", "ours")
    report(
        f"Parse only, {STREAM_LINES:,} lines ({len(data) >> 20} MiB)",
        [
            f"orjson.loads alone      {seconds.typical('floor') / STREAM_LINES * 1e6:6.2f} us/line",
            f"framing+codec+assembler {seconds.typical('ours') / STREAM_LINES * 1e6:6.2f} us/line",
            f"share of the bare rate  {share:6.0%} {verdict(share, least=0.25)} (aim 40%)",
        ],
    )


@dataclass(frozen=True, slots=True)
class LongSession:
    """A recording whose answers are extended to the length of real ones."""

    recorded: Recorded
    lines: Sequence[bytes]
    fragments: int

    def normalizer(self) -> Normalizer:
        """Return a normalizer in its state before the first output of the agent."""
        header = self.recorded.header()
        normalizer = Normalizer(header, self.recorded.protocol.codec)
        for record in self.recorded.sent:
            normalizer.feed(record)
        return normalizer

    def chunks(self) -> list[Record]:
        """Return the lines in chunks as from a pipe."""
        data = b"".join(map(self.recorded.framed, self.lines))
        return [Record(Kind.STDOUT, at, data[at : at + CHUNK]) for at in range(0, len(data), CHUNK)]


def sessions_of(adapter: Adapter, protocol: NativeProtocol) -> list[LongSession]:
    """Return the completed recordings of a protocol as long sessions, preferably those with tool calls."""
    every = (Recorded(adapter, folder) for folder in find_fixtures(FIXTURES, adapter.agent))
    own = [one for one in every if one.fixture.protocol == protocol.name and protocol.framing != "chunks"]
    good = [one for one in own if one.played.verdict is not None and one.played.verdict.exit_reason == "completed"]
    with_tools = [one for one in good if any(event.type == "tool_call_ready" for event in one.played.events)]
    return [session for session in map(_extend, with_tools or good or own) if session.lines]


def _extend(recorded: Recorded) -> LongSession:
    lines = [(line, facts) for line, facts in recorded.facts_by_line() if _is_object(line)]
    calls = sum(isinstance(fact, StepBegin) for _, facts in lines for fact in facts)
    is_fragment = [_is_fragment(line, facts) for line, facts in lines]
    times = max(FRAGMENTS * max(calls, 1) // max(sum(is_fragment), 1), 1) if recorded.protocol.streams else 1
    repeated = [repeat(line, times if is_one else 1) for (line, _), is_one in zip(lines, is_fragment, strict=True)]
    return LongSession(recorded, [*chain.from_iterable(repeated)], times * sum(is_fragment) if times > 1 else 0)


def _is_object(line: bytes) -> bool:
    try:
        return isinstance(orjson.loads(line), dict)
    except ValueError:
        return False


def _is_fragment(line: bytes, facts: Sequence[Fact]) -> bool:
    # Some kinds are recognized by name: they are as frequent as text deltas but produce no facts.
    content = [fact for fact in facts if not isinstance(fact, _BETWEEN)]
    has_only_content = bool(content) and all(isinstance(fact, _CONTENT) for fact in content)
    return has_only_content or kind_of(orjson.loads(line)).endswith(_DELTA_KINDS)


def measure(sessions: Sequence[LongSession]) -> tuple[Rounds, int]:
    """Return the times for all of these sessions, and their number of lines."""
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


def measure_protocols(_: Path) -> None:
    """Print the time per line of each native protocol of each agent, compared with `orjson.loads`."""
    rows = []
    for adapter in AdapterRegistry():
        for protocol in adapter.protocols.values():
            sessions = sessions_of(adapter, protocol)
            if sessions:
                rows.append(_row(f"{adapter.agent}/{protocol.name}", sessions))
    report(f"Parse only, each protocol, at least {LINES:,} lines: orjson.loads and ours", rows)


def _row(name: str, sessions: Sequence[LongSession]) -> str:
    lines = [line for session in sessions for line in session.lines]
    length, fragments = sum(map(len, lines)) // len(lines), sum(session.fragments for session in sessions) / len(lines)
    seconds, count = measure(sessions)
    floor, ours = (seconds.typical(one) / count * 1e6 for one in ("floor", "ours"))
    share = seconds.ratio("floor", "ours")
    stream = f"{name:<27} {length:5} B/line {fragments:4.0%} fragments"
    speed = f"{floor:5.2f} {ours:5.2f} us/line {1e6 / ours:8,.0f} lines/s"
    return f"{stream} {speed} {share:6.0%} {verdict(share, least=0.25)}"
