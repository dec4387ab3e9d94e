"""The output of a command, for a person: indented, line by line, and not too much of it."""

from agent_mux.cli.terminal import Palette, one_line

SHOWN_LINES = 12  # of one command: enough to see what happens, not enough to lose the answer
LONGEST_HELD = 4000  # characters of a line that is not complete yet


class ShellView:
    """One command at a time: the events do not say which command an output belongs to."""

    def __init__(self, palette: Palette, width: int) -> None:
        self._palette = palette
        self.width = width
        self._begun = ""
        self._shown = 0
        self._hidden = 0

    def feed(self, text: str) -> list[str]:
        """Take a chunk of output, give the lines to show."""
        *whole, self._begun = (self._begun + text).split("\n")
        if len(self._begun) > LONGEST_HELD:
            self._begun = self._begun[:LONGEST_HELD]  # more would not be shown
        return [line for part in whole for line in self._show(part)]

    def finish(self) -> list[str]:
        """The command ended: its last line, and how much was left out."""
        lines = self._show(self._begun) if self._begun else []
        if self._hidden:
            lines.append(self._palette.dim(f"  | ... {self._hidden} more lines"))
        self._begun, self._shown, self._hidden = "", 0, 0
        return lines

    def _show(self, line: str) -> list[str]:
        if self._shown >= SHOWN_LINES:
            self._hidden += 1
            return []
        self._shown += 1
        return [self._palette.dim(f"  | {one_line(line, self.width - 4)}")]
