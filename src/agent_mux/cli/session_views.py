"""Stored sessions on a terminal: their events, and where two of them part."""

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

from agent_mux.cli.terminal import is_terminal, one_line, palette_for

if TYPE_CHECKING:
    from agent_mux.cli.views import View
    from agent_mux.events import AgentEvent
    from agent_mux.sessions.conversation import SessionMessage
    from agent_mux.sessions.difference import SessionDiff

LONGEST_LINE = 160  # characters of a message in a comparison


class EventPrinter:
    """Prints events as they come: JSON lines for programs, the same view as of a run for people."""

    def __init__(self, *, as_json: bool, compact: bool, no_color: bool) -> None:
        from agent_mux.cli.request import screen_for
        from agent_mux.cli.views import HumanView, JsonView

        self._view: View = JsonView(compact=compact) if as_json else HumanView(screen_for(no_color=no_color))

    def show(self, event: "AgentEvent") -> None:
        """One event."""
        for stream, text in self._view.show(event):
            out = sys.stderr if stream == "err" else sys.stdout
            out.write(text)
            out.flush()


def diff_lines(diff: "SessionDiff", *, no_color: bool) -> Iterator[str]:
    """What only one of them has, message by message."""
    palette = palette_for(sys.stdout, no_color=no_color)
    yield palette.bold(f"--- {diff.first.id}") + "\n" + palette.bold(f"+++ {diff.second.id}") + "\n"
    yield palette.dim(f"{diff.common} messages are the same at their beginning") + "\n"
    for change in diff.changes:
        yield palette.accent(f"@@ message {change.at} @@") + "\n"
        for message in change.removed:
            yield from (palette.bad(f"- {line}") + "\n" for line in _lines(message))
        for message in change.added:
            yield from (palette.good(f"+ {line}") + "\n" for line in _lines(message))


def _lines(message: "SessionMessage") -> Iterator[str]:
    width = LONGEST_LINE if is_terminal(sys.stdout) else 10 * LONGEST_LINE
    if message.text:
        yield f"{message.role}: {one_line(message.text, width)}"
    for tool in message.tools:
        yield f"{message.role} uses {one_line(f'{tool.name} {tool.input}', width)}"
