"""A program that searches files and prints matches as ripgrep's JSON lines, for machines without ripgrep.

`grep_process` starts it as a separate process, because a regular expression of a model may run forever and a thread
cannot be stopped. It reads one JSON object from standard input, see `main`. Exit codes: 0 for success, 2 for an error
with the reason on standard error.
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
"""The memory limit of the process in bytes: a regular expression can be made to need any amount."""


def main(request: dict[str, Any]) -> int:
    """Search `path` in the workspace `root` and its `readable` directories for `pattern`, files up to `max_bytes`."""
    from agent_loop.errors import WorkspaceError  # noqa: PLC0415  # importable only after sys.path is extended below

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
        for message in _messages(name, _read_text(workspace, path, request["max_bytes"]), pattern):
            sys.stdout.write(json.dumps(message) + "\n")
        sys.stdout.flush()


def _files(workspace: "Workspace", path: str) -> Iterator[tuple[str | Path, str]]:
    """Yield the path of each file and its name below `path`."""
    start = workspace.stat(path)
    if start is None or start.kind != "directory":
        yield path, "<stdin>"
        return
    base = workspace.resolve(path)
    for entry in workspace.walk(path):
        below = "/".join(entry.parts[len(start.parts) :])
        yield base / below, f"./{below}"


def _read_text(workspace: "Workspace", path: str | Path, max_bytes: int) -> str | None:
    """Return the text of a file, None if it is too large, binary or not readable."""
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
    # The interpreter is isolated (-I), so sys.path may lack the directory that contains this package.
    sys.path.insert(0, str(Path(__file__).resolve().parents[3]))
    with suppress(ValueError, OSError):  # not supported by every system
        resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY, MAX_MEMORY))
    sys.exit(main(json.loads(sys.stdin.buffer.read())))
