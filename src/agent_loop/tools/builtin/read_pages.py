"""Which lines of a file are shown, and what is said below them. Pure. Source: zidane, "Tool ergonomics defaults"."""

from dataclasses import dataclass

from agent_loop.errors import ToolError

SAMPLE = 64 * 1024
"""Bytes that are looked at to tell text from anything else."""
REPLACED_SHARE = 0.1
"""Of the characters; with more U+FFFD than that it is no text."""


@dataclass(frozen=True, slots=True)
class Page:
    """Some lines of a file."""

    lines: tuple[str, ...]
    first: int
    """Number of the first, from 1."""
    total: int
    """Lines in the file."""
    is_cut: bool = False
    """The only line is not shown to its end."""

    @property
    def last(self) -> int:
        """Number of the last line."""
        return self.first + len(self.lines) - 1


def is_binary(data: bytes) -> bool:
    """A NUL byte, or bytes that are no UTF-8 all over."""
    sample = data[:SAMPLE]
    if b"\0" in sample:
        return True
    text = sample.decode("utf-8", "replace")
    return text.count("\ufffd") > 1 + REPLACED_SHARE * len(text)


def lines_of(text: str) -> list[str]:
    """Lines without their ends: a line feed, or carriage return and line feed."""
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    return [line.removesuffix("\r") for line in lines]


def page_of(text: str, offset: int, limit: int, max_bytes: int) -> Page:
    """`limit` lines from line `offset`, and whole lines of up to `max_bytes` bytes; 0: no limit of that kind."""
    lines = lines_of(text)
    if offset > max(1, len(lines)):
        raise ToolError(f"offset={offset} is behind the end of the file, which has {len(lines)} lines")
    wanted = lines[offset - 1 : offset - 1 + limit if limit else None]
    if not max_bytes:
        return Page(tuple(wanted), offset, len(lines))
    fitting = _fitting(wanted, max_bytes)
    if wanted and not fitting:
        start = wanted[0].encode()[:max_bytes].decode("utf-8", "ignore")
        return Page((start,), offset, len(lines), is_cut=True)
    return Page(tuple(wanted[:fitting]), offset, len(lines))


def _fitting(lines: list[str], max_bytes: int) -> int:
    """How many lines at the beginning have at most this many bytes together, line ends included."""
    size = 0
    for count, line in enumerate(lines):
        size += len(line.encode()) + 1
        if size > max_bytes:
            return count
    return len(lines)


def rendered(page: Page, *, numbered: bool) -> str:
    """The lines, and how to see more."""
    numbers = range(page.first, page.first + len(page.lines))
    lines = [f"{number}\t{line}" for number, line in zip(numbers, page.lines, strict=True)] if numbered else page.lines
    return "\n".join((*lines, *_footer(page)))


def _footer(page: Page) -> list[str]:
    notes = []
    if not page.lines:
        return ["[the file is empty]"]
    if page.is_cut:
        notes.append(f"[line {page.last} is not shown to its end; re-read it with max_bytes=0, or search it with grep]")
    if page.last < page.total:
        notes.append(f"[lines {page.first}-{page.last} of {page.total}; re-read with offset={page.last + 1} to go on]")
    return ["", *notes] if notes else []
