"""Run ripgrep or the worker `grep_worker` over a file or directory, and parse the matches from their JSON lines.

No shell is involved, and the process never outlives the call. Ripgrep is started in a directory that was opened without
following links, and does not follow links itself. A link that is created between its check and its open can still
mislead it, as any program that receives paths.
"""

import base64
import json
import shutil
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import anyio
import msgspec
from anyio.abc import Process

from agent_loop.errors import ToolError
from agent_loop.workspace import Workspace

MAX_SEARCHED_BYTES = 10 * 1024 * 1024
"""The largest file that is searched; larger files are skipped."""
MAX_MESSAGE = 16 * 1024 * 1024
"""The longest line of output in bytes: one line of a file with all its matches."""
MAX_STDERR = 2000
"""The bytes of standard error that are kept."""
MAX_WIDTH = 500
"""The most characters of a matching line that are kept."""
# `IgnoreFiles` decides which files .gitignore ignores; ripgrep's own handling of .gitignore only saves time.
_RIPGREP = (
    "--json", "--no-config", "--no-messages", "--no-mmap", "--hidden", "--no-require-git", "--no-ignore-dot",
    "--no-ignore-exclude", "--no-ignore-global", "--no-ignore-parent", "--glob=!.git", "--encoding=none", "--sort=path",
    f"--max-filesize={MAX_SEARCHED_BYTES}",
)  # fmt: skip
_WORKER = Path(__file__).with_name("grep_worker.py")


@dataclass(frozen=True, slots=True)
class GrepQuery:
    """A search for a regular expression in a file or directory."""

    pattern: str
    path: str = "."
    ignore_case: bool = False


# -- matches


@dataclass(frozen=True, slots=True)
class MatchedLine:
    """One matching line of a file."""

    number: int
    """The line number, from 1."""
    text: str


@dataclass(slots=True)
class FileMatches:
    """The matching lines of one file."""

    name: str
    """The path below the searched directory."""
    count: int = 0
    lines: list[MatchedLine] = field(default_factory=list)
    """The first `MatchReader.keep` matching lines."""


class _Text(msgspec.Struct):
    """Text, or base64 if it is not UTF-8."""

    text: str | None = None
    bytes: str = ""

    def __str__(self) -> str:
        return base64.b64decode(self.bytes).decode("utf-8", "surrogateescape") if self.text is None else self.text


class _Data(msgspec.Struct):
    path: _Text = msgspec.field(default_factory=_Text)
    lines: _Text = msgspec.field(default_factory=_Text)
    line_number: int | None = None
    binary_offset: int | None = None


class _RipgrepMessage(msgspec.Struct):
    """A line of output. Other fields are not decoded, because one line of a file may have a million matches."""

    type: str
    data: _Data


_DECODER = msgspec.json.Decoder(_RipgrepMessage)


@dataclass(slots=True)
class MatchReader:
    """Parses the output line by line. A file is returned at its end message, and only if it is a text file."""

    keep: int
    """The matching lines that are kept of each file; all of them are counted."""
    includes: Callable[[str], bool]
    """Whether the search includes the file with this name."""
    current: FileMatches | None = None

    def receive(self, line: bytes) -> FileMatches | None:
        """Return the matches of a file once the file is complete. Lines that are not valid messages are ignored."""
        try:
            message = _DECODER.decode(line)
        except msgspec.DecodeError:
            return None
        if message.type == "match":
            self._add(message.data)
        return self._end(message.data) if message.type == "end" else None

    def _add(self, data: _Data) -> None:
        if self.current is None:
            self.current = FileMatches(str(data.path).removeprefix("./"))
        self.current.count += 1
        if len(self.current.lines) < self.keep:
            text = str(data.lines).removesuffix("\n").removesuffix("\r")
            cut = text if len(text) <= MAX_WIDTH else f"{text[:MAX_WIDTH]}..."
            self.current.lines.append(MatchedLine(data.line_number or 0, cut))

    def _end(self, data: _Data) -> FileMatches | None:
        found, self.current = self.current, None
        is_binary = data.binary_offset is not None
        return None if found is None or is_binary or not self.includes(found.name) else found


# -- processes


def find_ripgrep() -> str | None:
    """Return the path of ripgrep, None if it is not on PATH."""
    return shutil.which("rg")


