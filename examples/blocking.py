"""Run an agent without an event loop, as in scripts, REPLs and notebooks: every call blocks."""

from pathlib import Path
from tempfile import TemporaryDirectory

from agent_mux import Approve, BlockingAgentMux

AGENT = "native"
MODEL = f"scripted:{Path(__file__).parent / 'scripts' / 'greet.toml'}"


def main() -> None:
    """Answer each request while the events are read."""
    with TemporaryDirectory() as folder, BlockingAgentMux() as mux:
        run = mux.run(agent=AGENT, model=MODEL, prompt="write a greeting", cwd=folder)
        for event in run:
            if event.type == "approval_request":
                for pending in run.pending:
                    print("allowed:", pending.description)
                    run.respond(pending.id, Approve())
        result = run.result()
        print(f"{result.exit_reason}: {result.text}")


if __name__ == "__main__":
    main()
