"""A line editor at the bottom of the terminal; output of the agent appears above the edited line.

The editor has its own thread and event loop. A terminal that stops reading thus blocks the editor but not the agent,
and the run may use any event loop (prompt_toolkit supports asyncio only).
"""

import asyncio
import os
import select
import sys
import termios
import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from types import TracebackType
from typing import Any, Generic, Literal, NamedTuple, Self, TypeVar

import anyio
from prompt_toolkit.application import Application, in_terminal
from prompt_toolkit.application.current import set_app
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.data_structures import Size
from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import ANSI
from prompt_toolkit.input.vt100 import Vt100Input
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.layout import BufferControl, ConditionalContainer, FormattedTextControl, HSplit, Layout, Window
from prompt_toolkit.layout.processors import BeforeInput
from prompt_toolkit.output.vt100 import Vt100_Output

from agent_mux.cli.interactive.terminal_guard import TerminalGuard
from agent_mux.cli.output import Chunk, write_all
from agent_mux.cli.terminal import TerminalSize, sanitize

Item = TypeVar("Item")


class Mailbox(Generic[Item]):
    """A queue from any thread to an event loop of any kind. Senders never block; the order is kept."""

    def __init__(self) -> None:
        self._items: deque[Item] = deque()
        self._reader = self._writer = -1

    def __enter__(self) -> Self:
        self._reader, self._writer = os.pipe()
        os.set_blocking(self._reader, False)
        os.set_blocking(self._writer, False)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        writer, self._writer = self._writer, -1
        os.close(writer)
        os.close(self._reader)

    def put(self, item: Item) -> None:
        """Add an item, from any thread, also before the queue is open. After its end, items are ignored."""
        self._items.append(item)
        self._wake()

    def _wake(self) -> None:
        with suppress(OSError):  # full: the reader is already notified; not open: there is no reader
            os.write(self._writer, b"\0")

    async def receive(self) -> Item:
        """Wait for the next item."""
        while not self._items:
            await anyio.wait_readable(self._reader)
            os.read(self._reader, 4096)
        return self._items.popleft()


START_STOP_TIMEOUT = 5.0  # seconds for the editor to start and to stop; a terminal that stops reading blocks it
LONGEST_PARTIAL_LINE = 1 << 16  # characters of an unfinished line; longer ones are shown in parts
PARTIAL_LINE_ROWS = 4  # rows of an unfinished line that are shown
FOOTER_SPARE_ROWS = 6  # rows of the terminal, which the footer leaves for output and for the edited line
QUESTION_WAITS_PROMPT = "(a question waits until this line is sent or cleared) > "


class EnteredLine(NamedTuple):
    """A line that was entered."""

    text: str
    question: str | None = None
    """The id of the question at whose prompt it was typed, if any."""


class PressedKey(NamedTuple):
    """A key that was pressed: Ctrl-C, or Ctrl-D on an empty line; `gone` if the terminal was closed.

    `suspended`: Ctrl-Z; the terminal is released until `Editor.resume`.
    """

    name: Literal["interrupt", "end", "suspended", "gone"]
    question: str | None = None


EditorEvent = EnteredLine | PressedKey


