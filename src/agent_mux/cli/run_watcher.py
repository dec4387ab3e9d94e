"""`amux runs watch`: show a run that works elsewhere, and answer its requests. Ctrl-C and Ctrl-D leave it alone."""

import signal
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio

from agent_mux.cli import exit_codes
from agent_mux.cli.command_output import Invocation
from agent_mux.cli.interaction_handlers import InteractionHandler, TerminalHandler
from agent_mux.cli.output import OutputWriter
from agent_mux.cli.request import has_live_terminal, inspect_streams, live_view, screen_for
from agent_mux.cli.run_driver import ending_signals
from agent_mux.cli.run_execution import exit_code_for
from agent_mux.cli.run_selection import remote_id
from agent_mux.cli.terminal import palette_for, width_of
from agent_mux.cli.views import HumanView, JsonView, View
from agent_mux.client import AgentMux
from agent_mux.run.base import Run
from agent_mux.run.result import RunResult
from agent_mux.sdk.interactions import Response


class WatcherIsGoneError(Exception):
    """The person stopped watching; the run continues."""


class WatchingHandler(TerminalHandler):
    """Asks at the terminal. At the end of the input, the request stays pending and the watcher leaves."""

    def response_at_end_of_input(self, run: Run) -> Response:
        """Raise `WatcherIsGoneError`: who closes a terminal has not decided about the request."""
        raise WatcherIsGoneError(run.run_id)


@dataclass(frozen=True, slots=True)
class Watcher:
    """How a run is shown."""

    view: View
    handler: InteractionHandler

    async def watch(self, client: Any, run: str | None) -> RunResult:
        """Show a run from its first event to its end.

        Raises `WatcherIsGoneError` when a signal arrives first, and `OSError` when standard output fails.
        """
        output, view = self.handler.output, self.view
        with anyio.open_signal_receiver(*ending_signals(), signal.SIGWINCH) as signals:
            async with client as mux, anyio.create_task_group() as tasks:
                handle = await mux.attach(run)
                tasks.start_soon(output.run)
                tasks.start_soon(output.watch, sys.stdout.fileno())
                tasks.start_soon(self._leave_without_reader)
                tasks.start_soon(self._handle_signals, signals, handle.run_id)
                async for event in handle:
                    output.add(view.show(event))
                    await output.wait_for_capacity()
                    await self.handler.on_event(handle, event)
                result: RunResult = await handle.result()
                output.add(view.end(result))
                await output.drain()
                tasks.cancel_scope.cancel()
        return result

    async def _leave_without_reader(self) -> None:
        """Raise the error of standard output when it fails, and `BrokenPipeError` when its reader is gone."""
        await self.handler.output.broken.wait()
        raise self.handler.output.error or BrokenPipeError

    async def _handle_signals(self, signals: AsyncIterator[signal.Signals], run_id: str) -> None:
        async for number in signals:
            if number is signal.SIGWINCH:
                self.view.set_width(width_of(sys.stderr))
                continue
            raise WatcherIsGoneError(run_id)


def watch_run(invocation: Invocation, run: str | None, config_dir: Path | None) -> int:
    """Watch a run, here or at a service. Returns the exit code of the run."""
    streams, service = inspect_streams(), invocation.service
    screen = screen_for(no_color=invocation.no_color, verbose=invocation.debug)._replace(asks=streams.asks)
    view: View = HumanView(screen)
    if invocation.json:
        view = JsonView(compact=True)
    elif has_live_terminal(screen):
        view = live_view(screen)
    kind = WatchingHandler if streams.asks and not invocation.json else InteractionHandler
    watcher = Watcher(view, kind(OutputWriter("utf-8" if invocation.json else None), screen.palette))
    client: Any = AgentMux(config_dir=config_dir) if service is None else service.client()
    named = run if service is None else remote_id(service, run)
    try:
        return exit_code_for(anyio.run(watcher.watch, client, named))
    except* WatcherIsGoneError as gone:
        run_id = gone.exceptions[0].args[0]
    at = "" if service is None else f" --server {service.url}"
    palette = palette_for(sys.stderr, no_color=invocation.no_color)
    sys.stderr.write(
        palette.dim(f"\nstopped watching; the run continues (amux runs abort {run_id}{at} ends it)") + "\n"
    )
    return exit_codes.ABORTED
