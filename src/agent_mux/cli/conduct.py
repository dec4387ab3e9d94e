"""One run from the command line: started, shown, answered, and ended when somebody says so."""

import os
import signal
import sys
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace
from pathlib import Path

import anyio

from agent_mux.cli import exit_codes
from agent_mux.cli.output import Output, until_reader_is_gone
from agent_mux.cli.paper import Piece
from agent_mux.cli.person import Person
from agent_mux.cli.terminal import Palette, one_line
from agent_mux.cli.views import View
from agent_mux.client import AgentMux
from agent_mux.options import RunOptions
from agent_mux.run.handle import RunHandle
from agent_mux.run.interaction import Deny, PendingInteraction
from agent_mux.run.result import RunResult

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
    prepare: Callable[[AgentMux], None] | None = None

    async def run(self, options: RunOptions) -> RunResult:
        """Carry it out. Raises `BrokenPipeError` when the reader went away; the run is aborted then."""
        output = Output(self.encoding)
        person = Person(output, self.palette) if self.asks else None
        numbers = [number for number in _ENDING if signal.getsignal(number) is not signal.SIG_IGN]
        with anyio.open_signal_receiver(*numbers) as signals:
            async with AgentMux(config_directory=self.config_directory) as mux, anyio.create_task_group() as tasks:
                run = mux.run(self._with_answers(options, output))
                tasks.start_soon(output.run)
                tasks.start_soon(self._obey, signals, run, output)
                tasks.start_soon(_abort_without_reader, run, output)
                result = await self._show(run, output, person)
                tasks.cancel_scope.cancel()
        if output.error is not None:
            raise output.error
        return result

    async def _show(self, run: RunHandle, output: Output, person: Person | None) -> RunResult:
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
        """Requests stay pending for the person, or are denied."""
        if self.asks:
            return replace(options, on_input_required=lambda _: None)
        if options.approval_mode == "prompt":
            refuse = _Refusal(self, output)
            return replace(options, on_approval_request=refuse, on_input_required=refuse)
        return options

    async def _obey(self, signals: AsyncIterator[signal.Signals], run: RunHandle, output: Output) -> None:
        told = 0
        async for number in signals:
            told += 1
            if told == 1:
                output.add([self.warning(f"{number.name}: aborting the run; once more kills it")])
                run.request_abort()
            elif told == 2 and not run.is_over:
                run.kill()
            else:
                os._exit(exit_codes.ABORTED)  # our own reader does not read any more; the reaper ends what is left

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
            hint = "--yolo allows everything, --deny says so in advance"
            told = f"denied, as {_NOBODY}: {one_line(pending.description, 200)} ({hint})"
            self._output.add([self._conduct.warning(told)])
        return Deny(_NOBODY)


async def _abort_without_reader(run: RunHandle, output: Output) -> None:
    async with anyio.create_task_group() as tasks:

        async def first(wait: Callable[[], object]) -> None:
            ...

    run.request_abort()


_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
