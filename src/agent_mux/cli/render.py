"""Events for a person: the answer on standard output, everything else on standard error. Run API, section 8.

A renderer only makes text; who writes it, and where the events come from (a run, a journal, a fixture), is not its
business. What comes from the agent is sanitized for standard error always, for standard output where it is a terminal.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from agent_mux import events as ev
from agent_mux.cli.paper import Paper, Piece, Screen
from agent_mux.cli.shell_view import ShellView
from agent_mux.cli.terminal import one_line, sanitize
from agent_mux.events import BaseEvent
from agent_mux.telling.event_lines import Line, Mark, line_of
from agent_mux.telling.phrases import duration

_MARKS: Mapping[Mark, str] = {
    "call": "*", "good": "+", "bad": "x", "warning": "!", "question": "?", "note": "", "error": "error:",
}  # fmt: skip
_DELEGATION = frozenset({"subagent_spawn", "subagent_result", "subagent_error"})
_QUESTIONS = frozenset({"approval_request", "input_required"})
_SHORTEST_REST = 20
WHOLE = 4000  # characters of a line that is not cut to the screen
_Shower = Callable[[Any], None]


class Renderer:
    """Turns events into pieces, in order."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._paper = Paper(screen)
        self._shell = ShellView(screen.palette, screen.width)
        self._wrote_message = False
        self._shell_failed = False
        self._showers: Mapping[str, _Shower] = {
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

    def show(self, event: BaseEvent) -> list[Piece]:
        """The text for one event; often nothing."""
        if self._screen.asks and event.type in _QUESTIONS:
            return []
        if event.subagent_id is not None and event.type not in _DELEGATION:
            self._show_inside(event)
        elif event.type in self._showers:
            self._showers[event.type](event)
        else:
            self._say(line_of(event))
        return self._paper.take()

    def fit(self, width: int) -> None:
        """The screen has so many columns from now on."""
        self._screen = self._screen._replace(width=width)
        self._shell.width = width

    def finish(self, lines: Iterable[Line] = ()) -> list[Piece]:
        """The stream is over: no line stays open, and these are the last ones."""
        self._paper.close_out()
        self._paper.close_err()
        for line in lines:
            self._say(line)
        return self._paper.take()

    def _say(self, line: Line | None, indent: str = "") -> None:
        if line is None:
            return
        mark = _MARKS[line.mark]
        lead = indent + (self._paint(line.mark, mark) + " " if mark else "")
        room = WHOLE if line.whole else max(self._screen.width - len(indent) - len(mark) - 2, _SHORTEST_REST)
        text = one_line(line.text, room)
        rest = one_line(line.rest, max(room - len(text), _SHORTEST_REST))
        self._paper.line(lead + " ".join(part for part in (text, self._screen.palette.dim(rest)) if part))

    def _paint(self, mark: Mark, text: str) -> str:
        palette = self._screen.palette
        paint = {"call": palette.accent, "good": palette.good, "bad": palette.bad, "error": palette.bad}
        return paint.get(mark, palette.warning)(text)

    def _show_inside(self, event: BaseEvent) -> None:
        """The inside of a sub-agent is told by its whole messages and by its lines."""
        if isinstance(event, ev.MessageStopEvent):
            for part in sanitize(event.text).splitlines():
                self._paper.line("  " + self._screen.palette.dim(part))
        else:
            self._say(line_of(event), "  ")

    # -- what comes in fragments

    def _message_start(self, _: BaseEvent) -> None:
        if self._wrote_message:
            self._paper.out("\n")

    def _text(self, event: ev.TextDeltaEvent) -> None:
        self._wrote_message = True
        self._paper.out(event.delta)

    def _message_stop(self, _: BaseEvent) -> None:
        self._paper.close_out()

    def _thinking(self, event: ev.ThinkingDeltaEvent) -> None:
        text = sanitize(event.delta)
        body, end = (text[:-1], "\n") if text.endswith("\n") else (text, "")
        self._paper.err(self._screen.palette.dim(body) + end)

    def _thinking_stop(self, _: BaseEvent) -> None:
        self._paper.close_err()

    # -- commands, and the mux's own notes

    def _tool(self, event: ev.ToolCallReadyEvent) -> None:
        self._shell_failed = False
        self._say(line_of(event))

    def _tool_error(self, event: ev.ToolErrorEvent) -> None:
        if not self._shell_failed:  # else the command's output and its exit have said it
            self._say(line_of(event))
        self._shell_failed = False

    def _shell_output(self, event: ev.ShellStdoutDeltaEvent | ev.ShellStderrDeltaEvent) -> None:
        for line in self._shell.feed(event.delta):
            self._paper.line(line)

    def _shell_exit(self, event: ev.ShellExitEvent) -> None:
        for line in self._shell.finish():
            self._paper.line(line)
        if event.exit_code != 0:
            self._shell_failed = True
            self._say(Line("bad", f"exit code {event.exit_code}", f"after {duration(event.duration_ms)}"))

    def _debug(self, event: ev.DebugEvent) -> None:
        if event.level == "warn" or self._screen.verbose:
            self._say(line_of(event))
