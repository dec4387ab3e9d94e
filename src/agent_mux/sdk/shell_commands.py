"""Split shell command lines into simple commands, and estimate the risk of a command."""

import re
import shlex
from itertools import pairwise

from agent_mux.sdk.facts import Risk

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


ALARMING = frozenset({
    "aws", "az", "chmod", "chown", "crontab", "curl", "dd", "doas", "fdisk", "ftp", "gcloud", "gh", "iwr",
    "invoke-webrequest", "kill", "killall", "kubectl", "mkfs", "mount", "nc", "ncat", "pkexec", "pkill", "reboot",
    "remove-item", "rm", "rmdir", "rsync", "scp", "service", "sftp", "shred", "shutdown", "ssh", "su", "sudo",
    "systemctl", "telnet", "truncate", "umount", "wget",
})  # fmt: skip
"""Programs that destroy, reach the network or need privileges, wherever in a command they are named."""
ALARMING_PAIRS = frozenset({
    ("apt", "install"), ("apt-get", "install"), ("brew", "install"), ("cargo", "publish"), ("docker", "exec"),
    ("docker", "push"), ("docker", "run"), ("git", "clean"), ("git", "clone"), ("git", "fetch"), ("git", "pull"),
    ("git", "push"), ("git", "reset"), ("npm", "ci"), ("npm", "i"), ("npm", "install"), ("npm", "publish"),
    ("pip", "install"), ("pip3", "install"), ("pnpm", "install"), ("terraform", "apply"), ("terraform", "destroy"),
    ("uv", "publish"), ("yarn", "add"), ("yarn", "install"),
})  # fmt: skip
"""A program and the word after it."""
READING = frozenset({
    "cat", "date", "df", "diff", "du", "echo", "file", "grep", "head", "id", "ls", "pwd", "rg", "stat", "tail", "tree",
    "uname", "wc", "which", "whoami",
})  # fmt: skip
"""Programs that only read, as long as nothing is combined with them."""
_WORD_BREAKS = str.maketrans(dict.fromkeys(";|&()`\"'$<>{}\n\t\r", " "))
_COMBINING = frozenset(";|&<>`$\n")


def risk_of_command(command: str) -> Risk:
    """The risk of running this in a shell. A program may be named by its path, and in any case of letters."""
    words = [word.rsplit("/", 1)[-1].lower() for word in command.translate(_WORD_BREAKS).split()]
    if not ALARMING.isdisjoint(words) or not ALARMING_PAIRS.isdisjoint(pairwise(words)):
        return "high"
    only_reads = bool(words) and words[0] in READING and not set(command) & _COMBINING
    return "low" if only_reads else "medium"
