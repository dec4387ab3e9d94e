"""Searches files as ripgrep does, and says what it finds in ripgrep's JSON lines: for where there is no ripgrep.

A program of its own, started by `grep_process`: an expression of a model may run forever, and a thread that runs one
cannot be stopped. One JSON object comes on standard input, see `main`. Exit codes: 0 well, 2 with the reason on
standard error.
"""

import base64
import json
import re
import resource
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agent_loop.workspace import Workspace

MAX_MEMORY = 1024 * 1024 * 1024
"""Bytes: an expression can be made to want any number of them."""


def main(request: dict[str, Any]) -> int:
    """Search `path` in the workspace `root` and its `readable` directories for `pattern`, files up to `max_bytes`."""
    from agent_loop.errors import WorkspaceError  # noqa: PLC0415  # not importable before the lines at the end

    try:
        _search(request, re.compile(request["pattern"], re.IGNORECASE if request["ignore_case"] else 0))
    except (re.error, OverflowError, RecursionError, MemoryError, WorkspaceError) as error:
        sys.stderr.write(f"{error or type(error).__name__}\n")
        return 2
    return 0


def _search(request: dict[str, Any], pattern: re.Pattern[str]) -> None:
    from agent_loop.workspace import Workspace  # noqa: PLC0415  # as above

    workspace = Workspace(request["root"], request["readable"])
    for path, name in _files(workspace, request["path"]):
        for message in _messages(name, _text(workspace, path, request["max_bytes"]), pattern):
            sys.stdout.write(json.dumps(message) + "\n")
        sys.stdout.flush()


def _files(workspace: "Workspace", path: str) -> Iterator[tuple[str | Path, str]]:
    """What to open, and its name below `path`."""
    start = workspace.stat(path)
    if start is None or start.kind != "directory":
        yield path, "<stdin>"
        return
    base = workspace.resolve(path)
    for entry in workspace.walk(path):
        below = "/".join(entry.parts[len(start.parts) :])
        yield base / below, f"./{below}"


def _text(workspace: "Workspace", path: str | Path, max_bytes: int) -> str | None:
    """None: it is not searched, since it is too large, no text, or not to be read."""
    from agent_loop.errors import WorkspaceError  # noqa: PLC0415  # as above

    try:
        data = workspace.read_bytes(path, max_bytes)
    except WorkspaceError:
        return None
    return None if b"\0" in data else data.decode("utf-8", "surrogateescape")


def _messages(name: str, text: str | None, pattern: re.Pattern[str]) -> Iterator[dict[str, Any]]:
    if text is None:
        return
    path = {"bytes": base64.b64encode(name.encode("utf-8", "surrogateescape")).decode()}
    lines = text.split("\n")
    for number, line in enumerate(lines[:-1] if lines[-1] == "" else lines, 1):
        if pattern.search(line):
            encoded = base64.b64encode(line.encode("utf-8", "surrogateescape")).decode()
            data = {"path": path, "lines": {"bytes": encoded}, "line_number": number}
            yield {"type": "match", "data": data}
    yield {"type": "end", "data": {"path": path, "binary_offset": None}}


if __name__ == "__main__":
    # Started with the paths of the standard library and of packages alone: where this package is may not be among them.
    sys.path.insert(0, str(Path(__file__).resolve().parents[3]))
    with suppress(ValueError, OSError):  # not every system has it
        resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY, MAX_MEMORY))
    sys.exit(main(json.loads(sys.stdin.buffer.read())))
