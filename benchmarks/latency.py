"""Latency at one event per millisecond, from the write of the child to the consumer, compared with asyncio alone."""

import asyncio
import json
import sys
import time
from pathlib import Path
from statistics import median

import orjson

from agent_mux import AgentMux
from benchmarks.measure import report, verdict
from benchmarks.synthetic import SESSION

EVENTS = 2000
ROUNDS = 3
CHILD = """#!{python} -IS
import os, sys, time
sys.stdin.readline()
init = {init!r}
os.write(1, init)
os.write(1, {start!r})
begin = time.perf_counter()
for number in range({events}):
    while time.perf_counter() < begin + number * 0.001: pass
    os.write(1, b'{{"type":"stream_event","event":{{"type":"content_block_delta","index":0,'
        b'"delta":{{"type":"text_delta","text":"%d "}}}},"session_id":"s","parent_tool_use_id":null}}\\n'
        % time.perf_counter_ns())
"""


def _write_child(path: Path) -> Path:
    init = {"type": "system", "subtype": "init", "session_id": SESSION, "model": "m", "tools": [], "cwd": "/"}
    start = {
        "type": "stream_event",
        "event": {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    }
    source = CHILD.format(
        python=sys.executable,
        init=json.dumps(init).encode() + b"\n",
        start=json.dumps(start).encode() + b"\n",
        events=EVENTS,
    )
    path.write_text(source)
    path.chmod(0o755)
    return path


async def _bare(child: Path) -> list[int]:
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(str(child), stdin=pipe, stdout=pipe)
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(b"hi\n")
    process.stdin.close()
    latencies = []
    while line := await process.stdout.readline():
        event = orjson.loads(line).get("event", {})
        if event.get("type") == "content_block_delta":
            latencies.append(time.perf_counter_ns() - int(event["delta"]["text"]))
    await process.wait()
    return latencies


async def _ours(child: Path, directory: Path) -> list[int]:
    latencies = []
    async with AgentMux(config_dir=directory) as mux:
        run = mux.run(
            agent="claude",
            prompt="hi",
            approval_mode="yolo",
            env={"AMUX_CLAUDE_EXECUTABLE": str(child), "IS_SANDBOX": "1"},
        )
        async for event in run:
            if event.type == "text_delta":
                latencies.append(time.perf_counter_ns() - int(event.delta))
    return latencies


def main(scratch: Path) -> None:
    """Print both medians and their ratio."""
    child = _write_child(scratch / "steady")
    bare, ours = [], []
    for _ in range(ROUNDS):
        bare.append(median(asyncio.run(_bare(child))))
        ours.append(median(asyncio.run(_ours(child, scratch / "config"))))
    ratio = median(ours) / median(bare)
    report(
        "Latency at 1 event/ms, p50",
        [
            f"raw asyncio reader {median(bare) / 1000:6.0f} us",
            f"agent-mux          {median(ours) / 1000:6.0f} us",
            f"ratio {ratio:5.2f} {verdict(ratio, most=1.3)}",
        ],
    )