class Editor:
    """Reads from standard input and draws on standard error, both the same terminal."""

    def __init__(self, on_event: Callable[[EditorEvent], None]) -> None:
        """Initialize the editor. `on_event` is called in its thread for every line and key."""
        self._on_event = on_event
        self._prompt = "> "
        self._question: tuple[str, str] | None = None
        self._is_answering = False
        self._footer: Sequence[str] = ()
        self._partial = {"out": "", "err": ""}
        """Unfinished lines, by stream."""
        self._attributes: list[Any] = []
        self._guard: TerminalGuard | None = None
        self._lock = threading.Lock()
        self._is_open = False
        self._is_suspended = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._started_or_stopped = threading.Event()
        self._thread = threading.Thread(target=self._run_thread, name="line editor", daemon=True)

    # -- called from other threads

    def start(self) -> None:
        """Take over the terminal and wait until the editor runs."""
        self._attributes = termios.tcgetattr(sys.stdin.fileno())
        self._guard = TerminalGuard(sys.stderr.fileno(), self._attributes)
        self._thread.start()
        self._started_or_stopped.wait(START_STOP_TIMEOUT)

    def stop(self) -> None:
        """Stop the editor and restore the terminal."""
        self._post(self._exit_app)
        self._thread.join(START_STOP_TIMEOUT)
        with suppress(termios.error):  # the terminal is gone
            termios.tcsetattr(sys.stdin.fileno(), termios.TCSANOW, self._attributes)
        if self._guard is not None:
            self._guard.dismiss()

    def write(self, stream: Literal["out", "err"], text: str) -> None:
        """Show text above the edited line and wait until it is written. Raise `OSError`."""
        done: Future[None] = Future()
        if self._post(self._write, stream, text, done):
            done.result()
        else:
            write_all(sys.stderr.fileno(), text.encode(sys.stderr.encoding, "replace"))

    def set_prompt(self, prompt: str) -> None:
        """Set the prompt of the edited line."""
        if prompt != self._prompt:
            self._prompt = prompt
            self._post(self._draw)

    def set_footer(self, lines: Sequence[str]) -> None:
        """Set the lines above the edited line. They are sanitized, may have styles, and fit the terminal."""
        if lines != self._footer:
            self._footer = lines
            self._post(self._draw)

    def ask(self, question: str, prompt: str) -> None:
        """Ask a question with the next line. An unfinished line is completed first: it is not an answer."""
        self._post(self._ask, question, prompt)

    def forget_question(self) -> None:
        """Withdraw the question: no answer is needed any more."""
        self._post(self._forget_question)

    def clear(self) -> None:
        """Clear the line that is being edited."""
        self._post(self._clear)

    def suspend(self) -> None:
        """Release the terminal until `resume`, and report `suspended`, as if Ctrl-Z was pressed."""
        self._post(self._begin_suspension)

    def resume(self) -> None:
        """Take over the terminal again after `suspended` was reported."""
        self._post(self._continued.set)

    def _post(self, function: Callable[..., None], *arguments: Any) -> bool:
        """Call a function in the editor's thread. Return False if the editor is not running."""
        with self._lock:
            if not self._is_open or self._loop is None:
                return False
            self._loop.call_soon_threadsafe(function, *arguments)
            return True

    # -- called in the editor's thread

    def _run_thread(self) -> None:
        try:
            asyncio.run(self._edit())
        except (EOFError, OSError):
            self._on_event(PressedKey("gone"))
        finally:
            self._started_or_stopped.set()

    async def _edit(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._continued = asyncio.Event()
        self._input = Vt100Input(sys.stdin)
        self._draft = Buffer(
            multiline=False, accept_handler=self._accept_draft, on_text_changed=lambda _: self._focus_question()
        )
        self._answer = Buffer(multiline=False, accept_handler=self._accept_answer)
        self._app: Application[None] = Application(
            layout=self._layout(),
            key_bindings=self._keys(),
            input=self._input,
            output=Vt100_Output(sys.stderr, _terminal_size, term=os.environ.get("TERM"), enable_cpr=False),
            include_default_pygments_style=False,
            erase_when_done=True,
        )
        try:
            await self._app.run_async(pre_run=self._on_start, set_exception_handler=False)
        finally:
            with self._lock:
                self._is_open = False
            await asyncio.sleep(0)  # run the callbacks that were posted before

    def _on_start(self) -> None:
        self._is_open = True
        self._started_or_stopped.set()

    def _layout(self) -> Layout:
        self._draft_window = _line_window(self._draft, self._prompt_of_draft)
        self._answer_window = _line_window(self._answer, lambda: self._question[1] if self._question else "")
        is_answering = Condition(lambda: self._is_answering)
        partial = Window(FormattedTextControl(self._partial_line), wrap_lines=True, dont_extend_height=True)
        footer = Window(FormattedTextControl(self._footer_text), dont_extend_height=True)
        rows = [
            ConditionalContainer(partial, Condition(lambda: bool(self._partial_line()))),
            ConditionalContainer(footer, Condition(lambda: bool(self._footer))),
            ConditionalContainer(self._draft_window, ~is_answering),
            ConditionalContainer(self._answer_window, is_answering),
        ]
        return Layout(HSplit(rows), focused_element=self._draft_window)

    def _prompt_of_draft(self) -> str:
        return QUESTION_WAITS_PROMPT if self._question is not None else self._prompt

    def _partial_line(self) -> str:
        """Return the visible end of the line that the agent is writing."""
        partial = self._partial["out"] or self._partial["err"]
        return sanitize(partial)[-PARTIAL_LINE_ROWS * _terminal_size().columns :] if partial else ""

    def _footer_text(self) -> ANSI:
        """Return the last lines of the footer, as many as leave room for the edited line."""
        return ANSI("\n".join(self._footer[-max(_terminal_size().rows - FOOTER_SPARE_ROWS, 1) :]))

    def _keys(self) -> KeyBindings:
        keys = KeyBindings()

        @keys.add("c-c")
        def interrupt(_: KeyPressEvent) -> None:
            self._on_event(PressedKey("interrupt", self._current_question))

        @keys.add("c-d", filter=Condition(lambda: not self._app.current_buffer.text))
        def end(_: KeyPressEvent) -> None:
            self._on_event(PressedKey("end", self._current_question))

        @keys.add("c-z")
        def suspend(_: KeyPressEvent) -> None:
            self._begin_suspension()

        @keys.add("escape", "enter")
        def new_line(event: KeyPressEvent) -> None:
            event.current_buffer.insert_text("\n")

        return keys

    @property
    def _current_question(self) -> str | None:
        return self._question[0] if self._is_answering and self._question is not None else None

    def _accept_draft(self, buffer: Buffer) -> bool:
        self._on_event(EnteredLine(buffer.text))
        asyncio.get_running_loop().call_soon(
            self._focus_question
        )  # called when the draft is empty again; there is no event for that
        return False

    def _accept_answer(self, buffer: Buffer) -> bool:
        self._on_event(EnteredLine(buffer.text, self._current_question))
        return False

    def _ask(self, question: str, prompt: str) -> None:
        self._flush_typed_keys()
        self._question = question, prompt
        self._answer.reset()
        self._focus_question()
        self._draw()

    def _flush_typed_keys(self) -> None:
        """Process keys that were pressed before the question appeared: they are not its answer."""
        if select.select([sys.stdin.fileno()], [], [], 0)[0]:
            self._app.key_processor.feed_multiple(self._input.read_keys())
            self._app.key_processor.process_keys()

    def _focus_question(self) -> None:
        if self._question is not None and not self._is_answering and not self._draft.text:
            self._is_answering = True
            self._app.layout.focus(self._answer_window)
            self._draw()

    def _forget_question(self) -> None:
        self._question, self._is_answering = None, False
        self._app.layout.focus(self._draft_window)
        self._draw()

    def _clear(self) -> None:
        self._app.current_buffer.reset()
        self._focus_question()
        self._draw()

    def _draw(self) -> None:
        self._app.invalidate()

    def _exit_app(self) -> None:
        if self._app.is_running:
            self._app.exit()

    def _begin_suspension(self) -> None:
        if not self._is_suspended:
            self._is_suspended = True
            with set_app(self._app):  # posted calls have no current application
                self._app.create_background_task(self._stay_suspended())

    async def _stay_suspended(self) -> None:
        self._continued.clear()
        async with in_terminal():  # restores the terminal mode, and draws the line again at the end
            self._on_event(PressedKey("suspended"))
            await self._continued.wait()
        self._is_suspended = False

    def _write(self, stream: Literal["out", "err"], text: str, done: "Future[None]") -> None:
        try:
            whole, end, partial = (self._partial[stream] + text).rpartition("\n")
            if len(partial) > LONGEST_PARTIAL_LINE:
                whole, end, partial = whole + end + partial, "\n", ""
            self._partial[stream] = partial
            if end:
                self._app.renderer.erase()
                write_all(sys.stderr.fileno(), (whole + end).encode(sys.stderr.encoding, "replace"))
            self._draw()
        except OSError as error:
            done.set_exception(error)
        else:
            done.set_result(None)


class EditorFooter:
    """The footer of a view, shown by the editor above its line. See `agent_mux.cli.output.FooterArea`."""

    def __init__(self, editor: Editor) -> None:
        self._editor = editor

    def set_lines(self, lines: Sequence[str]) -> bool:
        """Set the lines. The editor draws them, so that the writer of the output has nothing to do."""
        self._editor.set_footer(list(lines))
        return False

    def line_begun(self) -> None:
        """Ignore a prompt: the editor has its own line."""

    def line_ended(self) -> None:
        """Ignore the end of a line: the editor has its own line."""

    def around(self, chunks: Iterable[Chunk], size: TerminalSize) -> list[Chunk]:  # noqa: ARG002  # part of the interface
        """Return the chunks as they are."""
        return list(chunks)


def _line_window(buffer: Buffer, prompt: Callable[[], str]) -> Window:
    control = BufferControl(buffer, input_processors=[BeforeInput(prompt)])
    return Window(control, wrap_lines=True, dont_extend_height=True)


def _terminal_size() -> Size:
    size = os.get_terminal_size(sys.stderr.fileno())
    return Size(rows=size.lines or 24, columns=size.columns or 80)
