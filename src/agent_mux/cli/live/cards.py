"""Draw cards as lines for a terminal: a mark and a title, and below it what the card contains, folded.

Everything that an agent printed is sanitized here.
"""

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import Any

from agent_mux._util.sanitize import reveal, sanitize
from agent_mux.api.event_lines import (
    LONGEST_INPUT,
    count,
    diff_size,
    duration,
    failure_reason,
    reason_of_denial,
    short_input,
)
from agent_mux.api.task_lists import Task, TaskState, read_task_list
from agent_mux.cli.layout import (
    Symbols,
    break_lines,
    cell_width,
    clean_line,
    cut,
    fold,
    fold_lines,
    split_columns,
    wrap,
)
from agent_mux.cli.terminal import Palette, one_line
from agent_mux.views import FileChange, SubagentCard, ThinkingCard, ToolCard

OUTPUT_HEAD, OUTPUT_TAIL = 6, 6  # lines of the output of a tool
FAILED_HEAD, FAILED_TAIL = 3, 14  # the end of the output of a failed one has the cause
DIFF_LINES = 40
DIFF_ROWS = 4  # of one changed line
PREVIEW_LINES = 8  # of a new file
TITLE_ROWS = 4
REASON_LINES = 12
THINKING_LINES = 4
TASK_LINES = 20
SLOW = 1000  # milliseconds from which the duration of a successful command is shown
_HUNK = re.compile(r"@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@")
_SHELLS = frozenset({"sh", "bash", "zsh"})
_BOXES: Mapping[TaskState, str] = {"pending": "[ ]", "in_progress": "[>]", "completed": "[x]", "cancelled": "[-]"}
_CONTENTS = ("content", "contents", "file_text", "text")
_PATHS = ("file_path", "path", "notebook_path", "filePath", "filename")


def _inner_command(command: str) -> str:
    """Return the script of `bash -lc SCRIPT`, which some agents put around every command; else the command."""
    try:
        words = shlex.split(command)
    except ValueError:  # an unclosed quotation
        return command
    is_shell = len(words) == 3 and PurePath(words[0]).name in _SHELLS and words[1] in {"-c", "-lc"}
    return words[2] if is_shell else command


def _whole_rows(line: str, width: int) -> list[str]:
    """Break a line between words. A line of one repeated character is a rule, and is cut."""
    return [line[:width]] if len(set(line)) == 1 else break_lines(line, width)


def _changed_lines(diff: str) -> list[str]:
    """Return the added and removed lines of a diff, each behind its sign."""
    lines = diff.removesuffix("\n").split("\n")
    return [line for line in lines if line.startswith(("+", "-")) and not line.startswith(("+++ ", "--- "))]


def _written_text(given: Any, file: FileChange) -> str:
    """Return the content of a file that a call created or wrote, from the call's input; empty if it has none."""
    if not isinstance(given, Mapping) or file.action not in {"created", "wrote"}:
        return ""
    for name in _CONTENTS:
        if isinstance(given.get(name), str):
            return str(given[name])
    listed = [item for value in given.values() if isinstance(value, list) for item in value]
    for item in listed:  # one of several files; its "diff" against nothing may be the content alone
        if isinstance(item, Mapping) and any(item.get(name) == file.path for name in _PATHS):
            text = next((item[name] for name in (*_CONTENTS, "diff") if isinstance(item.get(name), str)), "")
            return "" if text.startswith(("--- ", "@@ ")) else str(text)
    return ""


