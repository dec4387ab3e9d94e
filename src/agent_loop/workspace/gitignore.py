"""Ignore rules of .gitignore files, as gitignore(5) defines them; the file nearest to an entry takes precedence.

The library pathspec decides about a file together with all directories above it, in one regular expression. A walk
needs the decision for one entry alone: a directory that is named explicitly is searched although it is ignored, and a
"!" rule reverts a rule about the entry. It must also stay fast for patterns from a hostile repository.
"""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from agent_loop.errors import WorkspaceError
from agent_loop.workspace.entries import DirectoryEntry, Parts, PathLike
from agent_loop.workspace.globs import CompiledPattern, compile_names, matches_parts

MAX_IGNORE_BYTES = 1024 * 1024
"""The largest .gitignore that is read; rules of a larger one do not apply."""
_ESCAPED = re.compile(r"\\(.)")
_TRAILING_SPACES = re.compile(r"(?<!\\)[ \t]+$")


@dataclass(frozen=True, slots=True)
class IgnoreRule:
    """The rule of one line of a .gitignore."""

    names: CompiledPattern
    is_negated: bool
    """Whether the line begins with "!": a matching entry is not ignored."""
    only_directories: bool


class IgnoreFileReader(Protocol):
    """The part of a workspace that reads ignore files."""

    def stat(self, path: PathLike, *, follow: bool = True) -> DirectoryEntry | None:
        """Return the entry at `path`, None if there is none."""
        ...

    def read_bytes(self, path: PathLike, max_bytes: int) -> bytes:
        """Return the content of a file of at most `max_bytes`."""
        ...


class IgnoreFiles:
    """The .gitignore files in `root` and below; each file is read at most once."""

    def __init__(self, workspace: IgnoreFileReader, root: Path) -> None:
        self._workspace = workspace
        self._root = root
        self._rules: dict[Parts, tuple[IgnoreRule, ...]] = {}

    def excludes(self, parts: Parts, *, is_directory: bool) -> bool:
        """Whether rules ignore this entry itself, without regard to the directories above it."""
        if parts[-1] == ".git":
            return True
        for depth in range(len(parts) - 1, -1, -1):
            ignored = match_rules(self._rules_of(parts[:depth]), parts[depth:], is_directory=is_directory)
            if ignored is not None:
                return ignored
        return False

    def hides(self, parts: Parts, *, below: int) -> bool:
        """Whether a file or a directory on the path to it is ignored.

        The first `below` components were requested explicitly and count as not ignored.
        """
        directories = (parts[:end] for end in range(below + 1, len(parts)))
        return any(self.excludes(each, is_directory=True) for each in directories) or self.excludes(
            parts, is_directory=False
        )

    def _rules_of(self, directory: Parts) -> tuple[IgnoreRule, ...]:
        if directory not in self._rules:
            self._rules[directory] = self._read(self._root.joinpath(*directory, ".gitignore"))
        return self._rules[directory]

    def _read(self, path: Path) -> tuple[IgnoreRule, ...]:
        try:
            entry = self._workspace.stat(path, follow=False)
            if entry is None or entry.kind != "file":  # git does not follow links here either
                return ()
            data = self._workspace.read_bytes(path, MAX_IGNORE_BYTES)
        except WorkspaceError:
            return ()
        return parse_rules(data.decode("utf-8", "surrogateescape").removeprefix("\ufeff"))


def parse_rules(text: str) -> tuple[IgnoreRule, ...]:
    """Parse the text of a .gitignore; comments, blank and invalid lines are skipped."""
    rules = (_parse_rule(_TRAILING_SPACES.sub("", line.removesuffix("\r"))) for line in text.split("\n"))
    return tuple(rule for rule in rules if rule is not None)


def match_rules(rules: tuple[IgnoreRule, ...], parts: Parts, *, is_directory: bool) -> bool | None:
    """Return whether the last matching rule ignores the entry, None if no rule matches."""
    for rule in reversed(rules):
        if (is_directory or not rule.only_directories) and matches_parts(rule.names, parts):
            return not rule.is_negated
    return None


def _parse_rule(line: str) -> IgnoreRule | None:
    is_negated = line.startswith("!")
    pattern = line.removeprefix("!")
    if not pattern.strip("/") or line.startswith("#") or re.search(r"(?<!\\)(\\\\)*\\$", pattern):
        return None
    only_directories = pattern.endswith("/")
    names = [_to_fnmatch(name) for name in pattern.strip("/").split("/")]
    if "/" not in pattern[:-1]:
        names.insert(0, "**")
    return IgnoreRule(compile_names(names), is_negated, only_directories)


def _to_fnmatch(name: str) -> str:
    """Translate git's escapes: a backslash becomes brackets, and the negated set "[^" becomes "[!"."""
    plain = _ESCAPED.sub(lambda match: f"[{match[1]}]" if match[1] in "*?[" else match[1], name)
    return plain.replace("[^", "[!")
