"""Memory of the client with one slow reader, from ten thousand events to a million."""

import json
import subprocess
import sys
from pathlib import Path

from benchmarks.measure import report, verdict
from benchmarks.player import write_player
from benchmarks.synthetic import write_stream

SIZES = (10_000, 1_000_000)
PROBE = """
import asyncio, json, resource, sys
from pathlib import Path
from agent_mux import AgentMux

def resident():
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS"): return int(line.split()[1])

async def main(player, directory):
    peak = count = 0
    async with AgentMux(config_dir=directory) as mux:
        run = mux.run(agent="claude", prompt="hi", approval_mode="yolo",
                      env={"AMUX_CLAUDE_EXECUTABLE": player, "IS_SANDBOX": "1"})
        async for _ in run:
            count += 1
            if count % 500 == 0:
                await asyncio.sleep(0.002)  # slow: the agent is done long before this reader
            if count % 5000 == 0:
                peak = max(peak, resident())
        result = await run
    assert result.exit_reason == "completed", result
    Path(result.journal).unlink()
    print(json.dumps({"events": count, "peak": max(peak, resident())}))
asyncio.run(main(sys.argv[1], sys.argv[2]))
"""


def main(scratch: Path) -> None:
    """Print peak memory for both sizes and their ratio."""
    peaks, lines = [], []
    for size in SIZES:
        stream = write_stream(scratch / f"memory{size}.jsonl", size)
        player = write_player(scratch / f"claude{size}", stream)
        command = [sys.executable, "-c", PROBE, str(player), str(scratch / "config")]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        stream.unlink()
        figures = json.loads(done.stdout)
        peaks.append(figures["peak"])
        lines.append(f"{figures['events']:>9,} events: peak {figures['peak'] / 1024:6.1f} MiB resident")
    ratio = peaks[1] / peaks[0]
    report("Memory with one slow reader", [*lines, f"ratio {ratio:5.2f} {verdict(ratio, most=1.1)}"])
