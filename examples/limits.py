"""End a run: by a time limit, and by `abort`. All processes of the run end with it."""

from pathlib import Path
from tempfile import TemporaryDirectory

import anyio

from agent_mux import AgentMux

AGENT = "native"
MODEL = f"scripted:{Path(__file__).parent / 'scripts' / 'wait.toml'}"


async def main() -> None:
    """Start two runs whose command takes ten minutes."""
    with TemporaryDirectory() as folder:
        async with AgentMux(default_agent=AGENT, default_model=MODEL, approval_mode="yolo") as mux:
            limited = mux.run(prompt="build it", cwd=folder, timeout=1.0, grace_period=0.5)
            result = await limited
            print(f"{result.exit_reason}: {result.error.message if result.error else ''}")

            aborted = mux.run(prompt="build it", cwd=folder, inactivity_timeout=600)
            async for event in aborted:
                if event.type == "tool_call_ready":
                    await aborted.abort()
            result = await aborted
            print(f"{result.exit_reason}: the state is {aborted.state}")


if __name__ == "__main__":
    anyio.run(main)
