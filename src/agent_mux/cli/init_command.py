"""`amux init`: make a directory a project."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from agent_mux.cli.decorators import with_common_flags
from agent_mux.cli.options import ConfigDir, ProjectDir, agent_names

Agent = Annotated[
    str | None,
    typer.Option(
        "--agent",
        "-a",
        help="The agent of runs that name none.",
        show_default=False,
        autocompletion=agent_names,
    ),
]
Model = Annotated[str | None, typer.Option("--model", "-m", help="Their model.", show_default=False)]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only say what would be written.", show_default=False)]
Force = Annotated[bool, typer.Option("--force", help="Write over files that are there.", show_default=False)]
_DONE = {"create": "created", "overwrite": "overwrote", "extend": "extended", "keep": "kept"}


@with_common_flags
def init(
    context: typer.Context,
    agent: Agent = None,
    model: Model = None,
    dry_run: DryRun = False,
    force: Force = False,
    config_dir: ConfigDir = None,  # noqa: ARG001  # as everywhere; nothing of it is needed
    project_dir: ProjectDir = None,
) -> int:
    """Make the current directory a project: .agent-mux with a configuration, and a page that says what it may say."""
    from agent_mux.cli.json_output import envelope
    from agent_mux.cli.terminal import one_line
    from agent_mux.preferences.project import directory_for, make_project, plan_project
    from agent_mux.registry import AdapterRegistry

    config = {} if agent is None else {"defaultAgent": AdapterRegistry().get(agent).agent}
    config |= {} if model is None else {"defaultModel": model}
    directory = directory_for((project_dir or Path.cwd()).absolute())
    steps = plan_project(directory, config, force=force)
    if not dry_run:
        make_project(steps)
    if context.obj.json:
        files = [{"path": str(step.path), "action": step.action} for step in steps]
        sys.stdout.write(envelope({"directory": str(directory), "files": files, "dryRun": dry_run}) + "\n")
        return 0
    for step in steps:
        done = f"would {step.action}" if dry_run else _DONE[step.action]
        sys.stderr.write(one_line(f"{done} {step.path}", 1000) + "\n")
    return 0
