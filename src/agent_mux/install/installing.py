"""Carrying out a plan: what the programs print is passed on as it comes."""

import os
from collections.abc import Mapping

from agent_mux.errors import AgentMuxError
from agent_mux.install.plan import InstallPlan, check_ready
from agent_mux.process.asking import ask

TIMEOUT = 1800.0  # seconds; hundreds of megabytes over a slow line


def carry_out(plan: InstallPlan, environ: Mapping[str, str] | None = None) -> None:
    """Install or update. Blocking; the programs print to our standard error.

    Raises AGENT_NOT_INSTALLED where something is missing, or a program fails; SPAWN_ERROR, TIMEOUT.
    """
    check_ready(plan)
    given = b""
    for index, step in enumerate(plan.steps):
        is_last = index == len(plan.steps) - 1
        answer = ask(
            step, environ=os.environ if environ is None else environ, timeout=TIMEOUT, given=given, shows=is_last
        )
        if answer.exit_code != 0:
            failed = f"`{' '.join(step)}` failed (exit code {answer.exit_code})"
            why = f": {answer.complaint}" if not is_last else "; it says above why"
            raise AgentMuxError("AGENT_NOT_INSTALLED", f"{plan.agent} was not installed: {failed}{why}")
        given = answer.stdout.encode()
