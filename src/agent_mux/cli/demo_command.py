"""`amux demo`: the main job for whoever has neither an agent nor a key at hand."""

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
    from agent_mux.options import RunOptions
    from agent_mux.run.result import RunResult


RECORDED = ("replay", "demo")
"""The adapter that plays recordings, and the one that is built in."""
EMBEDDED = "native"
"""The adapter of the agent that is always installed."""
MODEL = "scripted:demo"
"""Its model that knows how to mend the repository of the demo, without any network."""
TASK = "Fix the failing test"
RUN_TIMEOUT = 120.0  # seconds for the whole run; it takes about five

Recorded = Annotated[
    bool, typer.Option("--recorded", help="Play a recorded session of a real agent instead.", show_default=False)
]
Keep = Annotated[bool, typer.Option("--keep", help="Do not remove the repository.", show_default=False)]


@with_common_flags
def demo(context: typer.Context, recorded: Recorded = False, keep: Keep = False, config_dir: ConfigDir = None) -> int:
    """Watch the embedded agent mend a small repository: a real process, real edits, real tests.

    A script stands in for the model, so it needs no key and no network. The repository is a temporary one. The command
    succeeds if its tests do in the end.

    With --recorded, a recorded session of another agent is played, by a real process through the whole pipeline.
    """
    from agent_mux.cli.errors import usage_error

    if recorded and keep:
        raise usage_error("--recorded and --keep exclude each other: a recording has no repository")
    return _run_recorded(context.obj, config_dir) if recorded else _run_embedded(context.obj, config_dir, keep=keep)


def _run_recorded(invocation: Invocation, config_dir: Path | None) -> int:
    """Show what was recorded."""
    from agent_mux.cli.run_commands import exit_code_for
    from agent_mux.options import RunOptions

    agent, prompt = RECORDED
    result = _drive_run(RunOptions(agent=agent, prompt=prompt, approval_mode="yolo"), invocation, config_dir)
    _print_lines(*_next_steps(result, "This was a recorded session of a real agent."))
    return exit_code_for(result)


def _run_embedded(invocation: Invocation, config_dir: Path | None, *, keep: bool) -> int:
    """Make the repository, let the agent work in it, and see for ourselves how its tests go."""
    from agent_mux.cli.demo_repository import make_repository
    from agent_mux.cli.run_commands import exit_code_for
    from agent_mux.cli.terminal import palette_for

    _check_pytest()
    palette = palette_for(sys.stderr, no_color=invocation.no_color)
    with _signals_as_interrupts() as reinstall_handlers, make_repository(keep=keep) as place:
        _print_lines(f"A repository with a failing test: {place.path}", f"The task: {TASK}", "")
        result = _drive_run(_run_options(place), invocation, config_dir)
        reinstall_handlers()
        code = exit_code_for(result)
        if code == exit_codes.OK:
            code = _print_outcome(place, palette)
    if keep:
        _print_lines("", f"The repository stays: {place.path}")
    if code == exit_codes.OK:
        _print_lines(*_next_steps(result, "This was the embedded agent, with a script in place of its model."))
    return code


@contextmanager
def _signals_as_interrupts() -> Iterator[Callable[[], None]]:
    """SIGTERM and SIGHUP raise, so that the repository is removed.

    A run has handlers of its own, and leaves the default ones: what this gives is to be called behind a run.
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


def _check_pytest() -> None:
    """Raises VALIDATION_ERROR where it is missing: it is the agent's tool, and our own proof."""
    from importlib.util import find_spec

    from agent_mux.cli.errors import usage_error

    if find_spec("pytest") is None:
        raise usage_error("`amux demo` runs tests, which needs the extra: pip install 'agent-mux[demo]'")


def _run_options(place: "DemoRepository") -> "RunOptions":
    """Of a run in which nothing of the user's counts: no settings, no hooks, no environment."""
    from agent_mux.options import RunOptions

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
    """As `amux run` would, but for what profiles and configurations say."""
    from agent_mux.cli.run_commands import run_locally
    from agent_mux.cli.run_flags import RunFlags
    from agent_mux.preferences.settling import Settled

    flags = RunFlags(no_color=invocation.no_color, debug=invocation.debug, config_dir=config_dir)
    return run_locally(Settled(options=options), flags, invocation)


def _print_outcome(place: "DemoRepository", palette: "Palette") -> int:
    """Show what changed and how the tests go now; the exit code is theirs."""
    from agent_mux.cli.demo_repository import COMMAND_TIMEOUT, TESTS

    _print_lines(
        "", palette.bold("What changed" + ("" if place.is_git else " (git is not usable here; compared without it)"))
    )
    _print_lines(*_color_diff(place.difference(), palette))
    _print_lines("", palette.bold(f"The tests now (python {' '.join(TESTS)})"))
    tested = place.test()
    paint = palette.good if tested.exit_code == 0 else palette.bad
    _print_lines(*map(paint, _sanitized_lines(tested.output)))
    if tested.exit_code == 0:
        return exit_codes.OK
    ended = (
        f"exit code {tested.exit_code}" if tested.exit_code is not None else f"no end within {COMMAND_TIMEOUT:g} s"
    )
    message = f"the agent did not mend the repository: its tests do not pass ({ended}); --keep leaves it to look at"
    _print_lines(f"{palette.bad('error:')} {message}")
    return exit_codes.GENERAL


def _color_diff(difference: str, palette: "Palette") -> Iterator[str]:
    for line in _sanitized_lines(difference) or ["nothing"]:
        paint = {"+": palette.good, "-": palette.bad}.get(line[:1], palette.dim)
        yield paint(line)


def _sanitized_lines(text: str) -> list[str]:
    """As they may be shown at a terminal."""
    from agent_mux.cli.terminal import sanitize

    return sanitize(text).splitlines()


def _next_steps(result: "RunResult", was: str) -> Iterator[str]:
    """Where the recording is, how to see the events, and which real agents are here."""
    import shutil

    import anyio

    from agent_mux.detection import Detector
    from agent_mux.registry import AdapterRegistry

    found = anyio.run(Detector(AdapterRegistry()).detect_all)
    real = [one for one in found if one.agent != RECORDED[0]]
    amux = "amux" if shutil.which("amux") else sys.argv[0]
    here = [f'  {one.agent} {one.version or ""}: {amux} run {one.agent} "..."' for one in real if one.installed]
    yield from ("", f"{was} Its journal, which is also its recording:", f"  {result.journal}")
    yield from ("The same events as JSON:", f"  {amux} replay {result.journal} --json", "Agents on this machine:")
    yield from here or ["  none yet"]
    yield from (f"  {one.agent}: {one.problem}" for one in real if not one.installed)


def _print_lines(*lines: str) -> None:
    """For people, behind what the run printed."""
    sys.stdout.flush()
    sys.stderr.write("".join(f"{line}\n" for line in lines))
    sys.stderr.flush()
