"""The rules of one .gitignore, as gitignore(5) has them. Pure.

pathspec answers whether a file is left out on account of itself or of any directory above it, in one expression. A walk
needs to know it of the entry alone (a directory that somebody asked for is searched though it is ignored, and "!" takes
back what a rule said of the entry), and must not be held up by an expression that a hostile repository made.
"""

import re
from dataclasses import dataclass

from agent_loop.workspace.entries import Parts
from agent_loop.workspace.globbing import Names, fits, names_of

_ESCAPED = re.compile(r"\\(.)")
_TRAILING_SPACES = re.compile(r"(?<!\\)[ \t]+$")


@dataclass(frozen=True, slots=True)
class Rule:
    """One line."""

    names: Names
    takes_back: bool
    """Began with "!": what fits is not left out."""
    only_directories: bool


Rules = tuple[Rule, ...]


def rules_of(text: str) -> Rules:
    """Those of all lines that are rules."""
    rules = (_rule(_TRAILING_SPACES.sub("", line.removesuffix("\r"))) for line in text.split("\n"))
    return tuple(rule for rule in rules if rule is not None)


def verdict(rules: Rules, parts: Parts, *, is_directory: bool) -> bool | None:
    """Whether the entry is left out; the last rule that fits decides. None: no rule does."""
    for rule in reversed(rules):
        if (is_directory or not rule.only_directories) and fits(rule.names, parts):
            return not rule.takes_back
    return None


def _rule(line: str) -> Rule | None:
    takes_back = line.startswith("!")
    pattern = line.removeprefix("!")
    if not pattern.strip("/") or line.startswith("#") or re.search(r"(?<!\\)(\\\\)*\\$", pattern):
        return None
    only_directories = pattern.endswith("/")
    names = [_as_fnmatch(name) for name in pattern.strip("/").split("/")]
    if "/" not in pattern[:-1]:
        names.insert(0, "**")
    return Rule(names_of(names), takes_back, only_directories)


def _as_fnmatch(name: str) -> str:
    """Git escapes with a backslash, fnmatch with brackets; git negates a set with ^ as well."""
    plain = _ESCAPED.sub(lambda match: f"[{match[1]}]" if match[1] in "*?[" else match[1], name)
    return plain.replace("[^", "[!")
