"""Drive one run from the command line: start it, show it, answer its requests, and end it on signals."""

import gc
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

import anyio
import msgspec

from agent_mux.cli import exit_codes
from agent_mux.cli.interaction_handlers import InteractionHandler
from agent_mux.cli.output import OutputWriter
from agent_mux.cli.suspension import suspending_signals
from agent_mux.cli.telemetry import instrument_if_traced
from agent_mux.cli.terminal import Palette, width_of
from agent_mux.cli.views import View
from agent_mux.client import AgentMux
from agent_mux.run.base import TERMINAL_STATES, Run
from agent_mux.run.result import RunResult
from agent_mux.settings.resolver import ResolvedOptions

GARBAGE_DELAY = 0.1  # seconds from the start of a run to the first collection of garbage
FOOTER_INTERVAL = 0.125
"""Seconds between two updates of the footer."""
OUTPUT_TIMEOUT = 1.0  # seconds for output to be shown before Ctrl-Z stops this process
_ENDING_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)


class RunTask(Protocol):
    """A run to start, here or on a service."""

    @property
    def directory(self) -> Path | None:
        """The working directory of the agent; None for that of this process, or if it is unknown."""

    def client(self) -> AbstractAsyncContextManager[Any]:
        """Return the client that runs the task."""

    async def start(self, mux: Any, handler: InteractionHandler) -> Run:
        """Start the run with that client; `handler` answers its requests."""


class LocalTask(msgspec.Struct, frozen=True):
    """A run on this machine."""

    resolved: ResolvedOptions
    config_dir: Path | None

    @property
    def directory(self) -> Path | None:
        """The working directory of the agent; None for that of this process."""
        cwd = self.resolved.options.cwd
        return None if cwd is None else Path(cwd)

    def client(self) -> AgentMux:
        """Return a client that runs agents in this process."""
        return AgentMux(config_dir=self.config_dir)

    async def start(self, mux: AgentMux, handler: InteractionHandler) -> Run:
        """Start the run, with traces if OpenTelemetry is set up."""
        instrument_if_traced(mux)
        return mux.run(replace(self.resolved, options=handler.with_callbacks(self.resolved.options)))


class RunDriver(msgspec.Struct, frozen=True, kw_only=True):
    """How the command line drives a run."""

    view: View
    palette: Palette
    handler_factory: Callable[[OutputWriter, Palette], InteractionHandler]
    """Creates the handler that answers the run's requests."""
    encoding: str | None = None
    """The encoding of standard output; None for its own."""

    async def run(self, task: RunTask) -> RunResult:
        """Run a task to its end.

        Raises `BrokenPipeError` if the reader of the output is gone; the run is aborted then.
        """
        output = OutputWriter(self.encoding)
        handler = self.handler_factory(output, self.palette)
        with anyio.open_signal_receiver(*ending_signals(), *suspending_signals(), signal.SIGWINCH) as signals:
            async with task.client() as mux, anyio.create_task_group() as tasks:
                run = await task.start(mux, handler)
                tasks.start_soon(_collect_garbage)
                with handler:
                    tasks.start_soon(output.run)
                    tasks.start_soon(output.watch, sys.stdout.fileno())
                    tasks.start_soon(_abort_without_reader, run, output)
                    tasks.start_soon(_handle_signals, signals, run, handler, self.view)
                    tasks.start_soon(handler.attend, run)
                    if self.view.has_footer:
                        tasks.start_soon(self._keep_footer, run, handler)
                    result = await self._show(run, handler)
                tasks.cancel_scope.cancel()
        if output.error is not None:
            raise output.error
        return result

    async def _show(self, run: Run, handler: InteractionHandler) -> RunResult:
        output = handler.output
        async for event in run:
            chunks = self.view.show(event)
            output.add(chunks)
            if chunks and self.view.has_footer:
                output.set_footer(self.view.footer(run.agent, run.model, is_busy=run.is_busy))
            await output.wait_for_capacity()
            await handler.on_event(run, event)
        result = await run
        output.set_footer([])
        output.add(self.view.end(result))
        await output.drain()
        return result

    async def _keep_footer(self, run: Run, handler: InteractionHandler) -> None:
        """Update the footer while the run is active. The first update is late enough for the agent to be spawned."""
        await anyio.sleep(FOOTER_INTERVAL)
        output = handler.output
        output.attach_footer(handler.footer_for(self.view))
        while run.state not in TERMINAL_STATES:
            output.add(self.view.held_back())
            output.set_footer(self.view.footer(run.agent, run.model, is_busy=run.is_busy))
            await anyio.sleep(FOOTER_INTERVAL)
        output.set_footer([])


async def _handle_signals(
    signals: AsyncIterator[signal.Signals], run: Run, handler: InteractionHandler, view: View
) -> None:
    async with anyio.create_task_group() as tasks:
        received = 0
        async for number in signals:
            if number is signal.SIGWINCH:
                view.set_width(width_of(sys.stderr))
                continue
            if number is signal.SIGTSTP:
                await _suspend(run, handler, view)
                continue
            if received == 0 and await handler.handle_signal(run, number):
                continue
            received += 1
            if received == 1:
                handler.warn(f"{number.name}: aborting the run; repeat to kill it")
                tasks.start_soon(run.abort)
            elif received == 2:
                run.kill()
            else:
                os._exit(exit_codes.ABORTED)  # the run is over, but its remaining output has no reader


async def _collect_garbage() -> None:
    """Collect garbage again, once the agent had the time to be spawned. `amux run` starts without (see `main`)."""
    await anyio.sleep(GARBAGE_DELAY)
    gc.freeze()
    gc.enable()


async def _suspend(run: Run, handler: InteractionHandler, view: View) -> None:
    """Suspend the run and this process, after the output so far is shown."""
    with handler.output.without_footer():
        with anyio.move_on_after(OUTPUT_TIMEOUT):
            await handler.output.drain()
        await handler.suspend(run)
    view.set_width(width_of(sys.stderr))  # the window may have another size


async def _abort_without_reader(run: Run, output: OutputWriter) -> None:
    await output.broken.wait()
    await run.abort()


def ending_signals() -> list[signal.Signals]:
    """Return the signals that end a run, except those that the parent process ignores (nohup, a shell's `&`)."""
    return [number for number in _ENDING_SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
