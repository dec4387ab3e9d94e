"""Framing + codec + assembler against the bare `orjson.loads` of the same lines."""

from pathlib import Path

import orjson

from agent_mux.parsing import observing_normalizer
from agent_mux.process.pump import CHUNK
from agent_mux.registry import AdapterRegistry
from agent_mux.run.records import Kind, Record
from benchmarks.measure import interleaved, report, verdict
from benchmarks.synthetic import write_stream

LINES = 100_000
ROUNDS = 5


def normalize(data: bytes) -> int:
    """All events of a stream, in chunks as a pipe would give them. Returns how many."""
    adapter = AdapterRegistry().get("claude")
    normalizer = observing_normalizer(adapter, adapter.protocols["stream-json"])
    events = 0
    for start in range(0, len(data), CHUNK):
        events += len(normalizer.feed(Record(Kind.STDOUT, start, data[start : start + CHUNK])))
    return events


def floor(data: bytes) -> None:
    """What no parser in Python can beat."""
    loads = orjson.loads
    for line in data.splitlines():
        loads(line)


def main(scratch: Path) -> None:
    """Print the ratio."""
    data = write_stream(scratch / "parse.jsonl", LINES).read_bytes()
    seconds = interleaved({"floor": lambda: floor(data), "ours": lambda: normalize(data)}, ROUNDS)
    share = seconds.ratio("floor", "ours")
    report(
        f"Parse only, {LINES:,} lines ({len(data) >> 20} MiB)",
        [
            f"orjson.loads alone      {seconds.typical('floor') / LINES * 1e6:6.2f} us/line",
            f"framing+codec+assembler {seconds.typical('ours') / LINES * 1e6:6.2f} us/line",
            f"share of the bare rate  {share:6.0%} {verdict(share, least=0.25)} (aim 40%)",
        ],
    )
