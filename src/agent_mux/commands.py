"""What a command line of a shell would run, as far as that can be known without a shell.

Rules about commands (`policy.py`) are only as good as this. It never guesses in favour of a command: what it does not
understand it says so of, and then no rule that allows applies.
"""

import re
import shlex

_HARMLESS = re.compile(r"(?:(?<=\s)|^)(?:&>|[12]?>)\s*/dev/null(?=[\s;|&]|$)|(?<=\s)2>&1(?=[\s;|&]|$)")
"""Redirections that write no file."""
_UNKNOWABLE = frozenset("$`")
"""What a shell puts other text in the place of."""
_SEPARATORS = frozenset({";", "|", "||", "&", "&&", "|&"})
_PUNCTUATION = ";|&()<>\n"
_WORDS = str.maketrans(dict.fromkeys(";|&()`\"'$<>{}\n\t\r", " "))


def simple_commands(line: str) -> list[tuple[str, ...]] | None:
    """The simple commands of a line, each as its words; None where a shell could run anything else.

    That is the case with substitutions, redirections into files, groups, and quotes that do not end.
    """
    if not _UNKNOWABLE.isdisjoint(line):
        return None
    words = shlex.shlex(_HARMLESS.sub(" ", line).replace("\n", ";"), posix=True, punctuation_chars=_PUNCTUATION)
    words.whitespace_split = True
    words.commenters = ""
    try:
        tokens = list(words)
    except ValueError:
        return None
    return _split(tokens)


def _split(tokens: list[str]) -> list[tuple[str, ...]] | None:
    commands: list[tuple[str, ...]] = []
    words: list[str] = []
    for token in [*tokens, ";"]:
        if set(token) <= set(_PUNCTUATION) and token:
            if token not in _SEPARATORS:
                return None
            commands += [tuple(words)] if words else []
            words = []
        else:
            words.append(token)
    return commands


def begins_with(command: tuple[str, ...], prefix: tuple[str, ...]) -> bool:
    """The first words of a simple command are these, exactly."""
    return command[: len(prefix)] == prefix


def mentions(line: str, prefix: tuple[str, ...]) -> bool:
    """These words stand one after the other anywhere in a line, quoted or not; a program may be named by its path.

    For rules that forbid: rather once too often.
    """
    words = [word.rsplit("/", 1)[-1] for word in line.translate(_WORDS).split()]
    wanted = [prefix[0].rsplit("/", 1)[-1], *prefix[1:]]
    return any(words[at : at + len(wanted)] == wanted for at in range(len(words)))
