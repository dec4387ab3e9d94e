"""The results of tool calls: `{content: blocks, details}`, the output of commands, and numbered diffs."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from agent_mux.sdk import facts
from agent_mux.sdk.streamed_text import missing_text
from agent_mux.sdk.unified_diff import with_header
from agent_mux_adapters._dialects.pi.flavor import Flavor, ShellResult
from agent_mux_adapters._dialects.tolerant import mapping, rows, text

BACKGROUND_EXIT_CODE = -1
"""For a foreground command that the agent moved to the background: the call ends without an exit of the command."""
PROBE = 256
"""Characters of the previous output to search for when the agent shows only the end of a long output."""
INCOMPLETE_OUTPUT = "the agent does not show all of this command's output"
GAP = "[... {} not shown by the agent ...]"
"""In place of output between two windows, on a line of its own."""
_LINE = re.compile(r"([ +-]) *(\d{1,9})[ |](.*)", re.DOTALL)


class PiToolResult(msgspec.Struct, frozen=True, kw_only=True):
    """A tool's result, partial or final."""

    call_id: str
    content: list[Mapping[str, Any]]
    details: Mapping[str, Any]
    failed: bool

    @property
    def shown(self) -> str:
        """The text that the model sees."""
        return "\n".join(text(block.get("text")) for block in self.content if block.get("type") == "text")

    @property
    def output(self) -> Any:
        """The output for the fact: a string if all blocks are text, else the blocks without the bytes of images."""
        if all(block.get("type") == "text" for block in self.content):
            return self.shown
        return [{key: value for key, value in block.items() if key != "data"} for block in self.content]

    @property
    def error(self) -> str:
        """The error for the fact, never empty."""
        return self.shown or "the tool failed without a message"


def read_result(call_id: str, result: Any, *, failed: bool) -> PiToolResult:
    """Read the `result` or `partialResult` of a line."""
    fields = mapping(result)
    return PiToolResult(
        call_id=call_id, content=rows(fields.get("content")), details=mapping(fields.get("details")), failed=failed
    )


def image_facts(result: PiToolResult) -> tuple[facts.Fact, ...]:
    """Return the images in a result."""
    return tuple(
        facts.ImageProduced(text(block.get("mimeType")) or "image/png", base64=text(block.get("data")))
        for block in result.content
        if block.get("type") == "image" and text(block.get("data"))
    )


def file_written(path: str, content: str, details: Mapping[str, Any]) -> facts.FileWritten:
    """Return the effect of a tool that wrote a file. Without our extension it is unknown whether the file existed."""
    return facts.FileWritten(path, len(content.encode("utf-8", "replace")), details.get("existedBefore") is False)


class PiShellOutput:
    """The output of one command. The agent repeats all of it, or only its end; only new output is emitted."""

    def __init__(self) -> None:
        self._emitted_bytes = 0
        """Bytes of output so far, including those that the agent counted and did not show."""
        self._last_shown = ""
        """The output that the agent showed last."""
        self.has_gaps = False

    def new_output(self, printed: ShellResult) -> str:
        """Return what was added since the last call."""
        if printed.stdout == self._last_shown:
            return ""
        new = self._new_by_count(printed) if printed.total_bytes is not None else self._new_by_text(printed.stdout)
        self._last_shown = printed.stdout
        return new

    def _new_by_count(self, printed: ShellResult) -> str:
        data = printed.stdout.encode("utf-8", "replace")
        new = (printed.total_bytes or 0) - self._emitted_bytes
        if new <= 0:
            return ""
        self._emitted_bytes += new
        added = data[-new:].decode("utf-8", "replace")
        return self._after_gap(added, f"{new - len(data)} bytes") if new > len(data) else added

    def _new_by_text(self, shown: str) -> str:
        new = missing_text(shown, self._last_shown)
        if new is None:
            probe = self._last_shown[-PROBE:]
            at = shown.rfind(probe)
            if at < 0:
                self._emitted_bytes += len(shown.encode("utf-8", "replace"))
                return self._after_gap(shown, "output")
            new = shown[at + len(probe) :]
        self._emitted_bytes += len(new.encode("utf-8", "replace"))
        return new

    def _after_gap(self, added: str, missing: str) -> str:
        """Return the output with a mark in front, so that nobody takes it for the continuation."""
        self.has_gaps = True
        before = "\n" if self._last_shown and not self._last_shown.endswith("\n") else ""
        return f"{before}{GAP.format(missing)}\n{added}"


def shell_done(name: str, output: PiShellOutput, result: PiToolResult, flavor: Flavor) -> tuple[facts.Fact, ...]:
    """Return the end of a command: the rest of its output, and its exit."""
    printed = flavor.read_shell_result(result.shown, result.details, result.failed)
    rest = output.new_output(printed)
    before = (facts.ToolOutput(result.call_id, rest),) if rest else ()
    gaps = (facts.Note(INCOMPLETE_OUTPUT),) if output.has_gaps or printed.is_cut else ()
    done = facts.ToolDone(
        result.call_id,
        output=None if result.failed else result.output,
        error=result.error if result.failed else None,
        duration_ms=printed.duration_ms,
        exit_code=BACKGROUND_EXIT_CODE if printed.is_background else printed.exit_code,
        name=name,
    )
    return *gaps, *before, done


# -- numbered diffs


def from_numbered(path: str, diff: str) -> str:
    """Convert a diff with a number in each line (` 1 alpha`, `-2 beta`, `+2 gamma`) to a unified diff with hunks.

    Removed and unchanged lines have their old number, added lines their new one; `...` stands for omitted lines.
    Returns an empty string when no line is understood.
    """
    lines: list[str] = []
    shift = 0
    for hunk in _hunks(diff):
        lines += _unified(hunk, shift)
        shift += sum({"+": 1, "-": -1}.get(sign, 0) for sign, _, _ in hunk)
    return with_header(path, lines)


def _hunks(diff: str) -> Iterator[list[tuple[str, int, str]]]:
    hunk: list[tuple[str, int, str]] = []
    for line in diff.split("\n"):
        match = _LINE.fullmatch(line)
        if match is not None:
            hunk.append((match[1], int(match[2]), match[3]))
        elif hunk:
            yield hunk
            hunk = []
    if hunk:
        yield hunk


def _unified(hunk: list[tuple[str, int, str]], shift: int) -> list[str]:
    """Return a hunk with its head. `shift`: lines that earlier hunks added, minus those that they removed."""
    old = [number for sign, number, _ in hunk if sign != "+"]
    new = [number for sign, number, _ in hunk if sign == "+"]
    new_count = len(new) + sum(sign == " " for sign, _, _ in hunk)
    # A hunk without old lines is an insertion: the new lines determine its position.
    first_old = old[0] if old else new[0] - shift - 1
    first_new = (old[0] + shift if old else new[0]) - (not new_count)
    return [
        f"@@ -{first_old},{len(old)} +{first_new},{new_count} @@",
        *(f"{sign}{content}" for sign, _, content in hunk),
    ]
