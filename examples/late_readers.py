"""Read a run that is over: every reader receives every event, and the recording outlives the program."""

from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

import anyio

from agent_mux import AgentMux

AGENT = "native"
MODEL = f"scripted:{Path(__file__).parent / 'scripts' / 'greet.toml'}"


async def main() -> None:
    """Read one run twice after its end, then replay its recording."""
    with TemporaryDirectory() as folder:
        async with AgentMux() as mux:
            # Only ten events are kept in memory: late and slow readers are served from the recording.
            run = mux.run(
                agent=AGENT,
                model=MODEL,
                prompt="write a greeting",
                cwd=folder,
                approval_mode="yolo",
                event_buffer_size=10,
            )
            result = await run
            kinds = Counter([event.type async for event in run])
            print(f"{kinds.total()} events, {kinds['text_delta']} of them with text")

            last = [event.type async for event in run.events(start=run.event_count - 2)]
            print("the last two:", last)
    print("again at any time: amux replay", result.run_id)


if __name__ == "__main__":
    anyio.run(main)
