"""Watch the cost of a run, stop it at a budget, and print what it used.

`cost.source` states the source of an amount: the agent ("native"), a price list ("computed"), or none ("unknown").
"""

from pathlib import Path
from tempfile import TemporaryDirectory

import anyio

from agent_mux import AgentMux
from agent_mux.events import CostEvent

AGENT = "native"
MODEL = f"scripted:{Path(__file__).parent / 'scripts' / 'greet.toml'}"


def show(event: CostEvent) -> None:
    """Print the cost of the run so far."""
    print(f"so far: ${event.cost.total_usd:.4f}")


async def main() -> None:
    """Run the agent with a budget of half a dollar and a limit of ten model calls."""
    with TemporaryDirectory() as folder:
        async with AgentMux() as mux:
            run = mux.run(
                agent=AGENT,
                model=MODEL,
                prompt="write a greeting",
                cwd=folder,
                approval_mode="yolo",
                max_cost_usd=0.50,
                max_model_calls=10,
                project_id="examples",
            )
            run.on(CostEvent, show)
            result = await run
    if result.cost is not None:
        print(f"total: ${result.cost.total_usd:.4f} ({result.cost.source})")
    if result.token_usage is not None:
        print(f"tokens: {result.token_usage.input_tokens} in, {result.token_usage.output_tokens} out")
    print("stopped by the budget" if result.exit_reason == "budget" else result.exit_reason)


if __name__ == "__main__":
    anyio.run(main)
