"""Growth with the length of a run: the time of one text delta, and the memory of the client."""

import json
import subprocess
import sys
import time
from pathlib import Path

from agent_mux.assembler import StreamAssembler, StreamContext
from agent_mux.sdk.facts import SessionKnown, TextDelta
from benchmarks.measure import report, verdict
from benchmarks.synthetic import write_player, write_stream

DELTA = "twenty characters ok"
SMALL, LARGE = 10 * 1024, 10 * 1024 * 1024
BLOCK = 512
DELTA_ROUNDS = 9
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
                await asyncio.sleep(0.002)  # slow: the agent finishes long before this reader
            if count % 5000 == 0:
                peak = max(peak, resident())
        result = await run
    assert result.exit_reason == "completed", result
    Path(result.journal).unlink()
    print(json.dumps({"events": count, "peak": max(peak, resident())}))
asyncio.run(main(sys.argv[1], sys.argv[2]))
"""


def _delta_cost(accumulated: int) -> float:
    assembler = StreamAssembler(StreamContext(run_id="01ARZ3NDEKTSV4RRFFQ69G5FAV", agent="benchmark"))
    assembler.receive(SessionKnown("s"))
    fact = TextDelta(DELTA)
    for _ in range(accumulated // len(DELTA)):
        assembler.receive(fact)
        if len(assembler._emitter.out) > BLOCK:  # noqa: SLF001
            assembler.drain()
    assembler.drain()
    best = float("inf")
    for _ in range(DELTA_ROUNDS):
        start = time.perf_counter()
        for _ in range(BLOCK):
            assembler.receive(fact)
        best = min(best, (time.perf_counter() - start) / BLOCK)
        assembler.drain()
    return best


def measure_delta_cost(_: Path) -> None:
    """Print the time of one text delta early and late in a message, and their ratio."""
    pairs = [(_delta_cost(SMALL), _delta_cost(LARGE)) for _ in range(3)]
    small, large = min(pair[0] for pair in pairs), min(pair[1] for pair in pairs)
    report(
        "Cost of one text_delta in the assembler",
        [
            f"after 10 KiB {small * 1e6:5.2f} us, after 10 MiB {large * 1e6:5.2f} us",
            f"ratio {large / small:5.2f} {verdict(large / small, most=1.5)}",
        ],
    )


def measure_memory(scratch: Path) -> None:
    """Print the peak memory of a client with one slow reader, for both sizes, and their ratio."""
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
