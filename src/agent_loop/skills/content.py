"""The instructions of a skill as the model gets them: the body of its file, its directory and the files in it."""

import os
import re
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path

from agent_loop.errors import ToolError
from agent_loop.skill_files import SKILL_FILE, Skill, body_in, xml_text
from agent_loop.workspace import Workspace

MAX_FILE_BYTES = 1 << 20
MAX_BODY = 40_000
"""Characters of instructions; the model reads the rest of longer ones with `skills_read`."""
MAX_RESOURCES = 100
"""Number of files that are listed."""
MAX_VISITED = 2_000
"""Directories that are searched for files."""
COMMAND = re.compile(r"!`([^`\n]+)`")
NOT_RUN = "Commands in !`...` were not run: shell interpolation is off. Run them yourself if you need their output."
_END = re.compile(r"<(?=/skill_content)", re.IGNORECASE)

RunInterpolated = Callable[[str], Awaitable[str]]
"""Runs a command of the instructions and returns its output."""


def read_body(skill: Skill) -> str:
    """Return the instructions of a skill without the front matter. Blocking. Raises `WorkspaceError`."""
    directory = skill.base_dir
    if skill.body is not None or skill.file_path is None or directory is None:
        return (skill.body or "").strip()
    data = Workspace(directory).read_bytes(skill.file_path.name, MAX_FILE_BYTES)
    return body_in(data.decode("utf-8", "replace"))


def resources_of(skill: Skill) -> tuple[str, ...]:
    """Return the files of a skill besides its own, relative to its directory and sorted. Links are left out. Blocking.

    The last entry states that files are left out, if there are too many.
    """
    directory, found = skill.base_dir, []
    if directory is None:
        return ()
    for number, (path, subdirectories, files) in enumerate(os.walk(directory), 1):
        subdirectories[:] = sorted(each for each in subdirectories if not each.startswith("."))
        place = Path(path)
        found += [
            str((place / each).relative_to(directory))
            for each in files
            if not each.startswith(".") and not (place / each).is_symlink() and (place / each) != skill.file_path
        ]
        if len(found) > MAX_RESOURCES or number >= MAX_VISITED:
            break
    shown = sorted(found)[:MAX_RESOURCES]
    return (*shown, "... and more files") if len(found) > MAX_RESOURCES else tuple(shown)


async def interpolate(body: str, run: RunInterpolated) -> str:
    """Return the body with the output of each command in its place; they run one by one."""
    parts, end = [], 0
    for match in COMMAND.finditer(body):
        parts += [body[end : match.start()], await run(match[1])]
        end = match.end()
    return "".join((*parts, body[end:]))


def render_content(skill: Skill, body: str, resources: Iterable[str], notes: Iterable[str] = ()) -> str:
    """Return the instructions as one element, which the body cannot end."""
    shown = body
    if len(body) > MAX_BODY:
        shown = f"{body[:MAX_BODY]}\n[cut: read the rest with skills_read, path {SKILL_FILE}]"
    lines = [f'<skill_content name="{skill.name}">', _END.sub("&lt;", shown), ""]
    if skill.base_dir is not None:
        lines += [
            f"Skill directory: {xml_text(str(skill.base_dir))}",
            "Relative paths in the instructions are relative to it: read its files with skills_read.",
        ]
    if skill.compatibility:
        lines.append(f"Compatibility: {xml_text(skill.compatibility)}")
    if skill.allowed_tools is not None:
        tools = ", ".join(skill.allowed_tools) or "none"
        lines.append(f"Allowed tools while it is active: {xml_text(tools)}, and those of skills")
    lines += notes
    files = [f"<file>{xml_text(each)}</file>" for each in resources]
    lines += ["<skill_resources>", *files, "</skill_resources>"] if files else []
    return "\n".join((*lines, "</skill_content>"))


def directory_of(skill: Skill) -> Path:
    """Return the directory of a skill. Raises `ToolError` if it has no files."""
    if skill.base_dir is None:
        raise ToolError(f"the skill {skill.name!r} has no files; its instructions are complete")
    return skill.base_dir
