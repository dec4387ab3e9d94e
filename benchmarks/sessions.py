"""Listing stored sessions: ten thousand copies of a real one, first and repeated, and one large session."""

import json
import re
import subprocess
import sys
from pathlib import Path

from benchmarks.measure import report, verdict

RECORDED = Path("tests/stores/claude/2.1.330/home/.claude/projects")
COUNT = 10_000
LARGE = 500 << 20  # bytes of one session
MOST = 200
"""Upper limit of memory in MiB, for a session more than twice as large."""
PROBE = """
import json, resource, sys, time
from pathlib import Path
from agent_mux.sessions.client import Sessions
home, cache = sys.argv[1:]
Sessions(environ={"HOME": "/nowhere"}).list()  # loading the adapters is not measured
sessions = Sessions(environ={"HOME": home}, cache=Path(cache))
began = time.perf_counter()
found = sessions.list(limit=None)
seconds = time.perf_counter() - began
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(json.dumps({"count": len(found), "seconds": seconds, "peak": peak}))
"""
FLOOR = """
import json, sys, time
from pathlib import Path
import orjson
began = time.perf_counter()
for path in Path(sys.argv[1]).glob(".claude/projects/*/*.jsonl"):
    for line in path.read_bytes().splitlines():
        orjson.loads(line)
print(json.dumps({"seconds": time.perf_counter() - began}))
"""


def main(scratch: Path) -> None:
    """Print both listing times, their ratios to parsing alone, and the peak memory."""
    home, cache = scratch / "many", scratch / "sessions.sqlite"
    size = _write_many(home)
    floor = _probe(FLOOR, home)
    first, second = _probe(PROBE, home, cache), _probe(PROBE, home, cache)
    assert first["count"] == second["count"] == COUNT, (first, second)
    faster, share = first["seconds"] / second["seconds"], floor["seconds"] / first["seconds"]
    large = scratch / "large"
    _write_large(large)
    one = _probe(PROBE, large, scratch / "other.sqlite")
    small = verdict(one["peak"], most=MOST)
    lines = [
        f"orjson.loads alone   {floor['seconds']:6.2f} s",
        f"first listing        {first['seconds']:6.2f} s, peak {first['peak']:.0f} MiB; {size >> 20} MiB",
        f"second listing       {second['seconds']:6.2f} s, peak {second['peak']:.0f} MiB",
        f"share of the bare rate {share:4.0%}",
        f"second, times as fast  {faster:.0f} {verdict(faster, least=20)}",
        f"one of {LARGE >> 20} MiB        {one['seconds']:6.2f} s, peak {one['peak']:.0f} MiB {small}",
    ]
    report(f"Listing {COUNT:,} stored sessions", lines)


def _write_many(home: Path) -> int:
    """Write copies of the smallest recorded session with different ids. Return their total size."""
    recorded = min(RECORDED.glob("*/*.jsonl"), key=lambda path: path.stat().st_size)
    rows, old = recorded.read_text(encoding="utf-8"), recorded.stem
    for number in range(COUNT):
        new = f"{number:08x}{old[8:]}"
        path = home / ".claude" / "projects" / f"-home-dev-{number % 50}" / f"{new}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(rows.replace(old, new), encoding="utf-8")
    return COUNT * len(rows)


def _write_large(home: Path) -> None:
    recorded = max(RECORDED.glob("*/*.jsonl"), key=lambda path: path.stat().st_size)
    rows = recorded.read_bytes()
    last = re.findall(rb'"uuid":"([^"]+)"', rows)[-1]
    path = home / ".claude" / "projects" / "-home-dev" / recorded.name
    path.parent.mkdir(parents=True)
    with path.open("wb") as file:
        for number in range(LARGE // len(rows) + 1):
            # Different ids in each copy, so that they form one long conversation.
            again = re.sub(rb'"(uuid|parentUuid|id|tool_use_id)":"', rb'"\1":"%d-' % number, rows)
            file.write(again.replace(b'"parentUuid":null', b'"parentUuid":"%d-%b"' % (number - 1, last)))


def _probe(program: str, *arguments: Path) -> dict[str, float]:
    command = [sys.executable, "-c", program, *map(str, arguments)]
    figures: dict[str, float] = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return figures