class CardPainter:
    """Draws the cards of one run."""

    def __init__(self, palette: Palette, symbols: Symbols, root: str | None) -> None:
        self.palette = palette
        self.symbols = symbols
        self._root = root

    # -- tool calls

    def title(self, card: ToolCard, width: int) -> list[str]:
        """Return the mark, the name of the tool, and what it works on."""
        name = f"{card.server}.{card.tool_name}" if card.server else card.tool_name
        name = one_line(name, 60)
        subject = self.subject(card)
        figures = self._changed(card)
        if subject.startswith("{"):  # the input as JSON: its beginning is enough to recognize the call
            subject = cut(subject, max(width - len(name) - 4, 16), self.symbols.more)
        rows = [row for line in subject.split("\n") for row in break_lines(line, max(width - 4, 16))] if subject else []
        if rows and cell_width(rows[0]) + cell_width(name) + 3 > width:
            narrow = max(width - cell_width(name) - 3, 16)
            rows = [row for line in subject.split("\n") for row in break_lines(line, narrow)]
        shown = rows[:TITLE_ROWS]
        if len(rows) > TITLE_ROWS:
            shown[-1] = cut(shown[-1], max(width - 12, 16), "") + f" {self.symbols.more} {len(rows) - TITLE_ROWS} more"
        first = f"{self.mark(card)} {self.palette.bold(name)}"
        if shown:
            first += f" {shown[0]}"
        return [first + figures, *("    " + row for row in shown[1:])]

    def mark(self, card: ToolCard | SubagentCard) -> str:
        """Return the mark of a card in the colour of its state."""
        paint = {
            "succeeded": self.palette.good, "failed": self.palette.bad, "denied": self.palette.bad,
            "waiting": self.palette.warning,
        }.get(card.state, self.palette.accent)  # fmt: skip
        return paint(self.symbols.call)

    def subject(self, card: ToolCard) -> str:
        """Return what the tool works on: a command, a relative path, or the most informative part of the input."""
        if card.command is not None:
            return reveal(_inner_command(card.command)).strip()
        given = card.input if isinstance(card.input, Mapping) else {}
        for field in _PATHS:
            if isinstance(given.get(field), str):
                return one_line(self.relative(given[field]), LONGEST_INPUT)
        if isinstance(given.get("command"), str):
            return reveal(given["command"]).strip()
        text = "" if card.input is None else short_input(card.input, LONGEST_INPUT)
        if card.files and (not text or text.startswith("{")):
            path = one_line(self.relative(card.files[0].path), LONGEST_INPUT)
            return path if len(card.files) == 1 else count(len(card.files) + card.omitted_files, "file")
        return text

    def relative(self, path: str) -> str:
        """Return a path relative to the directory of the run, if it is inside."""
        if self._root is None or not path.startswith("/"):
            return path
        try:
            return str(PurePath(path).relative_to(self._root))
        except ValueError:
            return path

    def _changed(self, card: ToolCard) -> str:
        """Return the numbers of changed lines, for the title of a call that changed the file of its title."""
        diffs = [file.diff for file in card.files if file.diff is not None]
        if len(diffs) != 1 or len(card.files) != 1:
            return ""
        return " " + self.palette.dim(diff_size(diffs[0]))

    def body(self, card: ToolCard, width: int, asked_diff: str | None = None) -> list[str]:
        """Return what is below the title of a call that ended, without the diff that its approval showed."""
        tasks = read_task_list(card.input) if card.state == "succeeded" else ()
        if tasks:  # the result repeats them
            return list(self._tasks(tasks, width))
        return [*self._files(card, width, asked_diff), *self._output(card, width), *self._outcome(card, width)]

    def _tasks(self, tasks: Sequence[Task], width: int) -> Iterator[str]:
        lines = [f"{_BOXES[task.state]} {one_line(task.text, LONGEST_INPUT)}" for task in tasks]
        for row in fold_lines(lines, TASK_LINES, 0).rows(self.symbols.more):
            is_current = row.startswith(_BOXES["in_progress"])
            text = cut(row, width - 4)
            yield self._bar(self.palette.bold(text) if is_current else self.palette.dim(text))

    def _files(self, card: ToolCard, width: int, asked_diff: str | None) -> Iterator[str]:
        for file in card.files:
            yield from self.file_rows(card, file, width, asked_diff)
        if card.omitted_files:
            yield self._bar(self.palette.dim(f"{self.symbols.more} {count(card.omitted_files, 'more file')}"))

    def file_rows(self, card: ToolCard, file: FileChange, width: int, asked_diff: str | None = None) -> list[str]:
        """Return what a call did with a file, with its diff unless it was asked for; nothing for a file that it read.

        `asked_diff` is the diff that the prompt for the call's approval showed.
        """
        if file.action == "read":
            return []
        path, subject = one_line(self.relative(file.path), max(width - 24, 16)), self.subject(card)
        rows = []
        is_shown = asked_diff is not None and _changed_lines(asked_diff) == self._lines_of(card, file)
        if is_shown or path != subject or file.action in {"created", "deleted"}:
            size = f" {count(file.byte_count, 'byte')}" if file.byte_count is not None else ""
            changes = f" {diff_size(file.diff)}" if file.diff is not None and (is_shown or len(card.files) > 1) else ""
            name = "" if path == subject else f" {path}"
            rows.append(self._bar(self.palette.dim(f"{file.action}{name}{size}{changes}")))
        if is_shown:
            return rows
        return [*rows, *(self._diff(file, width) if file.diff else self._preview(card, file, width))]

    def _lines_of(self, card: ToolCard, file: FileChange) -> list[str]:
        """Return the changed lines of a file, each behind its sign."""
        if file.diff is not None:
            return _changed_lines(file.diff)
        return [f"+{line}" for line in _written_text(card.input, file).removesuffix("\n").split("\n")]

    def _preview(self, card: ToolCard, file: FileChange, width: int) -> Iterator[str]:
        """Yield the beginning of a file that the call wrote, from its input."""
        text = _written_text(card.input, file)
        if not text:
            return
        folded = fold_lines(reveal(text).removesuffix("\n").split("\n"), PREVIEW_LINES, 0)
        for row in folded.first:
            yield self._bar(self.palette.good(cut(f"+ {row}", width - 4)))
        if folded.hidden:
            yield self._bar(self.palette.dim(f"{self.symbols.more} {count(folded.hidden, 'more line')}"))

    def _diff(self, file: FileChange, width: int) -> Iterator[str]:
        lines = list(self._diff_rows(file.diff or "", width))
        yield from lines[:DIFF_LINES]
        if len(lines) > DIFF_LINES:
            yield self._bar(self.palette.dim(f"{self.symbols.more} {count(len(lines) - DIFF_LINES, 'more line')}"))

    def _diff_rows(self, diff: str, width: int) -> Iterator[str]:
        """Yield the lines of the hunks with their numbers in the file."""
        old = new = 0
        is_first = True
        for line in reveal(diff).removesuffix("\n").split("\n"):
            if line.startswith(("--- ", "+++ ", "diff ", "index ", "\\")) and not (old or new):
                continue
            hunk = _HUNK.match(line)
            if hunk:
                if not is_first:
                    yield self._bar(self.palette.dim(self.symbols.more))
                old, new, is_first = int(hunk[1]), int(hunk[2]), False
                continue
            sign, text = line[:1], line[1:].expandtabs(4)
            number = old if sign == "-" else new
            paint = {"+": self.palette.good, "-": self.palette.bad}.get(sign, self.palette.dim)
            lead = f"{number:>4} {sign or ' '} "
            room = max(width - 4 - len(lead), 16)
            parts = split_columns(text, room) if sign in {"+", "-"} else [cut(text, room)]  # a change may be at the end
            if len(parts) > DIFF_ROWS:
                parts = [*parts[: DIFF_ROWS - 1], cut(text[sum(map(len, parts[: DIFF_ROWS - 1])) :], room)]
            for position, part in enumerate(parts):
                yield self._bar(paint((lead if position == 0 else " " * len(lead)) + part))
            old += sign != "+"
            new += sign != "-"

    def _output(self, card: ToolCard, width: int) -> Iterator[str]:
        is_file_call = bool(card.files) and card.command is None
        if is_file_call and card.state == "succeeded":
            if all(file.action == "read" for file in card.files) and card.output:
                lines = fold(card.output, 0, 0).hidden or str(card.output).count("\n") + 1
                yield self._bar(self.palette.dim(count(lines, "line")))
            return
        head, tail = (FAILED_HEAD, FAILED_TAIL) if card.state == "failed" else (OUTPUT_HEAD, OUTPUT_TAIL)
        folded = fold(card.output, head, tail)
        rows = list(folded.rows(self.symbols.more))
        while rows and not rows[-1]:
            rows.pop()
        whole = [] if folded.hidden else [part for row in rows for part in _whole_rows(row, width - 4)]
        if len(whole) > head + tail + 1 or folded.hidden:
            whole = [cut(row, width - 4) for row in rows]
        for row in whole:
            yield self._bar(self.palette.dim(row))

    def _outcome(self, card: ToolCard, width: int) -> Iterator[str]:
        """Yield how the call ended, with the reason of a failure that its output does not show."""
        took = f" {self.symbols.dot} {duration(card.duration_ms)}" if card.duration_ms else ""
        if card.decision == "denied":
            reason = reason_of_denial(card.denial_reason or card.error)
            yield from self._end("denied" + (f": {reason}" if reason else ""), width)
            return
        if card.state == "failed":
            reason = failure_reason(card.error or "", str(card.output))
            code = "" if card.exit_code is None else f"exit code {card.exit_code}"
            if code and reason:
                yield from self._end(f"{reason} ({code}{took})", width)
            else:
                yield from self._end(f"{code}{took}" if code else reason or "failed", width)
        elif card.command is not None and (card.duration_ms or 0) >= SLOW:
            yield f"  {self.palette.dim(self.symbols.corner + took.removeprefix(f' {self.symbols.dot}'))}"

    def _end(self, text: str, width: int) -> Iterator[str]:
        lines = sanitize(text).split("\n")
        rows = [
            row for line in fold_lines(lines, REASON_LINES, 4).rows(self.symbols.more) for row in wrap(line, width - 4)
        ]
        for position, row in enumerate(rows):
            lead = self.symbols.corner if position == 0 else " "
            yield f"  {self.palette.bad(lead)} {self.palette.bad(row)}"

    def _bar(self, text: str) -> str:
        return f"  {self.palette.dim(self.symbols.bar)} {text}".rstrip()

    # -- other cards

    def thinking(self, card: ThinkingCard, width: int) -> list[str]:
        """Return the beginning of a thinking block."""
        lines = sanitize(str(card.text)).strip().split("\n")
        rows = [row for line in lines for row in wrap(line, width - 2)]
        folded = list(fold_lines(rows, THINKING_LINES, 0).rows(self.symbols.more))
        if not any(folded):
            return []
        return [
            self.palette.dim(f"{self.symbols.thought if position == 0 else ' '} {row}")
            for position, row in enumerate(folded)
        ]

    def subagent_title(self, card: SubagentCard, width: int) -> list[str]:
        """Return the mark, the name and the task of a sub-agent."""
        name = one_line(f"sub-agent {card.agent_name}", 60)
        task = one_line(card.prompt, LONGEST_INPUT)
        return [f"{self.mark(card)} {self.palette.bold(name)} {cut(task, max(width - len(name) - 3, 16))}".rstrip()]

    def subagent_body(self, card: SubagentCard, width: int) -> list[str]:
        """Return how a sub-agent ended, and its report."""
        if card.state == "failed":
            return list(self._end(card.error or "failed", width))
        report = [row for line in sanitize(card.summary or "").strip().split("\n") for row in wrap(line, width - 4)]
        calls = [f"{count(card.tool_calls, 'tool call')}"] if card.tool_calls else []
        rows = [*calls, *fold_lines(report, OUTPUT_HEAD, 0).rows(self.symbols.more)]
        return [self._bar(self.palette.dim(row)) for row in rows]

    # -- the footer

    def activity(self, card: Any, width: int) -> str:
        """Return one line about an open card."""
        match card:
            case ToolCard():
                name = f"{card.server}.{card.tool_name}" if card.server else card.tool_name
                text = f"{one_line(name, 60)} {one_line(self.subject(card), LONGEST_INPUT)}".rstrip()
                if card.state == "waiting":
                    text = f"waiting for approval: {text}"
            case SubagentCard():
                calls = f" ({count(card.tool_calls, 'tool call')})" if card.tool_calls else ""
                text = f"sub-agent {one_line(card.agent_name, 60)}{calls}: {one_line(card.prompt, LONGEST_INPUT)}"
            case ThinkingCard():
                text = "thinking"
            case _:
                text = "writing"
        return cut(text, width)

    def last_output(self, card: ToolCard, width: int, lines: int) -> list[str]:
        """Return the last lines of a running command."""
        text = (card.output.head + card.output.tail if not card.output.omitted else card.output.tail).rstrip("\n")
        rows = [clean_line(line) for line in text[-8000:].split("\n")[-lines:]] if text else []
        return [self._bar(self.palette.dim(cut(row, width - 5))) for row in rows]
