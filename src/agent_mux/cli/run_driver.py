"""One run from the command line: started, shown, answered, and ended when somebody says so."""

import os
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import anyio

from agent_mux.cli import exit_codes
from agent_mux.cli.interaction_handlers import InteractionHandler
from agent_mux.cli.output import OutputWriter
from agent_mux.cli.telemetry import instrument_if_traced
from agent_mux.cli.terminal import Palette, width_of
from agent_mux.cli.views import View
from agent_mux.client import AgentMux
from agent_mux.preferences.settling import Settled
from agent_mux.run.interface import Run
from agent_mux.run.result import RunResult

_ENDING_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class RunTask(Protocol):
    """What is to be run, and where."""

    def client(self) -> AbstractAsyncContextManager[Any]:
        """Of those runs."""

    async def start(self, mux: Any, handler: InteractionHandler) -> Run:
        """Start it with a client of this kind; what is asked goes to the handler."""


@dataclass(frozen=True, slots=True)
class LocalTask:
    """A run of this process."""

    settled: Settled
    config_dir: Path | None

    def client(self) -> AgentMux:
        """A client of our own."""
        return AgentMux(config_dir=self.config_dir)

    async def start(self, mux: AgentMux, handler: InteractionHandler) -> Run:
        """Start it."""
        instrument_if_traced(mux)
        return mux.run(replace(self.settled, options=handler.with_callbacks(self.settled.options)))


@dataclass(frozen=True, slots=True, kw_only=True)
class RunDriver:
    """How the command line carries out runs."""

    view: View
    palette: Palette
    handler_factory: Callable[[OutputWriter, Palette], InteractionHandler]
    """Who is with the run."""
    encoding: str | None = None
    """Of standard output, instead of its own."""

    async def run(self, task: RunTask) -> RunResult:
        """Carry it out. Raises `BrokenPipeError` when the reader went away; the run is aborted then."""
        output = OutputWriter(self.encoding)
        handler = self.handler_factory(output, self.palette)
        with anyio.open_signal_receiver(*ending_signals(), signal.SIGWINCH) as signals:
            async with task.client() as mux, anyio.create_task_group() as tasks:
                run = await task.start(mux, handler)
                with handler:
                    tasks.start_soon(output.run)
                    tasks.start_soon(output.watch, sys.stdout.fileno())
                    tasks.start_soon(_abort_without_reader, run, output)
                    tasks.start_soon(_handle_signals, signals, run, handler, self.view)
                    tasks.start_soon(handler.attend, run)
                    result = await self._show(run, handler)
                tasks.cancel_scope.cancel()
        if output.error is not None:
            raise output.error
        return result

    async def _show(self, run: Run, handler: InteractionHandler) -> RunResult:
        output = handler.output
        async for event in run:
            output.add(self.view.show(event))
            await output.wait_for_capacity()
            await handler.on_event(run, event)
        result = await run
        output.add(self.view.end(result))
        await output.drain()
        return result


async def _handle_signals(
    signals: AsyncIterator[signal.Signals], run: Run, handler: InteractionHandler, view: View
) -> None:
    async with anyio.create_task_group() as tasks:
        told = 0
        async for number in signals:
            if number is signal.SIGWINCH:
                view.set_width(width_of(sys.stderr))
                continue
            if told == 0 and await handler.handle_signal(run, number):
                continue
            told += 1
            if told == 1:
                handler.warn(f"{number.name}: the run is being aborted; once more kills it")
                tasks.start_soon(run.abort)
            elif told == 2:
                run.kill()
            else:
                os._exit(exit_codes.ABORTED)  # the run is over, but nobody reads what is left to be written


async def _abort_without_reader(run: Run, output: OutputWriter) -> None:
    await output.broken.wait()
    await run.abort()


def ending_signals() -> list[signal.Signals]:
    """The signals that end a run; not those that whoever started us (nohup, a shell's `&`) wants ignored."""
    return [number for number in _ENDING_SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
