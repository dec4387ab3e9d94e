"""Run several agents at once, at most two at a time, and print what happens in each."""

from pathlib import Path
from tempfile import TemporaryDirectory

import anyio

from agent_mux import AgentMux, RunResult
from agent_mux.events import ToolCallReadyEvent

AGENT = "native"
MODEL = f"scripted:{Path(__file__).parent / 'scripts' / 'greet.toml'}"
TASKS = {"english": "greet in English", "french": "greet in French", "finnish": "greet in Finnish"}


async def work(mux: AgentMux, name: str, prompt: str, folder: Path, results: dict[str, RunResult]) -> None:
    """Run one agent in a folder of its own."""
    await anyio.Path(folder).mkdir()
    run = await mux.start(agent=AGENT, model=MODEL, prompt=prompt, cwd=folder, approval_mode="yolo", tags=[name])
    run.on(ToolCallReadyEvent, lambda event: print(f"[{name}] {event.tool_name}"))
    results[name] = await run


async def main() -> None:
    """Start all tasks; the client queues what exceeds its limit."""
    results: dict[str, RunResult] = {}
    with TemporaryDirectory() as place:
        async with AgentMux(max_concurrent_runs=2) as mux, anyio.create_task_group() as tasks:
            for name, prompt in TASKS.items():
                tasks.start_soon(work, mux, name, prompt, Path(place, name), results)
    for name in TASKS:
        print(f"[{name}] {results[name].exit_reason}: {results[name].text}")


if __name__ == "__main__":
    anyio.run(main)
