"""What an editor shows of a tool call: kind, title, locations, content, diffs and plan. Pure.

Agents name tools freely. Words that are common in tool names determine the kind; all other tools are `other`.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import Any

from acp import text_block
from acp.schema import (
    AgentPlanUpdate,
    ContentToolCallContent,
    FileEditToolCallContent,
    PlanEntry,
    ToolCallLocation,
    ToolKind,
)

from agent_mux.api.task_lists import Task, read_task_list
from agent_mux.sdk import unified_diff

LONGEST_TITLE = 200  # characters
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_KINDS: tuple[tuple[ToolKind, frozenset[str]], ...] = (
    ("execute", frozenset({"bash", "shell", "exec", "execute", "command", "terminal", "run", "powershell"})),
    ("fetch", frozenset({"fetch", "web", "http", "url", "browser"})),
    ("think", frozenset({"think", "todo", "todos", "plan"})),
    ("delete", frozenset({"delete", "remove", "unlink"})),
    ("move", frozenset({"move", "rename"})),
    ("edit", frozenset({"edit", "write", "patch", "apply", "replace", "create", "insert", "str"})),
    ("search", frozenset({"grep", "glob", "search", "find", "ls", "list", "ripgrep"})),
    ("read", frozenset({"read", "view", "cat", "open"})),
)
_PATHS = ("file_path", "filePath", "path", "absolute_path", "filename", "notebook_path", "filepath")
_COMMANDS = ("command", "cmd", "script")
_SUBJECTS = ("pattern", "query", "url", "description", "prompt")


def tool_kind(name: str) -> ToolKind:
    """Return the kind of a tool, from the words in its name."""
    words = {word.lower() for word in _WORD.findall(name)}
    return next((kind for kind, known in _KINDS if not words.isdisjoint(known)), "other")


def tool_title(name: str, given: Any) -> str:
    """Return a one-line title: the command, or the tool with its main argument."""
    command = find_command(given)
    if command:
        return shorten(command)
    about = next(iter(find_paths(given)), "") or _subject(given)
    return shorten(f"{name} {about}") if about else shorten(name)


def find_command(given: Any) -> str:
    """Return the command line in a tool input; empty if there is none."""
    if not isinstance(given, Mapping):
        return ""
    found = next((given[key] for key in _COMMANDS if given.get(key)), "")
    if isinstance(found, list):
        return " ".join(map(str, found))
    return found if isinstance(found, str) else ""


def find_paths(given: Any) -> Iterator[str]:
    """Yield the file paths in a tool input."""
    if isinstance(given, Mapping):
        yield from (given[key] for key in _PATHS if isinstance(given.get(key), str) and given[key])


def tool_locations(given: Any, cwd: str) -> list[ToolCallLocation]:
    """Return the locations at which the editor can follow the agent."""
    return [location(path, cwd) for path in find_paths(given)]


def location(path: str, cwd: str) -> ToolCallLocation:
    """Return the location of a file, with the absolute path that the protocol requires."""
    return ToolCallLocation(path=absolute_path(path, cwd))


def absolute_path(path: str, cwd: str) -> str:
    """Return a path made absolute relative to `cwd`."""
    return str(PurePath(cwd) / path)


def read_plan(given: Any) -> AgentPlanUpdate | None:
    """Return the plan in a tool input: a list of entries with states; None if there is none."""
    entries = [_plan_entry(task) for task in read_task_list(given)]
    return AgentPlanUpdate(session_update="plan", entries=entries) if entries else None


def _plan_entry(task: Task) -> PlanEntry:
    """Return a task as an entry; the protocol has no state for tasks that are cancelled."""
    priority = task.priority if task.priority in ("high", "low") else "medium"
    status = "completed" if task.state == "cancelled" else task.state
    return PlanEntry.model_validate({"content": task.text, "priority": priority, "status": status})


def shorten(text: str) -> str:
    """Return the beginning of a text on one line."""
    words = " ".join(text.split())
    return words if len(words) <= LONGEST_TITLE else words[: LONGEST_TITLE - 3] + "..."


def _subject(given: Any) -> str:
    if not isinstance(given, Mapping):
        return ""
    return next((given[key] for key in _SUBJECTS if isinstance(given.get(key), str) and given[key]), "")


def text_content(words: str) -> ContentToolCallContent:
    """Return a text as the content of a tool call."""
    return ContentToolCallContent(type="content", content=text_block(words))


def output_text(output: Any) -> str:
    """Return the output of a tool as text."""
    if isinstance(output, str):
        return output
    return "" if output is None else json.dumps(output, ensure_ascii=False, indent=1, default=str)


_CONTENTS = ("content", "contents", "file_text", "text")


def patch_diffs(path: str, diff: str, cwd: str) -> list[FileEditToolCallContent]:
    """Return one diff per hunk of a unified diff, each with its context lines."""
    hunks: list[tuple[list[str], list[str]]] = []
    for line in diff.splitlines():
        if line.startswith("@@"):
            hunks.append(([], []))
        elif hunks and not line.startswith("\\"):
            before, after = hunks[-1]
            if not line.startswith("+"):
                before.append(line[1:])
            if not line.startswith("-"):
                after.append(line[1:])
    return [_file_diff(path, cwd, "\n".join(before), "\n".join(after)) for before, after in hunks]


def approval_diffs(diff: str, paths: Sequence[str], cwd: str) -> list[FileEditToolCallContent]:
    """Return the diffs of all files of a unified diff. `paths`: the files that the request names."""
    by_name = {path.lstrip("/"): path for path in paths}
    contents: list[FileEditToolCallContent] = []
    for file in unified_diff.split_files(diff):
        is_deleted = file.new_name == unified_diff.NO_FILE
        name = (file.old_name if is_deleted else file.new_name).partition("/")[2]
        contents += patch_diffs(by_name.get(name, name), "\n".join(file.lines), cwd)
    return contents


def new_file_diffs(path: str, byte_count: int, given: Any, cwd: str) -> list[FileEditToolCallContent]:
    """Return the diff of a new file if the tool input contains its text, recognized by its length in bytes."""
    if not isinstance(given, Mapping):
        return []
    texts = [given[key] for key in _CONTENTS if isinstance(given.get(key), str)]
    found = next((text for text in texts if len(text.encode("utf-8", "replace")) == byte_count), None)
    return [] if found is None else [_file_diff(path, cwd, None, found)]


def _file_diff(path: str, cwd: str, before: str | None, after: str) -> FileEditToolCallContent:
    return FileEditToolCallContent(type="diff", path=absolute_path(path, cwd), old_text=before or None, new_text=after)
