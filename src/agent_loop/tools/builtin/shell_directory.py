"""The working directory of the shell, which holds from one command to the next as in a terminal.

A command reports the directory in which it ends through an inherited file, by a trap of bash. It is kept in the state
of the session, only while it is a directory of the workspace.
"""

from pathlib import Path
from typing import IO

from agent_loop.tools.tool import ToolContext

STATE_KEY = "shell"
_MAX_PATH = 16_384
_SCRIPT = "trap 'pwd -P 2>/dev/null >&{descriptor}' EXIT; eval \"$1\""
"""A trap of the command itself replaces this one; then the directory is unchanged."""


def reporting_argv(bash: str, line: str, descriptor: int) -> tuple[str, ...]:
    """Return the command that runs `line` with bash and then writes its working directory to `descriptor`."""
    return bash, "-c", _SCRIPT.format(descriptor=descriptor), "bash", line


def last_directory(context: ToolContext, root: Path) -> Path:
    """Return the directory in which the last command ended, `root` if there is none or it is gone."""
    stored = context.state.extra.get(STATE_KEY)
    kept = stored.get("directory") if isinstance(stored, dict) else None
    path = Path(kept) if isinstance(kept, str) else root
    return path if is_inside(context, path) else root


def remember_directory(context: ToolContext, before: Path, report: IO[bytes] | None) -> list[str]:
    """Store the directory that a command reported, if it is one of the workspace; return notes for the model.

    `before` is the directory in which it began, `report` the file with its report; None: it has none.
    """
    path = before if report is None else _reported(report) or before
    notes = []
    if context.workspace is not None and not path.is_dir():
        path = context.workspace.root
        notes.append(f"(the working directory was removed: the next command starts in {path})")
    elif not is_inside(context, path):
        notes.append(f"({path} is outside of the workspace: the next command starts in {before} again)")
        path = before
    if context.workspace is not None and path != context.workspace.root:
        context.state.extra[STATE_KEY] = {"directory": str(path)}
        return [*notes, f"(working directory: {path})"]
    context.state.extra.pop(STATE_KEY, None)
    return notes


def is_inside(context: ToolContext, path: Path) -> bool:
    """Whether a path is a directory of the workspace, links resolved."""
    if context.workspace is None:
        return False
    try:
        resolved = path.resolve()
        roots = (context.workspace.root, *context.workspace.readable)
        return resolved.is_dir() and any(resolved.is_relative_to(root) for root in roots)
    except (OSError, RuntimeError):
        return False


def _reported(report: IO[bytes]) -> Path | None:
    report.seek(0)
    text = report.read(_MAX_PATH).decode("utf-8", "replace").removesuffix("\n")
    return Path(text) if text.startswith("/") and "\ufffd" not in text else None
