"""Render events for people: the answer on standard output, everything else on standard error.

See docs/spec/run-api.md, section 8. A renderer only produces text; it knows neither the source of the events (a run, a
journal, a fixture) nor the writer. Text of the agent is sanitized for standard error, and for standard output if that
is a terminal.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from agent_mux import events as ev
from agent_mux.api.event_lines import EventLine, Mark, duration, event_line, failure_reason
from agent_mux.cli.output import Chunk, OutputBuffer, Screen
from agent_mux.cli.terminal import Palette, one_line, sanitize
from agent_mux.events import BaseEvent

MARKS: Mapping[Mark, str] = {
    "call": "*", "good": "+", "bad": "x", "warning": "!", "question": "?", "note": "", "error": "error:",
}  # fmt: skip
_SUBAGENT_EVENTS = frozenset({"subagent_spawn", "subagent_result", "subagent_error"})
_INTERACTION_EVENTS = frozenset({"approval_request", "input_required"})
_SHORTEST_DETAIL = 20
KEPT_OUTPUT = 40_000  # characters of a command's output
LONGEST_LINE = 4000  # characters of a line that is not cut to the screen width
_EventHandler = Callable[[Any], None]


class Renderer:
    """Converts events to chunks, in order."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._buffer = OutputBuffer(screen)
        self._shell = ShellView(screen.palette, screen.width)
        self._wrote_message = False
        self._shell_failed = False
        self._command_output = ""
        """The beginning of the output of the current command, with which the reason of a failure is compared."""
        self._handlers: Mapping[str, _EventHandler] = {
            "message_start": self._message_start,
            "text_delta": self._text,
            "message_stop": self._message_stop,
            "thinking_delta": self._thinking,
            "thinking_stop": self._thinking_stop,
            "tool_call_ready": self._tool,
            "tool_error": self._tool_error,
            "shell_stdout_delta": self._shell_output,
            "shell_stderr_delta": self._shell_output,
            "shell_exit": self._shell_exit,
            "debug": self._debug,
        }

    def show(self, event: BaseEvent) -> list[Chunk]:
        """Render one event; often nothing."""
        if self._screen.asks and event.type in _INTERACTION_EVENTS:
            return []
        if event.subagent_id is not None and event.type not in _SUBAGENT_EVENTS:
            self._show_subagent_event(event)
        elif event.type in self._handlers:
            self._handlers[event.type](event)
        else:
            self._print_line(event_line(event))
        return self._buffer.take()

    def set_width(self, width: int) -> None:
        """Set the number of columns."""
        self._screen = self._screen._replace(width=width)
        self._shell.width = width

    def finish(self, lines: Iterable[EventLine] = ()) -> list[Chunk]:
        """End unfinished lines and render the last lines."""
        self._buffer.close_out()
        self._buffer.close_err()
        for line in lines:
            self._print_line(line)
        return self._buffer.take()

    def _print_line(self, line: EventLine | None, indent: str = "") -> None:
        if line is None:
            return
        mark = MARKS[line.mark]
        lead = indent + (paint_mark(self._screen.palette, line.mark, mark) + " " if mark else "")
        width = LONGEST_LINE if line.whole else max(self._screen.width - len(indent) - len(mark) - 2, _SHORTEST_DETAIL)
        text = fit(one_line(line.text, width), width)
        room = max(width - _columns(text), _SHORTEST_DETAIL)
        rest = fit(one_line(line.rest, room), room)
        self._buffer.line(lead + " ".join(part for part in (text, self._screen.palette.dim(rest)) if part))

    def _show_subagent_event(self, event: BaseEvent) -> None:
        """Render the events inside a sub-agent: whole messages and event lines only."""
        if isinstance(event, ev.MessageStopEvent):
            for part in sanitize(event.text).splitlines():
                self._buffer.line("  " + self._screen.palette.dim(part))
        else:
            self._print_line(event_line(event), "  ")

    # -- text that arrives in fragments

    def _message_start(self, _: BaseEvent) -> None:
        if self._wrote_message:
            self._buffer.out("\n")

    def _text(self, event: ev.TextDeltaEvent) -> None:
        self._wrote_message = True
        self._buffer.out(event.delta)

    def _message_stop(self, _: BaseEvent) -> None:
        self._buffer.close_out()

    def _thinking(self, event: ev.ThinkingDeltaEvent) -> None:
        text = sanitize(event.delta)
        body, end = (text[:-1], "\n") if text.endswith("\n") else (text, "")
        self._buffer.err(self._screen.palette.dim(body) + end)

    def _thinking_stop(self, _: BaseEvent) -> None:
        self._buffer.close_err()

    # -- commands and debug notes

    def _tool(self, event: ev.ToolCallReadyEvent) -> None:
        self._shell_failed, self._command_output = False, ""
        self._print_line(event_line(event))

    def _tool_error(self, event: ev.ToolErrorEvent) -> None:
        if not self._shell_failed:
            self._print_line(event_line(event))
        elif len(self._command_output) < KEPT_OUTPUT:  # else the error repeats output that is not kept
            reason = failure_reason(event.error, self._command_output)
            if reason:
                self._print_line(EventLine("bad", event.tool_name, reason))
        self._shell_failed = False

    def _shell_output(self, event: ev.ShellStdoutDeltaEvent | ev.ShellStderrDeltaEvent) -> None:
        if len(self._command_output) < KEPT_OUTPUT:
            self._command_output += event.delta
        for line in self._shell.feed(event.delta):
            self._buffer.line(line)

    def _shell_exit(self, event: ev.ShellExitEvent) -> None:
        for line in self._shell.finish():
            self._buffer.line(line)
        if event.exit_code != 0:
            self._shell_failed = True
            self._print_line(EventLine("bad", f"exit code {event.exit_code}", f"after {duration(event.duration_ms)}"))

    def _debug(self, event: ev.DebugEvent) -> None:
        if event.level == "warn" or self._screen.verbose:
            self._print_line(event_line(event))


