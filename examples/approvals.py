"""Answer the agent's requests: a policy decides what it can, and a function decides the rest.

The function may be a coroutine function, for example one that asks a person in a chat.
"""

from pathlib import Path
from tempfile import TemporaryDirectory

import anyio

from agent_mux import AgentMux, ApprovalDetail, Approve, Deny, PendingInteraction

AGENT = "native"
MODEL = f"scripted:{Path(__file__).parent / 'scripts' / 'greet.toml'}"


def decide(request: PendingInteraction) -> Approve | Deny:
    """Allow what changes files below the working directory, and deny everything else."""
    print("the agent asks:", request.description)
    detail = request.detail
    if isinstance(detail, ApprovalDetail) and detail.command is None and detail.risk_level != "high":
        print(detail.diff or detail.detail)
        return Approve()
    return Deny("this program allows changes of files only")


async def main() -> None:
    """Run the agent once, in a temporary folder."""
    with TemporaryDirectory() as folder:
        async with AgentMux() as mux:
            result = await mux.run(
                agent=AGENT,
                model=MODEL,
                prompt="write a greeting",
                cwd=folder,
                policy={"rules": [{"decision": "deny", "paths": ["/etc/**", "~/**"], "reason": "not your files"}]},
                on_approval_request=decide,
                approval_timeout=60,
            )
        print(result.exit_reason, [file.path for file in result.changed_files], f"{len(result.denials)} denied")


if __name__ == "__main__":
    anyio.run(main)
