"""Framing + codec + assembler against the bare `orjson.loads`, for each native protocol of each agent.

The lines are those of its longest recording, with the kind that comes most often made as frequent as in a long answer.
"""

from collections import Counter
from pathlib import Path

import orjson

from agent_mux.adapter import Adapter, NativeProtocol
from agent_mux.framing import framed
from agent_mux.parsing import observing_normalizer
from agent_mux.process.pump import CHUNK
from agent_mux.registry import AdapterRegistry
from agent_mux.run.records import Kind, Record
from agent_mux.testing.fixtures import find_fixtures, load_fixture
from agent_mux.testing.live.shapes import kind_of
from benchmarks.measure import interleaved, report, verdict

FIXTURES = Path(__file__).parents[1] / "fixtures"
LINES = 20_000
ROUNDS = 5


def long_stream(adapter: Adapter, protocol: NativeProtocol) -> list[bytes]:
    """Lines as a long run of this protocol prints them; none where nothing of it was recorded in JSON lines."""
    folders = find_fixtures(FIXTURES, adapter.agent)
    fixtures = [f for f in map(load_fixture, folders) if f.protocol == protocol.name and f.framing != "chunks"]
    recordings = [[line for line in f.stdout_lines if _is_object(line)] for f in fixtures]
    longest = max(recordings, key=len, default=[])
    if not longest:
        return []
    kinds = Counter(kind_of(orjson.loads(line)) for line in longest)
    often, count = kinds.most_common(1)[0]
    times = max(LINES // count, 1)
    return [line for one in longest for line in [one] * (times if kind_of(orjson.loads(one)) == often else 1)]


def _is_object(line: bytes) -> bool:
    try:
        return isinstance(orjson.loads(line), dict)
    except ValueError:
        return False


def normalize(adapter: Adapter, protocol: NativeProtocol, data: bytes) -> int:
    """All events of a stream, in chunks as a pipe would give them. Returns how many."""
    normalizer = observing_normalizer(adapter, protocol)
    events = 0
    for start in range(0, len(data), CHUNK):
        events += len(normalizer.feed(Record(Kind.STDOUT, start, data[start : start + CHUNK])))
    return events


def floor(lines: list[bytes]) -> None:
    """What no parser in Python can beat."""
    for line in lines:
        orjson.loads(line)


def main(_: Path) -> None:
    """Print a line for each protocol."""
    rows = []
    for adapter in AdapterRegistry():
        for protocol in adapter.protocols.values():
            lines = long_stream(adapter, protocol)
            if not lines:
                continue
            data = b"".join(framed(protocol.framing, line) for line in lines)
            seconds = interleaved(
                {
                    "floor": lambda lines=lines: floor(lines),
                    "ours": lambda a=adapter, p=protocol, d=data: normalize(a, p, d),
                },
                ROUNDS,
            )
            share = seconds.ratio("floor", "ours")
            each = seconds.typical("ours") / len(lines) * 1e6
            name = f"{adapter.agent}/{protocol.name}"
            rows.append(f"{name:<28} {each:6.2f} us/line {share:6.0%} {verdict(share, least=0.25)}")
    report(f"Parse only, each protocol, about {LINES:,} lines", rows)
