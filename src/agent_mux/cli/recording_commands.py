"""`amux record` and `amux replay`: save a run as a fixture, and show a recorded run."""

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agent_mux.cli.command_output import Invocation
from agent_mux.cli.decorators import with_common_flags
from agent_mux.cli.options import Compact, ConfigDir
from agent_mux.cli.run_commands import Words
from agent_mux.cli.run_execution import exit_code_for, resolve_format, resolve_options, run_locally
from agent_mux.cli.run_flags import SERVICE_FLAGS, RunFlags, with_run_flags_but

if TYPE_CHECKING:
    from agent_mux.cli.recordings import OpenRecording
    from agent_mux.cli.testing_tools import SaveRun
    from agent_mux.events import AgentEvent
    from agent_mux.run.result import RunResult


Folder = Annotated[
    Path,
    typer.Option("--to", metavar="FOLDER", help="Fixture folder to write; its name is the scenario."),
]
Force = Annotated[bool, typer.Option("--force", help="Overwrite an existing fixture.", show_default=False)]
Note = Annotated[str, typer.Option("--note", help="Description of the fixture.", show_default=False)]


@with_run_flags_but(*SERVICE_FLAGS)
def record(
    context: typer.Context, flags: RunFlags, to: Folder, words: Words = None, force: Force = False, note: Note = ""
) -> int:
    """Run an agent and save the conversation as a fixture folder.

    The folder contains run.toml, stdout.jsonl, stdin.jsonl, stderr.txt, times.json, exit.json and the events
    (events.jsonl, compact). Home, working and temporary directories are neutralized; check for other secrets before
    sharing it. Requires the extra `testing`.
    """
    from agent_mux.cli.errors import usage_error
    from agent_mux.cli.testing_tools import load_recorder

    save_run = load_recorder("`amux record`")  # before the agent runs
    resolve_format(context.obj, flags)
    if flags.no_journal:
        raise usage_error("--no-journal cannot be used here: the fixture is made from the journal")
    _check_fixture_folder(to, force=force)
    resolved = resolve_options(words or [], flags)
    if resolved.options.journal is False:  # set by a configuration file or profile
        resolved = replace(resolved, options=replace(resolved.options, journal=True))
    result = run_locally(resolved, flags, context.obj)
    _save_fixture(result, to, note, save_run)
    return exit_code_for(result)


def _check_fixture_folder(folder: Path, *, force: bool) -> None:
    """Raise VALIDATION_ERROR for a folder that is not empty, unless it is a fixture and `force` is true."""
    from agent_mux.cli.errors import usage_error

    if not folder.exists():
        return
    if not folder.is_dir():
        raise usage_error(f"{folder} is not a folder; choose another name")
    if any(folder.iterdir()) and not (force and (folder / "run.toml").exists()):
        raise usage_error(f"{folder} is not empty; --force overwrites a fixture")


def _save_fixture(result: "RunResult", folder: Path, note: str, save_run: "SaveRun") -> None:
    """Write the fixture and report its path."""
    import anyio

    from agent_mux.agents.detection import Detector
    from agent_mux.errors import AgentMuxError
    from agent_mux.journal.file import JournalReader
    from agent_mux.sdk.registry import AdapterRegistry

    if result.journal is None:
        raise AgentMuxError("INTERNAL", "nothing was recorded: the journal was not written; see the warnings")
    journal, adapters = Path(result.journal), AdapterRegistry()
    agent = JournalReader(journal).header.codec.agent
    version = anyio.run(Detector(adapters).detect, agent).version
    save_run(journal, folder, adapters.get(agent), version=version or "unknown", note=note)
    sys.stderr.write(f"recorded in {folder}\n")


@with_common_flags
def replay(
    context: typer.Context,
    path: Annotated[Path, typer.Argument(metavar="PATH", help="Journal, run id or fixture folder.")],
    compact: Compact = False,
    speed: Annotated[
        float, typer.Option("--speed", min=0, help="Playback speed (1 = as recorded, 0 = no delays).")
    ] = 0.0,
    config_dir: ConfigDir = None,
) -> int:
    """Replay a recorded run with identical events.

    Fixture folders require the extra `testing`.
    """
    from agent_mux.cli.recordings import open_recording
    from agent_mux.sdk.registry import AdapterRegistry

    recording = open_recording(_find_recording(path, config_dir), AdapterRegistry())
    invocation: Invocation = context.obj
    if invocation.json:
        events = _at_recorded_times(recording.events, speed, time.sleep) if speed else recording.events
        _print_json_lines(events, compact=compact)
    else:
        _print_for_people(recording, speed, no_color=invocation.no_color, verbose=invocation.debug)
    return 0


def _find_recording(path: Path, config_dir: Path | None) -> Path:
    """Return the path, or the journal of the run with this id."""
    from agent_mux._util import paths
    from agent_mux.sdk.options import RUN_ID

    if path.exists() or RUN_ID.fullmatch(str(path)) is None:
        return path
    return (config_dir or paths.config_dir()) / "runs" / f"{path}.journal"


def _at_recorded_times(
    events: "Iterable[AgentEvent]", speed: float, wait: "Callable[[float], None]"
) -> "Iterator[AgentEvent]":
    """Yield the events with the recorded delays between them; `wait` waits for some seconds."""
    began: float | None = None
    first = 0
    for event in events:
        if began is None:
            began, first = time.monotonic(), event.timestamp
        seconds = (event.timestamp - first) / 1000 / speed - (time.monotonic() - began)
        if seconds > 0:
            sys.stdout.flush()
            wait(seconds)
        yield event


def _print_json_lines(events: "Iterable[AgentEvent]", *, compact: bool) -> None:
    from agent_mux.cli.command_output import for_terminal
    from agent_mux.events import encode_event

    for event in events:
        sys.stdout.write(for_terminal(encode_event(event, accumulated=not compact).decode()) + "\n")


def _print_for_people(recording: "OpenRecording", speed: float, *, no_color: bool, verbose: bool) -> None:
    from agent_mux.cli.playback import Playback
    from agent_mux.cli.request import has_live_terminal, live_view, screen_for
    from agent_mux.cli.views import HumanView
    from agent_mux.run.result_builder import ResultBuilder

    screen = screen_for(no_color=no_color, verbose=verbose)
    root = None if recording.cwd is None else Path(recording.cwd)
    view = live_view(screen, root) if has_live_terminal(screen) else HumanView(screen)
    playback = Playback(view, recording.agent, lambda: recording.normalizer.assembler.model)
    events = _at_recorded_times(recording.events, speed, playback.wait) if speed else recording.events
    builder = ResultBuilder(collect=False, bounded=False)
    times: list[int] = []
    with playback:
        for event in events:
            builder.observe([event])
            times = [times[0] if times else event.timestamp, event.timestamp]
            playback.show(event)
    playback.end(_build_result(recording, builder, duration_ms=times[-1] - times[0] if times else 0))


def _build_result(recording: "OpenRecording", builder: Any, *, duration_ms: int) -> "RunResult | None":
    """Build the result of the run, as far as it was recorded; None if the recording has no outcome."""
    if recording.normalizer.verdict is None:
        return None
    result: RunResult = builder.build(
        recording.normalizer,
        derive=None,
        run_id=recording.run_id,
        agent=recording.agent,
        exit_code=None,
        signal=None,
        duration_ms=duration_ms,
        journal=None if recording.journal is None else str(recording.journal),
    )
    return result
