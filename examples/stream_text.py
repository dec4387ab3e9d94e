"""Print the text of an agent while it is written, and its tool calls.

For your own agent, set AGENT to "claude", "codex", ... and MODEL to None.
"""

from pathlib import Path
from tempfile import TemporaryDirectory

import anyio

from agent_mux import AgentMux
from agent_mux.events import FileCreateEvent, TextDeltaEvent, ToolCallReadyEvent

AGENT = "native"
MODEL = f"scripted:{Path(__file__).parent / 'scripts' / 'greet.toml'}"


async def main() -> None:
    """Run the agent once, in a temporary folder."""
    with TemporaryDirectory() as folder:
        async with AgentMux() as mux:
            run = mux.run(agent=AGENT, model=MODEL, prompt="write a greeting", cwd=folder, approval_mode="yolo")
            async for event in run:
                match event:
                    case TextDeltaEvent():
                        print(event.delta, end="", flush=True)
                    case ToolCallReadyEvent():
                        print(f"\n* {event.tool_name}")
                    case FileCreateEvent():
                        print(f"+ {event.path}")
            result = await run
    print(f"\n{result.exit_reason} after {result.turn_count} turn")


if __name__ == "__main__":
    anyio.run(main)