def paint_mark(palette: Palette, mark: Mark, text: str) -> str:
    """Style the symbol of a line by its kind."""
    paint = {"call": palette.accent, "good": palette.good, "bad": palette.bad, "error": palette.bad}
    return paint.get(mark, palette.warning)(text)


SHOWN_LINES = 12  # per command: enough to follow it, few enough to keep the answer visible
LONGEST_PARTIAL_LINE = 4000  # characters of an incomplete line
_TAB = 4


class ShellView:
    """Formats the output of shell commands, indented and limited in length.

    One command at a time: output events do not name their command.
    """

    def __init__(self, palette: Palette, width: int) -> None:
        self._palette = palette
        self.width = width
        self._partial = ""
        self._shown = 0
        self._hidden = 0

    def feed(self, text: str) -> list[str]:
        """Add a chunk of output and return the complete lines to show."""
        *whole, self._partial = (self._partial + text).split("\n")
        if len(self._partial) > LONGEST_PARTIAL_LINE:
            self._partial = self._partial[:LONGEST_PARTIAL_LINE]  # the rest would not be shown
        return [line for part in whole for line in self._show(part)]

    def finish(self) -> list[str]:
        """End the command: return its last line and the number of hidden lines."""
        lines = self._show(self._partial) if self._partial else []
        if self._hidden:
            lines.append(self._palette.dim(f"  | ... {self._hidden} more lines"))
        self._partial, self._shown, self._hidden = "", 0, 0
        return lines

    def _show(self, line: str) -> list[str]:
        if self._shown >= SHOWN_LINES:
            self._hidden += 1
            return []
        self._shown += 1
        return [self._palette.dim(f"  | {output_line(line, self.width - 4)}")]


def output_line(line: str, width: int) -> str:
    """Return a sanitized line of output as a terminal leaves it, with its indentation and without tabs."""
    text = sanitize(line[: width * 8].rstrip("\r").rpartition("\r")[2]).expandtabs(_TAB).rstrip()
    return fit(text, width)


def fit(text: str, width: int) -> str:
    """Return a text that takes at most `width` columns of a terminal."""
    if text.isascii():
        return text if len(text) <= width else text[: max(width - 1, 0)] + "…"
    from agent_mux.cli.layout import cut  # not needed when the command starts

    return cut(text, width)


def _columns(text: str) -> int:
    if text.isascii():
        return len(text)
    from agent_mux.cli.layout import cell_width

    return cell_width(text)
