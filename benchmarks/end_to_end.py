"""A whole run through a subprocess with journal, compared with a bare asyncio loop and claude-agent-sdk."""

import asyncio
import os
from pathlib import Path

import orjson

from agent_mux import AgentMux
from benchmarks.measure import interleaved, report, verdict
from benchmarks.synthetic import write_player, write_stream

LINES = 100_000
ROUNDS = 9
LONGEST_LINE = 1 << 20


async def bare(player: Path) -> int:
    """Read lines and parse them with `orjson.loads`, nothing else. Return the number of lines."""
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(str(player), stdin=pipe, stdout=pipe, limit=LONGEST_LINE)
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(b"hi\n")
    process.stdin.close()
    count = 0
    while line := await process.stdout.readline():
        orjson.loads(line)
        count += 1
    await process.wait()
    return count


async def ours(player: Path, directory: Path) -> int:
    """Execute a run with a journal and iterate over its events. Return the number of events."""
    count = 0
    async with AgentMux(config_dir=directory) as mux:
        run = mux.run(
            agent="claude",
            prompt="hi",
            approval_mode="yolo",
            env={"AMUX_CLAUDE_EXECUTABLE": str(player), "IS_SANDBOX": "1"},
        )
        async for _ in run:
            count += 1
        result = await run
    assert result.exit_reason == "completed", result
    assert result.journal is not None
    Path(result.journal).unlink()
    return count


async def sdk(player: Path) -> int:
    """Execute the same program with the client of its vendor. Return the number of messages."""
    from claude_agent_sdk import ClaudeAgentOptions, query  # noqa: PLC0415  # a dependency of the benchmarks only

    count = 0
    options = ClaudeAgentOptions(cli_path=str(player), include_partial_messages=True)
    async for _ in query(prompt="hi", options=options):
        count += 1
    return count


def main(scratch: Path) -> None:
    """Print the time per line of each contestant, and the ratios."""
    os.environ["CLAUDE_AGENT_SDK_SKIP_VERSION_CHECK"] = "1"
    stream = write_stream(scratch / "end_to_end.jsonl", LINES)
    player = write_player(scratch / "claude", stream)
    seconds = interleaved(
        {
            "bare": lambda: asyncio.run(bare(player)),
            "ours": lambda: asyncio.run(ours(player, scratch / "config")),
            "sdk": lambda: asyncio.run(sdk(player)),
        },
        ROUNDS,
    )
    share, against_sdk = seconds.ratio("bare", "ours"), seconds.ratio("sdk", "ours")
    typical = {name: seconds.typical(name) for name in seconds}
    report(
        f"End to end through a subprocess, journal on, {LINES:,} lines",
        [
            *(f"{name:5} {taken:6.2f} s  {taken / LINES * 1e6:6.2f} us/line" for name, taken in typical.items()),
            f"share of the bare asyncio rate {share:6.0%} {verdict(share, least=0.5)} (aim 80%)",
            f"times claude-agent-sdk         {against_sdk:6.1f} {verdict(against_sdk, least=3)}",
        ],
    )
