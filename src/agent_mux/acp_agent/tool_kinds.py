"""What an editor shows of a tool call: its kind, its title, the files it is about. From names and inputs; pure.

Agents name their tools as they like. Words that are in nearly all of their names tell the kind; what they do not tell
is `other`, and nothing is made up.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import PurePath
from typing import Any

from acp.schema import AgentPlanUpdate, PlanEntry, ToolCallLocation, ToolKind

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
_STATES = {"pending": "pending", "in_progress": "in_progress", "completed": "completed"}
_ENTRIES = ("todos", "plan", "entries")


def kind_of(name: str) -> ToolKind:
    """The kind of a tool, by its name."""
    words = {word.lower() for word in _WORD.findall(name)}
    return next((kind for kind, known in _KINDS if not words.isdisjoint(known)), "other")


def title_of(name: str, given: Any) -> str:
    """One line that says what is done: the command, or the tool and what it is about."""
    command = command_in(given)
    if command:
        return one_line(command)
    about = next(iter(paths_in(given)), "") or _subject(given)
    return one_line(f"{name} {about}") if about else one_line(name)


def command_in(given: Any) -> str:
    """The command line in an input; empty where there is none."""
    if not isinstance(given, Mapping):
        return ""
    found = next((given[key] for key in _COMMANDS if given.get(key)), "")
    if isinstance(found, list):
        return " ".join(map(str, found))
    return found if isinstance(found, str) else ""


def paths_in(given: Any) -> Iterator[str]:
    """The files in an input."""
    if isinstance(given, Mapping):
        yield from (given[key] for key in _PATHS if isinstance(given.get(key), str) and given[key])


def locations_of(given: Any, cwd: str) -> list[ToolCallLocation]:
    """Where the editor may follow the agent."""
    return [location(path, cwd) for path in paths_in(given)]


def location(path: str, cwd: str) -> ToolCallLocation:
    """A file, by its absolute path, which the protocol asks for."""
    return ToolCallLocation(path=absolute(path, cwd))


def absolute(path: str, cwd: str) -> str:
    """The path from the root."""
    return str(PurePath(cwd) / path)


def plan_of(given: Any) -> AgentPlanUpdate | None:
    """The plan in an input, if a tool keeps one: a list of things to do, each with its state."""
    if not isinstance(given, Mapping):
        return None
    found: list[Any] = next((given[key] for key in _ENTRIES if isinstance(given.get(key), list)), [])
    entries = [entry for item in found if (entry := _plan_entry(item)) is not None]
    if not entries or len(entries) != len(found):
        return None
    return AgentPlanUpdate(session_update="plan", entries=entries)


def _plan_entry(item: Any) -> PlanEntry | None:
    if not isinstance(item, Mapping) or item.get("status") not in _STATES:
        return None
    words = next((item[key] for key in ("content", "step", "description", "title") if item.get(key)), None)
    if not isinstance(words, str):
        return None
    priority = item.get("priority") if item.get("priority") in {"high", "low"} else "medium"
    return PlanEntry.model_validate({"content": words, "priority": priority, "status": item["status"]})


def one_line(text: str) -> str:
    """The beginning of a text, on one line."""
    words = " ".join(text.split())
    return words if len(words) <= LONGEST_TITLE else words[: LONGEST_TITLE - 3] + "..."


def _subject(given: Any) -> str:
    if not isinstance(given, Mapping):
        return ""
    return next((given[key] for key in _SUBJECTS if isinstance(given.get(key), str) and given[key]), "")
