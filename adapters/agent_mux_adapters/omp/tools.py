"""omp's tools: commands, MCP tools, how results are split, and effects on files (`src/tools`, `src/edit`, 18.2.3)."""

import re
from collections.abc import Collection, Mapping
from typing import Any

from agent_mux.sdk.facts import FileDeleted, FileEffect, FilePatched, FileRead, FileWritten, ShellInvocation
from agent_mux.sdk.unified_diff import from_texts
from agent_mux_adapters._dialects.pi.flavor import FileEffectsReader, ShellResult
from agent_mux_adapters._dialects.pi.tool_results import file_written, from_numbered
from agent_mux_adapters._dialects.tolerant import mapping, optional_whole, rows, text

SHELL = "bash"
DELEGATING = frozenset({"task"})
MCP_PREFIX = "mcp__"
_NO_WORD = re.compile(r"[^a-z0-9]+")
NOTHING_PRINTED = "(no output)"
_WALL_TIME = "\n\nWall time: "
_STATUS = re.compile(
    r"(?:\n\n)?\[?Command (?:aborted|cancelled|timed out[^\n]{0,80}|exited with code (?P<code>\d{1,10}))\]?\n?\Z"
)
"""The end of an unsuccessful command's text. Without it, a failed command did not run."""
_LONGEST_STATUS = 160  # characters to search at the end of the output, with a margin


def split_mcp_name(name: str, servers: Collection[str] = ()) -> tuple[str, str] | None:
    """Split `mcp__server_tool` into server and tool; return None for other tools.

    In the tool's name, the server's name is in lower case with underscores. For an unknown server, its name is taken to
    end at the first underscore.
    """
    if not name.startswith(MCP_PREFIX):
        return None
    rest = name[len(MCP_PREFIX) :]
    for server in sorted(servers, key=len, reverse=True):
        prefix = _NO_WORD.sub("_", server.lower()).strip("_") + "_"
        if rest.startswith(prefix) and len(rest) > len(prefix):
            return server, rest[len(prefix) :]
    server, separator, tool = rest.partition("_")
    return (server, tool) if separator and server and tool else None


def shell_of(name: str, arguments: Mapping[str, Any]) -> ShellInvocation | None:
    """Return the command of a foreground call; None for a background command, whose exit is not that of the call."""
    command = text(arguments.get("command"))
    if name != SHELL or not command or arguments.get("async") is True:
        return None
    return ShellInvocation(command, text(arguments.get("cwd")) or None)


def read_shell_result(shown: str, details: Mapping[str, Any], failed: bool) -> ShellResult:
    """Split the result of a command, partial or final."""
    if details.get("async"):
        return ShellResult("", is_background=True)
    duration = optional_whole(details.get("wallTimeMs"))
    is_cut = bool(mapping(mapping(details.get("meta")).get("truncation")))
    stdout, timed, _ = shown.rpartition(_WALL_TIME)
    if timed:
        code = optional_whole(details.get("exitCode"))
        return ShellResult(_output(stdout), is_cut=is_cut, exit_code=code, duration_ms=duration)
    status = _STATUS.search(shown, max(len(shown) - _LONGEST_STATUS, 0))
    code = int(status["code"]) if status is not None and status["code"] is not None else None
    if status is not None:
        return ShellResult(shown[: status.start()], exit_code=code, duration_ms=duration)
    return ShellResult("" if failed else _output(shown), is_cut=is_cut, duration_ms=duration)


def _output(shown: str) -> str:
    return "" if shown == NOTHING_PRINTED else shown


def _read(_: Mapping[str, Any], details: Mapping[str, Any]) -> tuple[FileEffect, ...]:
    # The tool also reads folders, archives, URLs and parts of files: the details show what it read.
    source = mapping(mapping(details.get("meta")).get("source"))
    path = text(source.get("value")) if source.get("type") == "path" and not details.get("isDirectory") else ""
    return (FileRead(path),) if path else ()


def _written(arguments: Mapping[str, Any], details: Mapping[str, Any]) -> tuple[FileEffect, ...]:
    # Writing to a device (`xd://`) has no resolved path.
    path, content = text(details.get("resolvedPath")), text(arguments.get("content"))
    return (file_written(path, content, details),) if path else ()


def _edited(_: Mapping[str, Any], details: Mapping[str, Any]) -> tuple[FileEffect, ...]:
    results = [entry for entry in rows(details.get("perFileResults")) if entry.get("isError") is not True]
    return tuple(effect for entry in (results or [details]) for effect in _effects_of(entry))


def _effects_of(entry: Mapping[str, Any]) -> tuple[FileEffect, ...]:
    """Return the effects on one file, from its texts before and after; for long files, from the diff for people."""
    path, moved = text(entry.get("path")), text(entry.get("move"))
    old, new = entry.get("oldText"), entry.get("newText")
    if not path:
        return ()
    if entry.get("op") == "delete":
        return (FileDeleted(path),)
    if entry.get("op") == "create" and isinstance(new, str):
        return (FileWritten(path, len(new.encode("utf-8", "replace")), created=True),)
    has_texts = isinstance(old, str) and isinstance(new, str)
    target = moved or path
    diff = from_texts(target, text(old), text(new)) if has_texts else from_numbered(target, text(entry.get("diff")))
    removed = text(entry.get("sourcePath")) or (path if moved else "")
    deleted = (FileDeleted(removed),) if removed and removed != target else ()
    return (*deleted, *((FilePatched(target, diff),) if diff else ()))


FILE_EFFECTS: Mapping[str, FileEffectsReader] = {"read": _read, "write": _written, "edit": _edited}
