"""pi's tools: which run commands, how their results are split, and their effects on files (0.73.1 and 0.87.1)."""

import re
from collections.abc import Collection, Mapping
from typing import Any

from agent_mux.sdk.facts import FileEffect, FilePatched, FileRead, ShellInvocation
from agent_mux.sdk.unified_diff import from_replacements
from agent_mux_adapters._dialects.pi.flavor import FileEffectsReader, ShellResult
from agent_mux_adapters._dialects.pi.tool_results import file_written, from_numbered
from agent_mux_adapters._dialects.tolerant import mapping, optional_whole, rows, text

SHELLS = frozenset({"bash", "powershell"})
MCP_PREFIX = "mcp__"
NOTHING_PRINTED = "(no output)"
_NO_WORD = re.compile(r"[^A-Za-z0-9_]")
_STATUS = re.compile(
    r"(?:\n\n)?Command (?:exited with code (?P<code>\d{1,10})"
    r"|aborted|timed out after [\d.]{1,20} seconds|terminated without an exit code)\Z"
)
"""The end of a failed command's text. Without it, the command did not run: the call itself failed."""


def split_mcp_name(name: str, servers: Collection[str] = ()) -> tuple[str, str] | None:
    """Split `mcp__server__tool` into server and tool; return None for other tools.

    In the names of tools, other characters than letters, digits and `_` are `_`. For an unknown server, its name is
    taken to end at the first two underscores.
    """
    if not name.startswith(MCP_PREFIX):
        return None
    rest = name[len(MCP_PREFIX) :]
    for server in sorted(servers, key=len, reverse=True):
        prefix = _NO_WORD.sub("_", server) + "__"
        if rest.startswith(prefix) and len(rest) > len(prefix):
            return server, rest[len(prefix) :]
    server, separator, tool = rest.partition("__")
    return (server, tool) if separator and server and tool else None


def shell_of(name: str, arguments: Mapping[str, Any]) -> ShellInvocation | None:
    """Return the command of a shell call; None for other tools."""
    command = text(arguments.get("command"))
    return ShellInvocation(command) if name in SHELLS and command else None


def read_shell_result(shown: str, details: Mapping[str, Any], failed: bool) -> ShellResult:
    """Split the result of a command, partial or final."""
    status = _STATUS.search(shown) if failed else None
    code = int(status["code"]) if status is not None and status["code"] is not None else None
    truncation = mapping(details.get("truncation"))
    if truncation.get("truncated") is True:
        window = text(truncation.get("content"))
        return ShellResult(window, optional_whole(truncation.get("totalBytes")), is_cut=True, exit_code=code)
    if failed:
        return ShellResult(shown[: status.start()] if status is not None else "", exit_code=code)
    return ShellResult("" if shown == NOTHING_PRINTED else shown)


def _read(arguments: Mapping[str, Any], _: Mapping[str, Any]) -> tuple[FileEffect, ...]:
    path = text(arguments.get("path"))
    return (FileRead(path),) if path else ()


def _written(arguments: Mapping[str, Any], details: Mapping[str, Any]) -> tuple[FileEffect, ...]:
    path, content = text(arguments.get("path")), text(arguments.get("content"))
    return (file_written(path, content, details),) if path else ()


def _edited(arguments: Mapping[str, Any], details: Mapping[str, Any]) -> tuple[FileEffect, ...]:
    path = text(arguments.get("path"))
    edits = [(text(edit.get("oldText")), text(edit.get("newText"))) for edit in rows(arguments.get("edits"))]
    diff = (
        _with_sides(text(details.get("patch")))
        or from_numbered(path, text(details.get("diff")))
        or from_replacements(path, edits)
    )
    return (FilePatched(path, diff),) if path and diff else ()


def _with_sides(patch: str) -> str:
    """Return the patch with the prefixes `a/` and `b/`; pi (since 0.87) uses the plain path for both."""
    old, new, hunks = (*patch.split("\n", 2), "", "")[:3]
    if not (old.startswith("--- ") and new.startswith("+++ ") and hunks):
        return ""
    return f"--- a/{old[4:].lstrip('/')}\n+++ b/{new[4:].lstrip('/')}\n{hunks}"


FILE_EFFECTS: Mapping[str, FileEffectsReader] = {"read": _read, "write": _written, "edit": _edited}
