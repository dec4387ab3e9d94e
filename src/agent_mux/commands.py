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
_SHELLS = frozenset({"sh", "bash", "dash", "zsh"})
_SCRIPT_FLAGS = frozenset({"-c", "-lc"})
_SEPARATORS = frozenset({";", "|", "||", "&", "&&", "|&"})
_PUNCTUATION = ";|&()<>\n"
_WORDS = str.maketrans(dict.fromkeys(";|&()`\"'$<>{}\n\t\r", " "))


def simple_commands(line: str) -> list[tuple[str, ...]] | None:
    """The simple commands of a line, each as its words; None where a shell could run anything else.

    That is the case with substitutions, redirections into files, groups, and quotes that do not end. A shell that is
    given a script (`bash -lc '...'`, as some agents say every command) counts as what the script runs.
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
    return _unwrapped(_split(tokens))


def _unwrapped(commands: list[tuple[str, ...]] | None) -> list[tuple[str, ...]] | None:
    if commands is None:
        return None
    known: list[tuple[str, ...]] = []
    for words in commands:
        inner = simple_commands(words[2]) if _is_script(words) else [words]
        if inner is None:
            return None
        known += inner
    return known


def _is_script(words: tuple[str, ...]) -> bool:
    return len(words) == 3 and words[0].rsplit("/", 1)[-1] in _SHELLS and words[1] in _SCRIPT_FLAGS


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


def named_words(line: str) -> list[str]:
    """Everything in a line that may be the name of a file; also what follows a `=`."""
    return line.translate(_WORDS).replace("=", " ").split()


def mentions(line: str, prefix: tuple[str, ...]) -> bool:
    """These words stand one after the other anywhere in a line, quoted or not; a program may be named by its path.

    For rules that forbid: rather once too often.
    """
    words = [word.rsplit("/", 1)[-1] for word in line.translate(_WORDS).split()]
    wanted = [prefix[0].rsplit("/", 1)[-1], *prefix[1:]]
    return any(words[at : at + len(wanted)] == wanted for at in range(len(words)))
