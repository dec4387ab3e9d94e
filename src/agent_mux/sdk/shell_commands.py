"""Split shell command lines into simple commands, and estimate the risk of a command."""

import re
import shlex
from itertools import pairwise

from agent_mux.sdk.facts import Risk

_HARMLESS = r"(?:(?<=\s)|^)(?:&>|[12]?>)\s*/dev/null(?=[\s;|&]|$)|(?<=\s)2>&1(?=[\s;|&]|$)"
"""Redirections that do not write a file."""
_SUBSTITUTIONS = frozenset("$`")
"""Characters that a shell replaces by other text."""
_SHELLS = frozenset({"sh", "bash", "dash", "zsh"})
_SCRIPT_FLAGS = frozenset({"-c", "-lc"})
_SEPARATORS = frozenset({";", "|", "||", "&", "&&", "|&"})
_PUNCTUATION = ";|&()<>\n"
_WORD_BREAKS = str.maketrans(dict.fromkeys(";|&()`\"'$<>{}\n\t\r", " "))


def simple_commands(line: str) -> list[tuple[str, ...]] | None:
    """Return the simple commands of a line as tuples of words; None if a shell could run anything else.

    That is possible with substitutions, redirections to files, groups and unterminated quotes. A shell that runs a
    script (`bash -lc '...'`, into which some agents wrap every command) is replaced by the commands of the script.
    """
    if not _SUBSTITUTIONS.isdisjoint(line):
        return None
    words = shlex.shlex(re.sub(_HARMLESS, " ", line).replace("\n", ";"), posix=True, punctuation_chars=_PUNCTUATION)
    words.whitespace_split = True
    words.commenters = ""
    try:
        tokens = list(words)
    except ValueError:
        return None
    return _expand_scripts(_split(tokens))


def _expand_scripts(commands: list[tuple[str, ...]] | None) -> list[tuple[str, ...]] | None:
    if commands is None:
        return None
    expanded: list[tuple[str, ...]] = []
    for words in commands:
        inner = simple_commands(words[2]) if _is_script(words) else [words]
        if inner is None:
            return None
        expanded += inner
    return expanded


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
    """Return whether the command begins with exactly these words."""
    return command[: len(prefix)] == prefix


def find_path_words(line: str) -> list[str]:
    """Return all words of a line that may be file names, including those after a `=`."""
    return line.translate(_WORD_BREAKS).replace("=", " ").split()


def mentions(line: str, prefix: tuple[str, ...]) -> bool:
    """Return whether these words occur consecutively in a line, quoted or not. A program may be given by its path.

    For rules that forbid: a false match is better than a missed one.
    """
    words = [word.rsplit("/", 1)[-1] for word in line.translate(_WORD_BREAKS).split()]
    wanted = [prefix[0].rsplit("/", 1)[-1], *prefix[1:]]
    return any(words[at : at + len(wanted)] == wanted for at in range(len(words)))


HIGH_RISK_PROGRAMS = frozenset({
    "aws", "az", "chmod", "chown", "crontab", "curl", "dd", "doas", "fdisk", "ftp", "gcloud", "gh", "iwr",
    "invoke-webrequest", "kill", "killall", "kubectl", "mkfs", "mount", "nc", "ncat", "pkexec", "pkill", "reboot",
    "remove-item", "rm", "rmdir", "rsync", "scp", "service", "sftp", "shred", "shutdown", "ssh", "su", "sudo",
    "systemctl", "telnet", "truncate", "umount", "wget",
})  # fmt: skip
"""Programs that delete data, use the network or change privileges; they count anywhere in a command."""
HIGH_RISK_SUBCOMMANDS = frozenset({
    ("apt", "install"), ("apt-get", "install"), ("brew", "install"), ("cargo", "publish"), ("docker", "exec"),
    ("docker", "push"), ("docker", "run"), ("git", "clean"), ("git", "clone"), ("git", "fetch"), ("git", "pull"),
    ("git", "push"), ("git", "reset"), ("npm", "ci"), ("npm", "i"), ("npm", "install"), ("npm", "publish"),
    ("pip", "install"), ("pip3", "install"), ("pnpm", "install"), ("terraform", "apply"), ("terraform", "destroy"),
    ("uv", "publish"), ("yarn", "add"), ("yarn", "install"),
})  # fmt: skip
"""Programs that are high-risk with this first argument."""
READ_ONLY_PROGRAMS = frozenset({
    "cat", "date", "df", "diff", "du", "echo", "file", "grep", "head", "id", "ls", "pwd", "rg", "stat", "tail", "tree",
    "uname", "wc", "which", "whoami",
})  # fmt: skip
"""Programs that only read, unless they are combined with others."""
_COMBINING = frozenset(";|&<>`$\n")


def risk_of_command(command: str) -> Risk:
    """Return the risk of running a command line in a shell. Program names match by base name, ignoring case."""
    words = [word.rsplit("/", 1)[-1].lower() for word in command.translate(_WORD_BREAKS).split()]
    if not HIGH_RISK_PROGRAMS.isdisjoint(words) or not HIGH_RISK_SUBCOMMANDS.isdisjoint(pairwise(words)):
        return "high"
    only_reads = bool(words) and words[0] in READ_ONLY_PROGRAMS and not set(command) & _COMBINING
    return "low" if only_reads else "medium"
