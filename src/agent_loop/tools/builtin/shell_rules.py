"""Deny patterns for commands, and the environment of commands without secrets. Neither is a sandbox.

Deny patterns prevent mistakes of a model: they compare the words of a command, which can always be written in another
way. The filtered environment keeps keys out of the output of programs such as `env`; a command of the same user can
still read them from their source. Only a container or another user protects against a hostile command.
"""

import os
import shlex
from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from itertools import pairwise

DENIED = (
    "rm -rf /", "rm -fr /", "rm -r -f /", "rm -rf /*", "rm -fr /*", "rm -rf ~", "rm -fr ~", "rm -rf ~/", "rm -rf $HOME",
    "mkfs", "mkfs.ext4", "mkfs.xfs", "mkfs.btrfs", "wipefs", "shutdown", "reboot", "halt", "poweroff", ":(){ :|:& };:",
)  # fmt: skip
"""The default deny patterns. Each is a sequence of words."""

SECRETS = (
    "AWS_*", "*_KEY", "*APIKEY", "*_API_KEY_*", "*_KEY_ID", "*TOKEN", "*_TOKEN_*", "*SECRET", "*SECRETS", "*PASSWORD",
    "*PASSWD", "*PASSPHRASE", "*CREDENTIAL", "*CREDENTIALS", "*_PAT", "*_DSN", "*COOKIE", "*DATABASE_URL",
    "*_WEBHOOK_URL",
)  # fmt: skip
"""Patterns of variable names that are likely to contain a secret, in upper case."""

_COMMAND_PREFIXES = frozenset({"-c", "eval"})
"""The words that are followed by another command."""
_MAX_NESTING = 3
"""The depth to which commands inside commands are checked."""


def denied_by(command: str, patterns: Iterable[str]) -> str | None:
    """Return the first pattern whose words occur consecutively in the command, None if the command may run.

    A word of a pattern without a slash also matches a program of that name in any directory.
    """
    word_lists = tuple(_nested_words(command, _MAX_NESTING))
    return next(
        (pattern for pattern in patterns if any(_contains(words, _words(pattern)) for words in word_lists)), None
    )


def without_secrets(variables: Mapping[str, str], keep: Iterable[str] = ()) -> dict[str, str]:
    """Return the environment without variables that look like secrets, except those in `keep`."""
    kept = frozenset(keep)
    return {name: value for name, value in variables.items() if name in kept or not _is_secret(name)}


def _is_secret(name: str) -> bool:
    return any(fnmatchcase(name.upper(), pattern) for pattern in SECRETS)


def _words(command: str) -> list[str]:
    lexer = shlex.shlex(command, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    lexer.commenters = ""
    try:
        return list(lexer)
    except ValueError:  # an unclosed quote
        return command.split()


def _nested_words(command: str, depth: int) -> Iterator[list[str]]:
    words = _words(command)
    yield words
    if depth:
        for before, word in pairwise(words):
            if before in _COMMAND_PREFIXES:
                yield from _nested_words(word, depth - 1)


def _contains(words: list[str], pattern: list[str]) -> bool:
    starts = range(len(words) - len(pattern) + 1) if pattern else range(0)
    return any(all(map(_matches_word, words[start:], pattern)) for start in starts)


def _matches_word(word: str, wanted: str) -> bool:
    return word == wanted or (os.sep not in wanted and word.rpartition(os.sep)[2] == wanted)