def start_ripgrep(program: str, query: GrepQuery, directory: int, path: Path) -> AbstractAsyncContextManager[Process]:
    """Start ripgrep in an open directory, which must stay open until the process runs. `path` is its path."""
    # /proc/self/fd leads to the directory itself, even if its path was replaced. macOS has no equivalent.
    opened = Path(f"/proc/self/fd/{directory}")
    return _start([program, *_options(query), "."], opened if opened.exists() else path)


def start_ripgrep_on_input(program: str, query: GrepQuery) -> AbstractAsyncContextManager[Process]:
    """Start ripgrep on its standard input."""
    return _start([program, *_options(query), "-"], None)


def start_worker() -> AbstractAsyncContextManager[Process]:
    """Start the worker, which reads `worker_request` from its standard input."""
    return _start([sys.executable, "-I", "-X", "utf8", str(_WORKER)], None)


def worker_request(query: GrepQuery, workspace: Workspace) -> bytes:
    """Return the JSON request of a search for the worker."""
    return json.dumps(
        {
            "root": str(workspace.root),
            "readable": [str(path) for path in workspace.readable],
            "path": query.path,
            "pattern": query.pattern,
            "ignore_case": query.ignore_case,
            "max_bytes": MAX_SEARCHED_BYTES,
        }
    ).encode()


async def search_files(
    started: AbstractAsyncContextManager[Process],
    stdin: bytes,
    reader: MatchReader,
    on_file: Callable[[FileMatches], bool],
) -> None:
    """Call `on_file` with each file that has matches, until it returns False or the search ends.

    `stdin` is written to the standard input of the process. The process is killed on cancellation. Raises `ToolError`
    for an invalid regular expression and if the process dies.
    """
    stderr = bytearray()
    async with started as process:
        async with anyio.create_task_group() as group, aclosing(_read_lines(process)) as lines:
            group.start_soon(_write_stdin, process, stdin)
            group.start_soon(_read_stderr, process, stderr)
            async for line in lines:
                found = reader.receive(line)
                if found is not None and not on_file(found):
                    group.cancel_scope.cancel()
                    return
        code = await process.wait()
    if code < 0 or (code and stderr):
        reason = stderr.decode("utf-8", "replace").strip() or f"the process was ended by signal {-code}"
        advice = "; pattern is a regular expression: put a backslash before special characters" * (code > 0)
        raise ToolError(f"the search failed: {reason}{advice}")


def _options(query: GrepQuery) -> list[str]:
    return [*_RIPGREP, *(["--ignore-case"] if query.ignore_case else []), f"--regexp={query.pattern}"]


@asynccontextmanager
async def _start(command: Sequence[str], directory: Path | None) -> AsyncIterator[Process]:
    """Start a process with an empty environment; kill it at the end of the block if it still runs."""
    with anyio.CancelScope(shield=True):  # a cancelled start would leave a process that nothing ends
        process = await anyio.open_process(command, cwd=directory, env={})
    try:
        yield process
    finally:
        with anyio.CancelScope(shield=True):
            if process.returncode is None:
                with suppress(ProcessLookupError):
                    process.kill()
            await process.aclose()


async def _write_stdin(process: Process, data: bytes) -> None:
    """Write to standard input. Errors are ignored: a process that stops reading reports its own error."""
    if process.stdin is not None:
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            async with process.stdin as stream:
                await stream.send(data)


async def _read_stderr(process: Process, kept: bytearray) -> None:
    if process.stderr is not None:
        async for chunk in process.stderr:
            kept += chunk[: MAX_STDERR - len(kept)]


async def _read_lines(process: Process) -> AsyncGenerator[bytes, None]:
    """Yield the lines of output. A line longer than `MAX_MESSAGE` is skipped."""
    buffer, is_too_long = bytearray(), False
    if process.stdout is None:
        return
    async for chunk in process.stdout:
        *ends, rest = chunk.split(b"\n")
        for end in ends:
            if not is_too_long:
                yield bytes(buffer) + end
            buffer, is_too_long = bytearray(), False
        buffer += rest
        if len(buffer) > MAX_MESSAGE:
            buffer, is_too_long = bytearray(), True
