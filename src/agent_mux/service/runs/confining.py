"""What a request may touch: files and directories in the roots. Whatever a path leads to counts, not what it says.

It says where a run begins, and what it is handed; an agent that may use a shell goes where its user may go.
"""

import os
from collections.abc import Mapping
from typing import Any

from agent_mux.errors import FieldError, ValidationError
from agent_mux.settings.allowed_directories import Roots


def confined(said: Mapping[str, Any], roots: Roots) -> dict[str, Any]:
    """The same fields of `RunOptions` with the directory in them, and paths resolved. Relative ones: to the first root.

    Raises `ValidationError`, naming the roots, for paths outside of them, and for a directory that is not there.
    """
    result = {**said, "cwd": roots.directory(said.get("cwd"))}
    problems: list[FieldError] = []

    def inside(field: str, path: Any) -> Any:
        if not isinstance(path, str | os.PathLike):
            return path  # what it should be is checked with the other options
        if not roots.holds(path):
            problems.append(FieldError(field, str(path), "a path in " + ", ".join(map(str, roots.directories))))
        return os.path.realpath(roots.default / path)

    for index, one in enumerate(said.get("attachments") or ()):
        inside(f"attachments[{index}].filePath", one.file_path)
    if said.get("agents_doc") is not None:
        result["agents_doc"] = inside("agentsDoc", said["agents_doc"])
    if said.get("skills"):
        result["skills"] = [inside(f"skills[{index}]", one) for index, one in enumerate(said["skills"])]
    if problems:
        raise ValidationError(problems)
    return result
