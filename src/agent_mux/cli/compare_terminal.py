"""A comparison at a terminal: a lane for each active trial, and keys to watch, answer, steer and abort it.

The lanes are a footer below the lines about what ended, which stay in the scrollback. Keys are read one by one; a line
is read only for an answer or a message to an agent.
"""

import signal
import sys
import termios
import time
import tty
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import anyio
import anyio.abc

from agent_mux.cli.compare_lanes import Lane, LaneStyle, draw_lanes
from agent_mux.cli.compare_progress import MAX_LINE, progress_lines
from agent_mux.cli.interaction_prompts import describe_request, parse_answer
from agent_mux.cli.layout import ASCII, indented_rows, symbols_for
from agent_mux.cli.live.cards import CardPainter
from agent_mux.cli.live.footer import Footer
from agent_mux.cli.live.view import LiveView
from agent_mux.cli.output import Chunk, OutputWriter, Screen
from agent_mux.cli.run_driver import ending_signals
from agent_mux.cli.streams import TypedLines, read_some
from agent_mux.cli.terminal import one_line, size_of
from agent_mux.compare.engine import ComparisonRun
from agent_mux.compare.judge_runs import judge_run_name
from agent_mux.compare.ledger import Judged, TrialEnded
from agent_mux.compare.records import Comparison
from agent_mux.errors import AgentMuxError
from agent_mux.events import BaseEvent, MessageStartEvent, ShellStartEvent, ShellStdoutDeltaEvent, TextDeltaEvent
from agent_mux.run.handle import RunHandle
from agent_mux.sdk.codec import Delivery

INTERVAL = 0.125  # seconds between two updates of the lanes
_ESCAPE_KEYS = {b"\x1b[A": "k", b"\x1b[B": "j", b"\x1bOA": "k", b"\x1bOB": "j"}


