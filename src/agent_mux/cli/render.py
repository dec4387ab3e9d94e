"""Events for a person: the answer on standard output, everything else on standard error. Run API, section 8.

A renderer only makes text; who writes it, and where the events come from (a run, a journal, a fixture), is not its
business. What comes from the agent is sanitized for standard error always, for standard output where it is a terminal.
"""

from collections.abc import Callable
from typing import Any

from agent_mux import events as ev
from agent_mux.cli.event_lines import Line, Mark, line_of
from agent_mux.cli.paper import Paper, Piece, Screen
from agent_mux.cli.phrases import duration
from agent_mux.cli.shell_view import ShellView
from agent_mux.cli.terminal import one_line, sanitize
from agent_mux.events import BaseEvent

_MARKS: dict[Mark, str] = {"call": "*", "good": "+", "bad": "x", "warning": "!", "question": "?", "note": ""}
_SHORTEST_REST = 20


class Renderer:
    """Turns events into pieces, in order."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._paper = Paper(screen)
        self._shell = ShellView(screen.palette, screen.width)
        self._wrote_message = False
        self._shell_failed = False

    def show(self, event: BaseEvent) -> list[Piece]:
        """The text for one event; often nothing."""
        inside = event.subagent_id is not None and event.type not in _DELEGATION
        shower = (_INSIDE if inside else _SHOWERS).get(event.type)
        if shower is not None:
            shower(self, event)
        elif event.type != "debug" or self._screen.verbose or event.level == "warn":  # type: ignore[attr-defined]
            self._say(line_of(event), "  " if inside else "")
        return self._paper.take()

    def note(self, line: Line) -> list[Piece]:
        """A line of the mux's own."""
        self._say(line)
        return self._paper.take()

    def finish(self) -> list[Piece]:
        """The stream is over: no line stays open."""
        self._paper.close_out()
        self._paper.close_err()
        return self._paper.take()

    def _say(self, line: Line | None, indent: str = "") -> None:
        if line is None:
            return
        mark = _MARKS[line.mark]
        lead = indent + (self._paint(line.mark, mark) + " " if mark else "")
        room = self._screen.width - len(indent) - len(mark) - 2
        text = one_line(line.text, room)
        rest = one_line(line.rest, max(room - len(text), _SHORTEST_REST))
        self._paper.line(lead + " ".join(part for part in (text, self._screen.palette.dim(rest)) if part))

    def _paint(self, mark: Mark, text: str) -> str:
        palette = self._screen.palette
        paint = {"call": palette.accent, "good": palette.good, "bad": palette.bad, "note": palette.dim}
        return paint.get(mark, palette.warning)(text)

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

    def _whole_message(self, event: ev.MessageStopEvent) -> None:
        for part in sanitize(event.text).splitlines():
            self._paper.line("  " + self._screen.palette.dim(part))

    def _nothing(self, _: BaseEvent) -> None:
        pass

    # -- commands

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


_DELEGATION = frozenset({"subagent_spawn", "subagent_result", "subagent_error"})
_Shower = Callable[[Renderer, Any], None]

_SHOWERS: dict[str, _Shower] = {
    "message_start": Renderer._message_start,  # noqa: SLF001  # its own methods
    "text_delta": Renderer._text,  # noqa: SLF001
    "message_stop": Renderer._message_stop,  # noqa: SLF001
    "thinking_delta": Renderer._thinking,  # noqa: SLF001
    "thinking_stop": Renderer._thinking_stop,  # noqa: SLF001
    "tool_call_ready": Renderer._tool,  # noqa: SLF001
    "tool_error": Renderer._tool_error,  # noqa: SLF001
    "shell_stdout_delta": Renderer._shell_output,  # noqa: SLF001
    "shell_stderr_delta": Renderer._shell_output,  # noqa: SLF001
    "shell_exit": Renderer._shell_exit,  # noqa: SLF001
}
# The inside of a sub-agent is told by its whole messages and by its lines.
_INSIDE: dict[str, _Shower] = {
    "message_stop": Renderer._whole_message,  # noqa: SLF001
    "shell_stdout_delta": Renderer._nothing,  # noqa: SLF001
    "shell_stderr_delta": Renderer._nothing,  # noqa: SLF001
}
