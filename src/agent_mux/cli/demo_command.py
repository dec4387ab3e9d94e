"""`amux demo`: the main job on a recorded real session, for whoever has neither an agent nor a key at hand."""

import sys
from typing import TYPE_CHECKING

import typer

from agent_mux.cli.options import ConfigDir, Invocation, with_common_flags

if TYPE_CHECKING:
    from agent_mux.run.result import RunResult

RECORDED = ("replay", "demo")
"""The adapter that plays recordings, and the one that is built in."""


@with_common_flags
def demo(context: typer.Context, config_dir: ConfigDir = None) -> int:
    """Watch a recorded real session, played by a real process through the whole pipeline.

    It needs no agent and no key.
    """
    from agent_mux.cli.run_command import carry_out, exit_code_of
    from agent_mux.cli.run_flags import RunFlags
    from agent_mux.options import RunOptions
    from agent_mux.preferences.settling import Settled

    invocation: Invocation = context.obj
    flags = RunFlags(no_color=invocation.no_color, debug=invocation.debug, config_dir=config_dir)
    agent, prompt = RECORDED
    recorded = Settled(options=RunOptions(agent=agent, prompt=prompt, approval_mode="yolo"))
    result = carry_out(recorded, flags, invocation)
    sys.stdout.flush()
    sys.stderr.write(_what_next(result))
    return exit_code_of(result)


def _what_next(result: "RunResult") -> str:
    """Where the recording is, how to see the events, and which real agents are here."""
    import shutil

    import anyio

    from agent_mux.detection import Detector
    from agent_mux.registry import AdapterRegistry

    found = anyio.run(Detector(AdapterRegistry()).detect_all)
    real = [one for one in found if one.agent != RECORDED[0]]
    amux = "amux" if shutil.which("amux") else sys.argv[0]
    here = [f'  {one.agent} {one.version or ""}: {amux} run {one.agent} "..."' for one in real if one.installed]
    away = [f"  {one.agent}: {one.problem}" for one in real if not one.installed]
    return "\n".join(
        (
            "",
            "This was a recorded session of a real agent. Its journal, which is also its recording:",
            f"  {result.journal}",
            "The same events as JSON:",
            f"  {amux} replay {result.journal} --json",
            "Agents on this machine:",
            *(here or ["  none yet"]),
            *away,
            "",
        )
    )
