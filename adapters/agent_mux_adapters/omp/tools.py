"""What the tools of omp are to us. Source: its `src/tools/*.ts` and `src/edit`, 18.2.3."""

import re
from collections.abc import Collection, Mapping
from typing import Any

from agent_mux.facts import FileDeleted, FileEffect, FilePatched, FileRead, FileWritten, Shell
from agent_mux_adapters._dialects.pi.flavor import Effects, Printed
from agent_mux_adapters._dialects.pi.numbered import from_numbered
from agent_mux_adapters._dialects.pi.results import written
from agent_mux_adapters._dialects.tolerant import mapping, optional_whole, rows, text
from agent_mux_adapters._dialects.unified_diff import from_texts

SHELL = "bash"
DELEGATING = frozenset({"task"})
MCP_PREFIX = "mcp__"
_NO_WORD = re.compile(r"[^a-z0-9]+")
NOTHING_PRINTED = "(no output)"
_WALL_TIME = "\n\nWall time: "
_STATUS = re.compile(
    r"(?:\n\n)?\[?Command (?:aborted|cancelled|timed out[^\n]{0,80}|exited with code (?P<code>\d{1,10}))\]?\n?\Z"
)
"""How the text of a command ends that came to no good end. Without it, a failed command never ran."""
_LONGEST_STATUS = 160  # characters, and some to spare: all of a long output is not searched for it


def split_mcp_name(name: str, servers: Collection[str] = ()) -> tuple[str, str] | None:
    """`mcp__server_tool` as (server, tool); None when it is no tool of an MCP server.

    In the name, the server's has lost its capitals and dashes. Of a server that we do not know, the name is taken to
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


def shell_of(name: str, arguments: Mapping[str, Any]) -> Shell | None:
    """The command of a foreground call. A background command's exit is not the call's: it has no projection."""
    command = text(arguments.get("command"))
    if name != SHELL or not command or arguments.get("async") is True:
        return None
    return Shell(command, text(arguments.get("cwd")) or None)


def printed(shown: str, details: Mapping[str, Any], failed: bool) -> Printed:
    """A command's result, partial or final."""
    if details.get("async"):
        return Printed("", runs_on=True)
    duration = optional_whole(details.get("wallTimeMs"))
    is_cut = bool(mapping(mapping(details.get("meta")).get("truncation")))
    stdout, timed, _ = shown.rpartition(_WALL_TIME)
    if timed:
        code = optional_whole(details.get("exitCode"))
        return Printed(_output(stdout), is_cut=is_cut, exit_code=code, duration_ms=duration)
    status = _STATUS.search(shown, max(len(shown) - _LONGEST_STATUS, 0))
    code = int(status["code"]) if status is not None and status["code"] is not None else None
    if status is not None:
        return Printed(shown[: status.start()], exit_code=code, duration_ms=duration)
    return Printed("" if failed else _output(shown), is_cut=is_cut, duration_ms=duration)


def _output(shown: str) -> str:
    return "" if shown == NOTHING_PRINTED else shown


def _read(_: Mapping[str, Any], details: Mapping[str, Any]) -> tuple[FileEffect, ...]:
    # It also reads folders, archives and URLs, and parts of files: what it was is told by the result.
    source = mapping(mapping(details.get("meta")).get("source"))
    path = text(source.get("value")) if source.get("type") == "path" and not details.get("isDirectory") else ""
    return (FileRead(path),) if path else ()


def _written(arguments: Mapping[str, Any], details: Mapping[str, Any]) -> tuple[FileEffect, ...]:
    # Writing to a device (`xd://`) resolves to no path.
    path, content = text(details.get("resolvedPath")), text(arguments.get("content"))
    return (written(path, content, details),) if path else ()


def _edited(_: Mapping[str, Any], details: Mapping[str, Any]) -> tuple[FileEffect, ...]:
    several = [one for one in rows(details.get("perFileResults")) if one.get("isError") is not True]
    return tuple(effect for one in (several or [details]) for effect in _effects_of(one))


def _effects_of(one: Mapping[str, Any]) -> tuple[FileEffect, ...]:
    """What became of one file: its texts before and after, unless they are too long; then a diff for people."""
    path, moved = text(one.get("path")), text(one.get("move"))
    old, new = one.get("oldText"), one.get("newText")
    if not path:
        return ()
    if one.get("op") == "delete":
        return (FileDeleted(path),)
    if one.get("op") == "create" and isinstance(new, str):
        return (FileWritten(path, len(new.encode("utf-8", "replace")), created=True),)
    known = isinstance(old, str) and isinstance(new, str)
    target = moved or path
    diff = from_texts(target, text(old), text(new)) if known else from_numbered(target, text(one.get("diff")))
    gone = text(one.get("sourcePath")) or (path if moved else "")
    before = (FileDeleted(gone),) if gone and gone != target else ()
    return (*before, *((FilePatched(target, diff),) if diff else ()))


EFFECTS: Mapping[str, Effects] = {"read": _read, "write": _written, "edit": _edited}
