"""`amux sessions resume` and `fork`: a run that goes on where a stored session ended."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from agent_mux.cli.run_command import carry_out, exit_code_of, settle_format, settled_with
from agent_mux.cli.run_flags import RunFlags, with_run_flags
from agent_mux.cli.session_options import SessionId

Prompt = Annotated[
    str | None,
    typer.Argument(
        metavar="[PROMPT]",
        help="What the agent is to do. Without it, or with `-`, it is read from standard input.",
        show_default=False,
    ),
]


@with_run_flags
def resume(context: typer.Context, flags: RunFlags, origin: SessionId, text: Prompt = None) -> int:
    """Go on with a session: in its directory, unless --cwd says another."""
    return _go_on(context, flags, origin, text, is_fork=False)


@with_run_flags
def fork(context: typer.Context, flags: RunFlags, origin: SessionId, text: Prompt = None) -> int:
    """Begin another session with what was said in this one, which stays as it is."""
    return _go_on(context, flags, origin, text, is_fork=True)


def _go_on(context: typer.Context, flags: RunFlags, origin: str, text: str | None, *, is_fork: bool) -> int:
    from agent_mux.cli.errors import bad_input
    from agent_mux.cli.server import refuse_service
    from agent_mux.cli.session_options import reading, wanted_from

    settle_format(context.obj, flags)
    refuse_service(flags, "sessions")
    if flags.session is not None or flags.fork is not None or flags.no_session:
        raise bad_input("--session, --fork and --no-session say which session it is; that was said already")
    with reading(flags.config_dir, flags.project_dir) as library:
        known = library.find(origin, wanted_from(agent=flags.agent))
    summary = known.made.summary
    cwd = flags.cwd
    if cwd is None and summary.cwd is not None:
        cwd = Path(summary.cwd)
        if not cwd.is_dir():
            raise bad_input(f"{cwd}, where {summary.id} was held, is not there any more; give another with --cwd")
    flags = replace(flags, agent=known.adapter.agent, cwd=cwd)
    flags = replace(flags, fork=summary.native_id) if is_fork else replace(flags, session=summary.native_id)
    return exit_code_of(carry_out(settled_with([] if text is None else [text], flags), flags, context.obj))
