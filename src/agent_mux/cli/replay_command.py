"""`amux replay`: the events of a recorded run again, without any process."""

import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agent_mux.cli.decorators import with_common_flags
from agent_mux.cli.json_output import Invocation
from agent_mux.cli.options import Compact, ConfigDir

if TYPE_CHECKING:
    from agent_mux.cli.paper import Piece
    from agent_mux.cli.recordings import Recording
    from agent_mux.events import AgentEvent
    from agent_mux.run.result import RunResult


@with_common_flags
def replay(
    context: typer.Context,
    path: Annotated[
        Path, typer.Argument(metavar="PATH", help="The journal of a run (or the run's id), or a fixture folder.")
    ],
    compact: Compact = False,
    speed: Annotated[float, typer.Option("--speed", min=0, help="1: as recorded, 2: twice as fast; 0: at once.")] = 0.0,
    config_dir: ConfigDir = None,
) -> int:
    """Show a recorded run again: derived from its recording, byte for byte the events of then."""
    from agent_mux.cli.recordings import open_recording
    from agent_mux.registry import AdapterRegistry

    recording = open_recording(_found(path, config_dir), AdapterRegistry())
    events = _timed(recording.events, speed) if speed else recording.events
    invocation: Invocation = context.obj
    if invocation.json:
        _play_json(events, compact=compact)
    else:
        _play(recording, events, no_color=invocation.no_color, verbose=invocation.debug)
    return 0


def _found(path: Path, config_dir: Path | None) -> Path:
    """The path, or the journal of the run with this id."""
    from agent_mux import paths
    from agent_mux.options import RUN_ID

    if path.exists() or RUN_ID.fullmatch(str(path)) is None:
        return path
    return (config_dir or paths.config_dir()) / "runs" / f"{path}.journal"


def _timed(events: "Iterable[AgentEvent]", speed: float) -> "Iterator[AgentEvent]":
    """The events at their times."""
    began: float | None = None
    first = 0
    for event in events:
        if began is None:
            began, first = time.monotonic(), event.timestamp
        wait = (event.timestamp - first) / 1000 / speed - (time.monotonic() - began)
        if wait > 0:
            sys.stdout.flush()
            time.sleep(wait)
        yield event


def _play_json(events: "Iterable[AgentEvent]", *, compact: bool) -> None:
    from agent_mux.events import encode_event

    for event in events:
        sys.stdout.buffer.write(encode_event(event, accumulated=not compact) + b"\n")


def _play(recording: "Recording", events: "Iterable[AgentEvent]", *, no_color: bool, verbose: bool) -> None:
    from agent_mux.cli.ending import ending
    from agent_mux.cli.render import Renderer
    from agent_mux.cli.request import screen_for
    from agent_mux.run.result import ResultBuilder

    renderer = Renderer(screen_for(no_color=no_color, verbose=verbose))
    builder = ResultBuilder(collect=False, bounded=False)
    times: list[int] = []
    for event in events:
        builder.see([event])
        times = [times[0] if times else event.timestamp, event.timestamp]
        _write(renderer.show(event))
    result = _result(recording, builder, duration_ms=times[-1] - times[0] if times else 0)
    _write(renderer.finish(ending(result) if result is not None else ()))


def _result(recording: "Recording", builder: Any, *, duration_ms: int) -> "RunResult | None":
    """What the run came to, as far as its recording tells."""
    normalizer = recording.normalizer
    if normalizer.verdict is None:
        return None
    result: RunResult = builder.build(
        normalizer.verdict,
        stderr=normalizer.stderr_tail,
        derive=None,
        run_id=recording.run_id,
        agent=recording.agent,
        model=normalizer.assembler.model,
        session_id=normalizer.assembler.session_id,
        exit_code=None,
        signal=None,
        duration_ms=duration_ms,
        ledger=normalizer.ledger,
        journal=None if recording.journal is None else str(recording.journal),
    )
    return result


def _write(pieces: "Iterable[Piece]") -> None:
    for stream, text in pieces:
        if stream == "out":
            sys.stdout.write(text)
            sys.stdout.flush()
        else:
            sys.stderr.write(text)
