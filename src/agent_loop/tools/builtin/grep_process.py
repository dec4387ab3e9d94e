"""Running ripgrep, or our own worker, over one file or directory. No shell; the process never outlives the call.

Ripgrep is started in a directory that was opened without following links, and does not follow links itself. Between its
own looking and opening somebody could still put a link in the way, as with every program that is given paths.
"""

import json
import shutil
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import anyio
from anyio.abc import Process

from agent_loop.errors import ToolError
from agent_loop.tools.builtin.grep_matches import FileMatches, MatchReader
from agent_loop.workspace import Workspace

MAX_SEARCHED_BYTES = 10 * 1024 * 1024
"""Larger files are passed over."""
MAX_MESSAGE = 16 * 1024 * 1024
"""Bytes of one line of output: a line of a file, with all its matches."""
MAX_COMPLAINT = 2000
"""Bytes of what goes to standard error that are kept."""
# Ours decides what .gitignore leaves out (`IgnoreFiles`); ripgrep's own reading of it only saves time.
_RIPGREP = (
    "--json", "--no-config", "--no-messages", "--no-mmap", "--hidden", "--no-require-git", "--no-ignore-dot",
    "--no-ignore-exclude", "--no-ignore-global", "--no-ignore-parent", "--glob=!.git", "--encoding=none", "--sort=path",
    f"--max-filesize={MAX_SEARCHED_BYTES}",
)  # fmt: skip
_WORKER = Path(__file__).with_name("grep_worker.py")


@dataclass(frozen=True, slots=True)
class Search:
    """What to look for."""

    pattern: str
    path: str = "."
    """A file or a directory."""
    ignore_case: bool = False


def ripgrep() -> str | None:
    """Where ripgrep is. None: not on PATH."""
    return shutil.which("rg")


async def search_files(
    running: AbstractAsyncContextManager[Process],
    given: bytes,
    reader: MatchReader,
    take: Callable[[FileMatches], bool],
) -> None:
    """Give `take` each file with matches, until it returns False or there are no more.

    `given` goes to standard input. The process is killed when this is cancelled. Raises `ToolError` for an expression
    that is none, and for a process that died.
    """
    complaint = bytearray()
    async with running as process:
        async with anyio.create_task_group() as group, aclosing(_lines(process)) as lines:
            group.start_soon(_feed, process, given)
            group.start_soon(_listen, process, complaint)
            async for line in lines:
                found = reader.receive(line)
                if found is not None and not take(found):
                    group.cancel_scope.cancel()
                    return
        code = await process.wait()
    if code < 0 or (code and complaint):
        said = complaint.decode("utf-8", "replace").strip() or f"its process was ended by signal {-code}"
        raise ToolError(f"the search failed: {said}")


def running_ripgrep(program: str, search: Search, directory: int, path: Path) -> AbstractAsyncContextManager[Process]:
    """Ripgrep in an open directory, which must stay open until it runs. `path`: of the directory."""
    # The descriptor leads to the directory itself, whatever is at its path by now. There is no such way on macOS.
    opened = Path(f"/proc/self/fd/{directory}")
    return _running([program, *_options(search), "."], opened if opened.exists() else path)


def running_ripgrep_on_text(program: str, search: Search) -> AbstractAsyncContextManager[Process]:
    """Ripgrep on what it is given."""
    return _running([program, *_options(search), "-"], None)


def running_worker() -> AbstractAsyncContextManager[Process]:
    """Our own worker; give it the request."""
    return _running([sys.executable, "-I", "-X", "utf8", str(_WORKER)], None)


def worker_request(search: Search, workspace: Workspace) -> bytes:
    """What the worker is given."""
    return json.dumps(
        {
            "root": str(workspace.root),
            "readable": [str(path) for path in workspace.readable],
            "path": search.path,
            "pattern": search.pattern,
            "ignore_case": search.ignore_case,
            "max_bytes": MAX_SEARCHED_BYTES,
        }
    ).encode()


def _options(search: Search) -> list[str]:
    return [*_RIPGREP, *(["--ignore-case"] if search.ignore_case else []), f"--regexp={search.pattern}"]


@asynccontextmanager
async def _running(command: Sequence[str], directory: Path | None) -> AsyncIterator[Process]:
    """A process, which is gone when the block is left. Nothing of our environment is its business."""
    with anyio.CancelScope(shield=True):  # a process that is being started must become known, or nobody ends it
        process = await anyio.open_process(command, cwd=directory, env={})
    try:
        yield process
    finally:
        with anyio.CancelScope(shield=True):
            if process.returncode is None:
                with suppress(ProcessLookupError):
                    process.kill()
            await process.aclose()


async def _feed(process: Process, given: bytes) -> None:
    """A process that ends without reading everything has its reason."""
    if process.stdin is not None:
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            async with process.stdin as stream:
                await stream.send(given)


async def _listen(process: Process, complaint: bytearray) -> None:
    if process.stderr is not None:
        async for chunk in process.stderr:
            complaint += chunk[: MAX_COMPLAINT - len(complaint)]


async def _lines(process: Process) -> AsyncGenerator[bytes, None]:
    """Lines of output; one that is longer than `MAX_MESSAGE` is passed over."""
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
