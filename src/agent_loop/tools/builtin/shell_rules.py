"""What a command is not given, and which commands are not run. Neither is a sandbox.

Deny patterns keep a model from a blunder: they look at the words of a command, and there is always another way to write
it. The environment keeps keys out of `env` and out of what programs print: a command of the same user can still read
them where they came from. Against a hostile command only a container or another user helps.
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
"""What no agent is meant to do. Each is a row of words. Source: phi-core, "Shell": deny patterns."""

SECRETS = (
    "AWS_*", "*_KEY", "*APIKEY", "*_API_KEY_*", "*_KEY_ID", "*TOKEN", "*_TOKEN_*", "*SECRET", "*SECRETS", "*PASSWORD",
    "*PASSWD", "*PASSPHRASE", "*CREDENTIAL", "*CREDENTIALS", "*_PAT", "*_DSN", "*COOKIE", "*DATABASE_URL",
    "*_WEBHOOK_URL",
)  # fmt: skip
"""Names of variables that are likely to hold a secret, in capitals."""

_INNER = frozenset({"-c", "eval"})
"""What comes behind these words is a command again."""
_NESTED = 3
"""Commands within commands that are looked into."""


def denied_by(command: str, patterns: Iterable[str]) -> str | None:
    """The first pattern whose words are in the command, one behind the other; None: it may run.

    A word of a pattern without a slash also stands for a program of that name in any directory.
    """
    rows = tuple(_words_within(command, _NESTED))
    return next((pattern for pattern in patterns if any(_has(words, _words(pattern)) for words in rows)), None)


def without_secrets(variables: Mapping[str, str], keep: Iterable[str] = ()) -> dict[str, str]:
    """An environment for commands: without variables that look like secrets, except those to keep."""
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
    except ValueError:  # a quote that is never closed
        return command.split()


def _words_within(command: str, depth: int) -> Iterator[list[str]]:
    words = _words(command)
    yield words
    if depth:
        for before, word in pairwise(words):
            if before in _INNER:
                yield from _words_within(word, depth - 1)


def _has(words: list[str], pattern: list[str]) -> bool:
    starts = range(len(words) - len(pattern) + 1) if pattern else range(0)
    return any(all(map(_is_word, words[start:], pattern)) for start in starts)


def _is_word(word: str, wanted: str) -> bool:
    return word == wanted or (os.sep not in wanted and word.rpartition(os.sep)[2] == wanted)
