"""Patches in the text format of Codex's `apply_patch`, as releases that stored no changes stored them."""

import re
from pathlib import PurePosixPath

from agent_mux_adapters.codex.tools import CodexFileChange, FileChangeKind

_HEREDOC = re.compile(
    r"\s*(?:cd\s+(?P<cd>\S+)\s*&&\s*)?apply_patch\s+<<\s*(?P<quote>['\"]?)(?P<end>\w+)(?P=quote)\n(?P<patch>.*)\n(?P=end)\s*",
    re.DOTALL,
)
_HEADERS = {"*** Add File: ": "add", "*** Delete File: ": "delete", "*** Update File: ": "update"}
_MOVE = "*** Move to: "


def patch_in_command(script: str, cwd: str) -> tuple[CodexFileChange, ...]:
    """Return the changes of a script that only calls `apply_patch`, which Codex carries out itself; else nothing."""
    match = _HEREDOC.fullmatch(script)
    return parse_patch(match["patch"], str(PurePosixPath(cwd, match["cd"] or ""))) if match is not None else ()


def parse_patch(patch: str, cwd: str) -> tuple[CodexFileChange, ...]:
    """Return the changes of a patch, with absolute paths if `cwd` is known. Their hunks have no line numbers."""
    changes: list[tuple[str, str, list[str]]] = []
    moves: dict[int, str] = {}
    for line in patch.splitlines():
        header = next((header for header in _HEADERS if line.startswith(header)), None)
        if header is not None:
            changes.append((_HEADERS[header], str(PurePosixPath(cwd, line.removeprefix(header).strip())), []))
        elif line.startswith(_MOVE) and changes:
            moves[len(changes) - 1] = str(PurePosixPath(cwd, line.removeprefix(_MOVE).strip()))
        elif changes and not line.startswith("*** "):
            changes[-1][2].append(line.removeprefix("+") if changes[-1][0] == "add" else line)
    return tuple(
        CodexFileChange(path, FileChangeKind(kind, moves.get(index)), "".join(f"{line}\n" for line in lines))
        for index, (kind, path, lines) in enumerate(changes)
    )
