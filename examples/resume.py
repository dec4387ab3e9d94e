"""Continue a session: more prompts in one run, then a later run, then a fork of its history."""

from pathlib import Path
from tempfile import TemporaryDirectory

import anyio

from agent_mux import AgentMux

AGENT = "native"
MODEL = f"scripted:{Path(__file__).parent / 'scripts' / 'greet.toml'}"


async def main() -> None:
    """Use one session in three runs."""
    with TemporaryDirectory() as folder:
        async with AgentMux(default_agent=AGENT, default_model=MODEL, approval_mode="yolo") as mux:
            conversation = mux.run(prompt="write a greeting", cwd=folder, interactive=True)
            await conversation.continue_("is there anything else?")
            await conversation.close()
            first = await conversation
            print(f"session {first.session_id}: {first.turn_count} turns")

            later = await mux.run(prompt="and now?", cwd=folder, session_id=first.session_id)
            print("the same session:", later.session_id == first.session_id)

            fork = await mux.run(prompt="another way", cwd=folder, fork_session_id=first.session_id)
            print("a session of its own:", fork.session_id != first.session_id)


if __name__ == "__main__":
    anyio.run(main)
