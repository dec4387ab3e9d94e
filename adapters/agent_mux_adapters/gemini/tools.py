"""The tools of Gemini CLI: what their names and inputs mean. Source: the tool definitions of 0.61.0.

Paths in inputs are absolute, or relative to the working directory.
"""

import re
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

from agent_mux.facts import FileEffect, FilePatched, FileRead, FileWritten, Shell
from agent_mux_adapters._dialects import unified_diff
from agent_mux_adapters._dialects.tolerant import text

SHELL = "run_shell_command"
READ = "read_file"
WRITE = "write_file"
REPLACE = "replace"
DELEGATE = "invoke_agent"
SKILL = "activate_skill"
_MCP = re.compile(r"mcp_([^_]+)_(.+)", re.DOTALL)  # the CLI reads its own names like this


def mcp_tool(name: str) -> tuple[str, str] | None:
    """The MCP server and its tool; None for a tool of the CLI itself."""
    match = _MCP.fullmatch(name)
    return (match[1], match[2]) if match is not None else None


def shell_of(name: str, given: Mapping[str, Any], cwd: str) -> Shell | None:
    """The command that a call runs in the foreground."""
    command = text(given.get("command"))
    if name != SHELL or not command or given.get("is_background") is True:
        return None
    place = text(given.get("dir_path"))
    return Shell(command, absolute(place, cwd) if place else None)


def file_effects(name: str, given: Mapping[str, Any], cwd: str, *, was_missing: bool) -> tuple[FileEffect, ...]:
    """What a successful call did to its file, as far as its input tells. `was_missing`: before the call."""
    path = absolute(text(given.get("file_path")), cwd)
    if not path:
        return ()
    match name:
        case "read_file":
            return (FileRead(path),)
        case "write_file":
            return (written(path, text(given.get("content")), created=was_missing),)
        case "replace":
            return _replaced(path, text(given.get("old_string")), text(given.get("new_string")), cwd)
    return ()


def absolute(path: str, cwd: str) -> str:
    """The path as seen from the working directory; empty when there is none."""
    return str(PurePath(cwd, path)) if path else ""


def written(path: str, content: str, *, created: bool) -> FileWritten:
    """A whole file was written."""
    return FileWritten(path, len(content.encode("utf-8", "replace")), created)


def _replaced(path: str, old: str, new: str, cwd: str) -> tuple[FileEffect, ...]:
    if not old:  # that is how the model makes a file with this tool
        return (written(path, new, created=True),)
    diff = unified_diff.from_replacements(path, [(_as_lines(old), _as_lines(new))])
    return (unified_diff.relative_to(cwd, FilePatched(path, diff)),) if diff else ()


def _as_lines(fragment: str) -> str:
    """The replaced part of a file as if it were whole lines: what is around it is not told."""
    return fragment if not fragment or fragment.endswith("\n") else f"{fragment}\n"