class LanesView:
    """Shows one comparison at a terminal until it is over."""

    def __init__(
        self, run: ComparisonRun, screen: Screen, *, leave_with: Exception | None = None, service: str = ""
    ) -> None:
        """Prepare the lanes.

        Args:
            run: The comparison.
            screen: The terminal.
            leave_with: Raised by a signal, for a comparison that a service carries out; None: it is stopped.
            service: The flag with which commands reach that service; empty without one.
        """
        self._leave_with = leave_with
        self._resume = " ".join(filter(None, ["amux compare resume", run.id, service]))
        self._run = run
        self._screen = screen
        self._symbols = symbols_for(screen.encoding)
        self._output = OutputWriter()
        self._lanes: dict[str, Lane] = {}
        self._selected = ""
        self._began = time.monotonic()
        self._watched: anyio.CancelScope | None = None
        self._typed = TypedLines()
        run.on_run(self._add_lane)

    async def show(self) -> Comparison:
        """Show the comparison until it has ended, and return it. The first signal stops it."""
        with anyio.open_signal_receiver(*ending_signals()) as signals, _single_keys():
            async with anyio.create_task_group() as tasks:
                self._output.attach_footer(Footer())
                tasks.start_soon(self._output.run)
                tasks.start_soon(self._stop_on_signal, signals)
                tasks.start_soon(self._read_keys, tasks)
                tasks.start_soon(self._redraw)
                await self._print_facts()
                self._output.set_footer([])
                await self._output.drain()
                tasks.cancel_scope.cancel()
        return await self._run

    # -- what is shown

    def _add_lane(self, trial: str, run: RunHandle) -> None:
        painter = CardPainter(self._screen.palette, self._symbols, _root_of(run))
        lane = Lane(trial, run, painter, time.monotonic() - self._began)
        self._lanes[trial] = lane
        self._selected = self._selected or trial

        def feed(event: BaseEvent) -> None:
            lane.timeline.feed(event)
            match event:
                case MessageStartEvent() | ShellStartEvent():
                    lane.end_line()
                case TextDeltaEvent() | ShellStdoutDeltaEvent():
                    lane.add_text(event.delta)

        run.on(BaseEvent, feed)

    async def _print_facts(self) -> None:
        async for fact in self._run.facts():
            match fact:
                case TrialEnded(trial=trial):
                    self._lanes.pop(trial.id, None)
                case Judged(judgement=one):
                    self._lanes.pop(judge_run_name(one.first, one.second), None)
            self._print(*progress_lines(fact, self._run))

    def _print(self, *lines: str) -> None:
        width = max(size_of(sys.stderr).columns - 1, 20)
        rows = [row for line in lines for row in indented_rows(one_line(line, MAX_LINE), width)]
        self._output.add([Chunk("err", f"{row}\n") for row in rows])

    async def _redraw(self) -> None:
        while True:
            lanes = list(self._lanes.values())
            if self._selected not in self._lanes:
                self._selected = lanes[0].trial if lanes else ""
            selected = next((number for number, lane in enumerate(lanes) if lane.trial == self._selected), 0)
            trials = self._run.comparison.trials
            done = sum(trial.outcome is not None for trial in trials)
            size = size_of(sys.stderr)
            style = LaneStyle(
                width=max(size.columns - 1, 20),
                palette=self._screen.palette,
                symbols=self._symbols,
                is_unicode=self._symbols is not ASCII,
            )
            elapsed = time.monotonic() - self._began
            self._output.set_footer(draw_lanes(lanes, selected, (done, len(trials)), elapsed, style))
            await anyio.sleep(INTERVAL)

    # -- keys

    async def _read_keys(self, tasks: anyio.abc.TaskGroup) -> None:
        while data := await read_some(sys.stdin.fileno()):
            for key in _keys_of(data):
                await self._press(key, tasks)

    async def _press(self, key: str, tasks: anyio.abc.TaskGroup) -> None:
        lane = self._lanes.get(self._selected)
        if key == "q":
            self._print(f"stopping; continue later: {self._resume}")
            self._run.stop()
        elif key in {"j", "k"}:
            self._select(1 if key == "j" else -1)
        elif lane is not None:
            await self._press_for(lane, key, tasks)

    async def _press_for(self, lane: Lane, key: str, tasks: anyio.abc.TaskGroup) -> None:
        match key:
            case "\n" | "\r":
                self._toggle_watch(lane, tasks)
            case "a":
                await self._approve(lane)
            case "d":
                await self._act(lane, lane.run.deny, "denied")
            case "v":
                self._show_request(lane)
            case "s":
                text = await self._read_line(f"message to {lane.trial}: ")
                if text:
                    await self._act(lane, lambda: lane.run.steer(text), "sent")
            case "x":
                self._print(f"{lane.trial}: aborting")
                await self._act(lane, lane.run.abort, "")

    def _select(self, step: int) -> None:
        names = list(self._lanes)
        if names:
            position = names.index(self._selected) if self._selected in names else 0
            self._selected = names[(position + step) % len(names)]

    async def _approve(self, lane: Lane) -> None:
        pending = lane.pending
        if pending is None or pending.type == "approval":
            await self._act(lane, lane.run.approve, "approved")
            return
        self._show_request(lane)
        text = await self._read_line(f"answer to {lane.trial}: ")
        response = None if text is None else parse_answer(pending, text)
        if response is None:
            self._print(f"{lane.trial}: no answer was sent")
            return
        await self._act(lane, lambda: lane.run.interaction.respond(pending.id, response), "answered")

    async def _act(self, lane: Lane, act: Callable[[], Any], done: str) -> None:
        try:
            answer: Delivery = await act()
        except AgentMuxError as error:
            self._print(f"{lane.trial}: {error.message}")
            return
        if done:
            self._print(f"{lane.trial}: {done}" if answer else lane.trial)

    def _show_request(self, lane: Lane) -> None:
        pending = lane.pending
        if pending is None:
            self._print(f"{lane.trial}: nothing waits for an answer")
            return
        shown = describe_request(pending, self._screen.palette, size_of(sys.stderr), whole=True)
        self._output.add([Chunk("err", f"{lane.trial}:\n{shown.text}")])

    def _toggle_watch(self, lane: Lane, tasks: anyio.abc.TaskGroup) -> None:
        """Print the run of a lane from its beginning, as `amux run` shows it, until the key is pressed again."""
        if self._watched is not None:
            self._watched.cancel()
            self._watched = None
            return
        self._watched = anyio.CancelScope()
        tasks.start_soon(self._watch, lane, self._watched)

    async def _watch(self, lane: Lane, scope: anyio.CancelScope) -> None:
        view = LiveView(self._screen._replace(asks=True), root=_root_of(lane.run))
        with scope:
            self._print(f"--- {lane.trial} ---")
            async for event in lane.run.events():
                self._output.add(view.show(event))
                await self._output.wait_for_capacity()
            self._output.add(view.held_back())
        self._output.add(view.end_without_result())
        self._print(f"--- {lane.trial}: no longer watched ---")
        if self._watched is scope:
            self._watched = None

    async def _read_line(self, prompt: str) -> str | None:
        """Read a line from the terminal; None at the end of input."""
        with self._output.without_footer(), _whole_lines():
            self._output.add([Chunk("err", self._screen.palette.bold(prompt))])
            await self._output.drain()
            with self._output.held():
                line = await self._typed.next()
                self._output.line_ended()
        return line

    async def _stop_on_signal(self, signals: AsyncIterator[signal.Signals]) -> None:
        async for number in signals:
            if self._leave_with is not None:
                self._output.set_footer([])
                await self._output.drain()
                raise self._leave_with
            self._print(f"{number.name}: stopping; continue later: {self._resume}")
            self._run.stop()


def _root_of(run: RunHandle) -> str | None:
    """Return the workspace, relative to which paths are shown; None for a run at a service."""
    return run.header.codec.cwd if isinstance(run, RunHandle) else None


def _keys_of(data: bytes) -> Iterator[str]:
    """Yield the keys in a chunk of input; arrows as `j` and `k`, other escape sequences are skipped."""
    position = 0
    while position < len(data):
        if data[position] == 0x1B:
            yield from filter(None, [_ESCAPE_KEYS.get(data[position : position + 3], "")])
            position += 3
        else:
            yield chr(data[position])
            position += 1


@contextmanager
def _single_keys() -> Iterator[None]:
    """Deliver keys without Enter and without showing them; signals of the terminal stay."""
    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)
    tty.setcbreak(descriptor)
    try:
        yield
    finally:
        with suppress(termios.error):
            termios.tcsetattr(descriptor, termios.TCSADRAIN, before)


@contextmanager
def _whole_lines() -> Iterator[None]:
    """Deliver whole lines, which the terminal shows and lets a person edit."""
    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)
    edited = list(before)
    edited[3] |= termios.ICANON | termios.ECHO
    termios.tcsetattr(descriptor, termios.TCSADRAIN, edited)
    try:
        yield
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)
