"""One run from the command line: started, shown, answered, and ended when somebody says so."""

import os
import signal
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from pathlib import Path

import anyio

from agent_mux.cli import exit_codes
from agent_mux.cli.output import Output
from agent_mux.cli.paper import Piece
from agent_mux.cli.person import Person
from agent_mux.cli.terminal import Palette, one_line
from agent_mux.cli.views import View
from agent_mux.client import AgentMux
from agent_mux.options import RunOptions
from agent_mux.run.handle import RunHandle
from agent_mux.run.interaction import Deny, PendingInteraction
from agent_mux.run.result import RunResult

_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_NOBODY = "nobody is there to answer"


@dataclass(frozen=True, slots=True, kw_only=True)
class Conduct:
    """How the command line carries out runs."""

    view: View
    palette: Palette
    asks: bool
    """A person may be asked; else what is asked is denied, with a warning."""
    encoding: str | None = None
    """Of standard output, instead of its own."""
    config_directory: Path | None = None

    async def run(self, options: RunOptions) -> RunResult:
        """Carry it out. Raises `BrokenPipeError` when the reader went away; the run is aborted then."""
        output = Output(self.encoding)
        with anyio.open_signal_receiver(*_heeded()) as signals:
            async with AgentMux(config_directory=self.config_directory) as mux, anyio.create_task_group() as tasks:
                observe_if_traced(mux)
                run = mux.run(self._with_answers(options, output))
                tasks.start_soon(output.run)
                tasks.start_soon(output.watch, sys.stdout.fileno())
                tasks.start_soon(_abort_without_reader, run, output)
                tasks.start_soon(self._obey, signals, run, output)
                result = await self._show(run, output)
                tasks.cancel_scope.cancel()
        if output.error is not None:
            raise output.error
        return result

    async def _show(self, run: RunHandle, output: Output) -> RunResult:
        person = Person(output, self.palette) if self.asks else None
        async for event in run:
            output.add(self.view.show(event))
            await output.room()
            if person is not None:
                await person.see(run, event)
        result = await run
        output.add(self.view.end(result))
        await output.drain()
        return result

    def _with_answers(self, options: RunOptions, output: Output) -> RunOptions:
        """What is asked stays pending for the person, or is denied."""
        if self.asks:
            return replace(options, on_input_required=lambda _: None)
        if options.approval_mode == "prompt":
            refusal = _Refusal(self, output)
            return replace(options, on_approval_request=refusal, on_input_required=refusal)
        return options

    async def _obey(self, signals: AsyncIterator[signal.Signals], run: RunHandle, output: Output) -> None:
        async with anyio.create_task_group() as tasks:
            told = 0
            async for number in signals:
                told += 1
                if told == 1:
                    output.add([self.warning(f"{number.name}: the run is being aborted; once more kills it")])
                    tasks.start_soon(run.abort)
                elif told == 2:
                    run.kill()
                else:
                    os._exit(exit_codes.ABORTED)  # the run is over, but nobody reads what is left to be written

    def warning(self, text: str) -> Piece:
        """A line on standard error, also where nothing else is shown there."""
        return Piece("err", f"{self.palette.warning('warning:')} {one_line(text, 1000)}\n")


class _Refusal:
    """Denies what is asked, and says so the first time."""

    def __init__(self, conduct: Conduct, output: Output) -> None:
        self._conduct = conduct
        self._output = output
        self._warned = False

    def __call__(self, pending: PendingInteraction) -> Deny:
        if not self._warned:
            self._warned = True
            asked = one_line(pending.description, 200)
            told = f"{_NOBODY}, so this and the like is denied: {asked} (--yolo allows everything)"
            self._output.add([self._conduct.warning(told)])
        return Deny(_NOBODY)


def observe_if_traced(mux: AgentMux) -> None:
    """Whoever starts the command with OpenTelemetry set up (`opentelemetry-instrument amux ...`) gets its traces."""
    if "opentelemetry.sdk" in sys.modules:
        from agent_mux.telemetry.otel import instrument

        instrument(mux)


async def _abort_without_reader(run: RunHandle, output: Output) -> None:
    await output.broken.wait()
    await run.abort()


def _heeded() -> list[signal.Signals]:
    """The signals that end a run; not those that whoever started us (nohup, a shell's `&`) wants ignored."""
    return [number for number in _ENDING if signal.getsignal(number) is not signal.SIG_IGN]
