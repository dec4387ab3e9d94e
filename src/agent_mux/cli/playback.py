"""Show recorded events: write what a view returns, and keep its footer while the next event is due."""

import sys
import time
from collections.abc import Callable, Iterable

from agent_mux.cli.output import Chunk
from agent_mux.cli.terminal import size_of
from agent_mux.cli.views import View
from agent_mux.events import BaseEvent
from agent_mux.run.result import RunResult

_FOOTER_INTERVAL = 0.125  # seconds


class Playback:
    """Writes the events of one recording to the standard streams. As a context, it removes the footer at the end."""

    def __init__(self, view: View, agent: str, model: Callable[[], str | None]) -> None:
        """Initialize the playback. `model` returns the model of the run, as far as it is known."""
        self._view = view
        self._agent = agent
        self._model = model
        self._footer = view.new_footer() if view.has_footer else None

    def __enter__(self) -> None:
        """Do nothing; `show` writes the events."""

    def __exit__(self, *_: object) -> None:
        if self._footer is not None:
            self._footer.set_lines([])
            self._write([])

    def show(self, event: BaseEvent) -> None:
        """Write one event to the standard streams."""
        self._write(self._view.show(event))

    def wait(self, seconds: float) -> None:
        """Wait for the next event, with the footer."""
        if self._footer is None:
            time.sleep(seconds)
            return
        due = time.monotonic() + seconds
        while (rest := due - time.monotonic()) > 0:
            self._footer.set_lines(self._view.footer(self._agent, self._model()))
            self._write(self._view.held_back())
            time.sleep(min(rest, _FOOTER_INTERVAL))

    def end(self, result: RunResult | None) -> None:
        """Show the result, if the recording has one."""
        self._write(self._view.end_without_result() if result is None else self._view.end(result))

    def _write(self, chunks: Iterable[Chunk]) -> None:
        written = chunks if self._footer is None else self._footer.around(chunks, size_of(sys.stderr))
        for stream, text in written:
            if stream == "out":
                sys.stdout.write(text)
                sys.stdout.flush()
            else:
                sys.stderr.write(text)
                sys.stderr.flush()
