"""The tools that active skills allow: the union of their `allowed-tools`.

Entries are names of tools of the agent, or the names that are usual in skills, in any case: "Read", "Bash". An entry
with a pattern, "Bash(git:*)", allows a single command with these first words, without any shell syntax.
"""

import re
import shlex
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase

from agent_loop.hooks.contexts import ToolGate
from agent_loop.tools.tool import shell_command_of

USUAL_NAMES: Mapping[str, frozenset[str]] = {
    "read": frozenset({"read_file"}),
    "write": frozenset({"write_file"}),
    "edit": frozenset({"edit", "multi_edit", "apply_patch"}),
    "multiedit": frozenset({"multi_edit"}),
    "ls": frozenset({"ls"}),
    "bash": frozenset({"shell", "shell_output", "shell_stop"}),
    "webfetch": frozenset({"web_fetch"}),
    "todowrite": frozenset({"write_todos"}),
    "task": frozenset({"delegate"}),
    "askuserquestion": frozenset({"ask_user"}),
}
"""Usual names in skills, in lower case, and our tools that do the same."""
_ENTRY = re.compile(r"([^()]+)(?:\(([^()]*)\))?")
_SHELL_SYNTAX = frozenset(";&|<>$`(){}\n\\!*?[]~#")
"""Characters that could make more of a command than its words."""


def is_allowed(context: ToolGate, entries: Iterable[str]) -> bool:
    """Return whether one of the entries allows the call."""
    return any(_allows(entry, context) for entry in entries)


def _allows(entry: str, context: ToolGate) -> bool:
    parsed = _ENTRY.fullmatch(entry)
    if parsed is None:
        return False
    name, pattern = parsed[1].lower(), parsed[2]
    if name.startswith("mcp__"):
        name = name.removeprefix("mcp__")
    names = {context.name.lower(), context.wire_name.lower()}
    if name not in names and context.name not in USUAL_NAMES.get(name, ()):
        return False
    return pattern is None or pattern == "*" or _matches(pattern, context)


def _matches(pattern: str, context: ToolGate) -> bool:
    """Return whether the command of a call has the words of the pattern: all of them, or the first before ":*"."""
    command = None if context.tool is None else shell_command_of(context.tool, context.arguments)
    if command is None or _SHELL_SYNTAX & set(command):
        return False
    try:
        words = shlex.split(command)
    except ValueError:  # an unclosed quote
        return False
    prefix, has_rest = pattern.removesuffix(":*"), pattern.endswith(":*")
    wanted = prefix.split()
    if has_rest:
        return bool(wanted) and words[: len(wanted)] == wanted
    return fnmatchcase(" ".join(words), " ".join(wanted))
