"""`amux demo`: show a whole run without an installed agent or an API key."""

import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agent_mux.cli import exit_codes
from agent_mux.cli.command_output import Invocation
from agent_mux.cli.decorators import with_common_flags
from agent_mux.cli.options import ConfigDir

if TYPE_CHECKING:
    from agent_mux.cli.demo_repository import DemoRepository
    from agent_mux.cli.terminal import Palette
    from agent_mux.run.result import RunResult
    from agent_mux.sdk.options import RunOptions


RECORDED = ("replay", "demo")
"""The replay adapter and its built-in recording."""
EMBEDDED = "native"
"""The adapter of the embedded agent, which is always installed."""
MODEL = "scripted:demo"
"""The scripted model that can repair the demo repository without network access."""
TASK = "Fix the failing test"
RUN_TIMEOUT = 120.0  # seconds for the whole run; it takes about five

Recorded = Annotated[
    bool, typer.Option("--recorded", help="Play a recorded session of a real agent instead.", show_default=False)
]
Keep = Annotated[bool, typer.Option("--keep", help="Keep the repository.", show_default=False)]


@with_common_flags
def demo(context: typer.Context, recorded: Recorded = False, keep: Keep = False, config_dir: ConfigDir = None) -> int:
    """Watch the embedded agent repair a small repository.

    The process, the edits and the tests are real. A script replaces the model, so no API key and no network are needed.
    The repository is temporary. The exit code is 0 if its tests pass in the end.

    With --recorded, a real process plays a recorded session of another agent through the whole pipeline.
    """
    from agent_mux.cli.errors import usage_error

    if recorded and keep:
        raise usage_error("--recorded cannot be combined with --keep: a recording has no repository")
    return _run_recorded(context.obj, config_dir) if recorded else _run_embedded(context.obj, config_dir, keep=keep)


def _run_recorded(invocation: Invocation, config_dir: Path | None) -> int:
    """Run the built-in recording as if it were an agent. Return the exit code."""
    from agent_mux.cli.run_execution import exit_code_for
    from agent_mux.sdk.options import RunOptions

    agent, prompt = RECORDED
    result = _drive_run(RunOptions(agent=agent, prompt=prompt, approval_mode="yolo"), invocation, config_dir)
    _print_lines(*_next_steps(result, "This was a recorded session of a real agent."))
    return exit_code_for(result)


def _run_embedded(invocation: Invocation, config_dir: Path | None, *, keep: bool) -> int:
    """Create the repository, run the agent in it and test the result."""
    from agent_mux.cli.demo_repository import make_repository
    from agent_mux.cli.run_execution import exit_code_for
    from agent_mux.cli.terminal import palette_for

    palette = palette_for(sys.stderr, no_color=invocation.no_color)
    with _signals_as_interrupts() as reinstall_handlers, make_repository(keep=keep) as place:
        _print_lines(f"Repository with a failing test: {place.path}", f"Task: {TASK}", "")
        result = _drive_run(_run_options(place), invocation, config_dir)
        reinstall_handlers()
        code = exit_code_for(result)
        if code == exit_codes.OK:
            code = _print_outcome(place, palette)
    if keep:
        _print_lines("", f"Kept the repository: {place.path}")
    if code == exit_codes.OK:
        _print_lines(*_next_steps(result, "This was the embedded agent, with a script in place of its model."))
    return code


@contextmanager
def _signals_as_interrupts() -> Iterator[Callable[[], None]]:
    """Turn SIGTERM, SIGHUP and SIGQUIT into KeyboardInterrupt, so that the repository is removed.

    A run installs handlers of its own and restores the default ones: call the yielded function after a run.
    """
    from agent_mux.cli.run_driver import ending_signals

    before = {number: signal.getsignal(number) for number in ending_signals()}

    def install_handlers() -> None:
        for number in before:
            signal.signal(number, signal.default_int_handler)

    install_handlers()
    try:
        yield install_handlers
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _run_options(place: "DemoRepository") -> "RunOptions":
    """Return options for a run that ignores the user's settings, hooks and environment."""
    from agent_mux.sdk.options import RunOptions

    return RunOptions(
        agent=EMBEDDED,
        prompt=TASK,
        model=MODEL,
        cwd=place.path,
        inherit_env=False,
        env=place.env,
        approval_mode="yolo",
        hooks=False,
        timeout=RUN_TIMEOUT,
    )


def _drive_run(options: "RunOptions", invocation: Invocation, config_dir: Path | None) -> "RunResult":
    """Run like `amux run`, but without profiles and configuration."""
    from agent_mux.cli.run_execution import run_locally
    from agent_mux.cli.run_flags import RunFlags
    from agent_mux.settings.resolver import ResolvedOptions

    flags = RunFlags(no_color=invocation.no_color, debug=invocation.debug, config_dir=config_dir)
    return run_locally(ResolvedOptions(options=options), flags, invocation)


def _print_outcome(place: "DemoRepository", palette: "Palette") -> int:
    """Print the diff and the result of the tests. Return the exit code of the tests."""
    from agent_mux.cli.demo_repository import COMMAND_TIMEOUT, TESTS

    _print_lines(
        "", palette.bold("Changes" + ("" if place.is_git else " (compared without git, which is not usable here)"))
    )
    _print_lines(*_color_diff(place.difference(), palette))
    _print_lines("", palette.bold(f"Tests after the run (python {' '.join(TESTS)})"))
    tested = place.test()
    paint = palette.good if tested.exit_code == 0 else palette.bad
    _print_lines(*map(paint, _sanitized_lines(tested.output)))
    if tested.exit_code == 0:
        return exit_codes.OK
    ended = f"exit code {tested.exit_code}" if tested.exit_code is not None else f"no end within {COMMAND_TIMEOUT:g} s"
    message = f"the agent did not repair the repository: its tests fail ({ended}); --keep leaves it for inspection"
    _print_lines(f"{palette.bad('error:')} {message}")
    return exit_codes.GENERAL


def _color_diff(difference: str, palette: "Palette") -> Iterator[str]:
    for line in _sanitized_lines(difference) or ["nothing"]:
        paint = {"+": palette.good, "-": palette.bad}.get(line[:1], palette.dim)
        yield paint(line)


def _sanitized_lines(text: str) -> list[str]:
    """Return lines that are safe to print on a terminal."""
    from agent_mux.cli.terminal import sanitize

    return sanitize(text).splitlines()


def _next_steps(result: "RunResult", was: str) -> Iterator[str]:
    """Yield the path of the recording, a command that prints its events, and the agents on this machine."""
    import shutil

    import anyio

    from agent_mux.agents.detection import Detector
    from agent_mux.cli.layout import prose_rows
    from agent_mux.sdk.registry import AdapterRegistry

    found = anyio.run(Detector(AdapterRegistry()).detect_all)
    real = [one for one in found if one.agent != RECORDED[0]]
    amux = "amux" if shutil.which("amux") else sys.argv[0]
    here = [f'  {one.agent} {one.version or ""}: {amux} run {one.agent} "..."' for one in real if one.installed]
    yield from ("", *prose_rows(f"{was} Its journal, which is also its recording:", sys.stderr), f"  {result.journal}")
    yield from ("Print the same events as JSON:", f"  {amux} replay {result.journal} --json", "Agents on this machine:")
    yield from here or ["  none yet"]
    yield from (row for one in real if not one.installed for row in prose_rows(f"  {one.problem}", sys.stderr))


def _print_lines(*lines: str) -> None:
    """Print lines on standard error, after the output of the run."""
    sys.stdout.flush()
    sys.stderr.write("".join(f"{line}\n" for line in lines))
    sys.stderr.flush()
