"""Completion of a command line in a shell, from the command catalog: neither typer nor the commands are imported.

The scripts of the shells (`completion_scripts`) run `amux` with two environment variables: the shell, and the command
line up to the cursor. It prints one candidate per line, with a tab and a description where the shell shows one; or,
alone, `:files` or `:directories`, which the shell completes itself.
"""

import os
import re
import shlex
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from agent_mux._util.sanitize import sanitize
from agent_mux.cli.completion_scripts import LINE_VARIABLE, SHELL_VARIABLE, WORDBREAKS_VARIABLE
from agent_mux.cli.completions import DIRECTORIES, FILES, SOURCES, Candidate, CommandLine
from agent_mux.errors import AgentMuxError

_SPECIAL = re.compile(r"[\s'\"$&;|<>()*?#\\]")
_Option = Mapping[str, Any]


def print_candidates() -> int:
    """Print the candidates that a shell requests; none if a file cannot be read, because a shell shows no errors."""
    shell, line = os.environ[SHELL_VARIABLE], os.environ.get(LINE_VARIABLE, "")
    words, quote = split_line(line)
    try:
        found = complete(words)
    except (AgentMuxError, OSError, ValueError):
        return 0
    if isinstance(found, str):
        sys.stdout.write(f":{found}\n" if shell in {"zsh", "fish"} else "")
        return 0
    lines = (_for_bash(one.value, words[-1], quote) if shell == "bash" else _described(one) for one in found)
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    return 0


def split_line(line: str) -> tuple[list[str], str]:
    """Return the words of an unfinished command line, and the quote that is open at its end.

    The last word is completed, and may be empty.
    """
    for quote in ("", '"', "'", "\\"):
        try:
            words = shlex.split(line + quote)
        except ValueError:
            continue
        ends_word = not quote and line[-1:].isspace() and not line.endswith("\\ ")
        return ([*words, ""] if ends_word or not words else words), quote
    return line.split() or [""], ""


def _for_bash(value: str, typed: str, quote: str) -> str:
    """Return what bash inserts: outside of quotes it replaces only what follows the last `:` or `=`."""
    if quote:
        return value
    breaks = os.environ.get(WORDBREAKS_VARIABLE, "")
    start = max((typed.rfind(one) + 1 for one in ":=" if one in breaks), default=0)
    return shlex.quote(value[start:]) if _SPECIAL.search(value) else value[start:]


def _described(candidate: Candidate) -> str:
    description = " ".join(sanitize(candidate.description).split())  # titles of sessions: from an agent
    return f"{candidate.value}\t{description}" if description else candidate.value


def complete(words: Sequence[str]) -> list[Candidate] | str:
    """Return the candidates for the last word, or FILES or DIRECTORIES. `words` begins with the name of the program."""
    from agent_mux.cli.command_catalog import load_catalog

    *before, typed = words[1:] or [""]
    return _Reader(load_catalog(), before).complete(typed)


class _Reader:
    """Reads the words before the cursor: which command they name, and which value the next word is."""

    def __init__(self, catalog: Mapping[str, Any], words: Sequence[str]) -> None:
        self._catalog = catalog
        self._path: tuple[str, ...] = ()
        self._arguments: list[str] = []
        self._values: dict[str, str] = {}
        self._open: _Option | None = None
        """The option whose value follows."""
        self._has_options = True
        for word in words:
            self._read(word)

    @property
    def _command(self) -> Mapping[str, Any]:
        command: Mapping[str, Any] = self._catalog[" ".join(self._path)]
        return command

    def _read(self, word: str) -> None:
        if self._open is not None:
            self._set(self._open, word)
            self._open = None
        elif self._has_options and word == "--":
            self._has_options = False
        elif self._has_options and word.startswith("--"):
            name, is_joined, value = word.partition("=")
            self._read_option(self._find(name), value if is_joined else None)
        elif self._has_options and word.startswith("-") and len(word) > 1:
            self._read_group(word[1:])
        elif " ".join((*self._path, word)) in self._catalog:
            self._path = (*self._path, word)
        else:
            self._arguments.append(word)

    def _read_group(self, letters: str) -> None:
        """Read short options in one word; the rest of it is the value of the first one that takes a value."""
        for position, letter in enumerate(letters):
            option = self._find(f"-{letter}")
            if option is not None and option["value"]:
                self._read_option(option, letters[position + 1 :] or None)
                return

    def _read_option(self, option: _Option | None, value: str | None) -> None:
        if option is None or not option["value"]:
            return
        if value is None:
            self._open = option
        else:
            self._set(option, value)

    def _set(self, option: _Option, value: str) -> None:
        self._values[option["names"][-1]] = value

    def _find(self, name: str) -> _Option | None:
        return next((one for one in self._command["options"] if name in one["names"]), None)

    def complete(self, typed: str) -> list[Candidate] | str:
        if self._open is not None:
            return self._values_of(self._open, typed)
        if self._has_options and typed.startswith("--") and "=" in typed:
            name, _, value = typed.partition("=")
            option = self._find(name)
            found = self._values_of(option, value) if option is not None else []
            return found if isinstance(found, str) else [Candidate(f"{name}={one}", text) for one, text in found]
        if self._has_options and typed.startswith("-"):
            return [
                Candidate(name, option["help"])
                for option in self._command["options"]
                for name in option["names"]
                if name.startswith(typed) and (name.startswith("--") or name == typed)
            ]
        commands = [Candidate(one["name"], one["help"]) for one in self._command["commands"]]
        found = [one for one in commands if one.value.startswith(typed)] if not self._arguments else []
        return found or self._values_of(self._argument(), typed)

    def _argument(self) -> Mapping[str, Any]:
        """Return the argument that the next word is; an empty one if there are no more."""
        known = self._command["arguments"]
        index = len(self._arguments)
        if index < len(known):
            argument: Mapping[str, Any] = known[index]
            return argument
        return known[-1] if known and known[-1].get("usage", "").endswith("...") else {}

    def _values_of(self, parameter: Mapping[str, Any], typed: str) -> list[Candidate] | str:
        kind = parameter.get("complete")
        if kind in (FILES, DIRECTORIES):
            return str(kind)
        found: Iterable[Candidate] = []
        if isinstance(kind, str):
            found = SOURCES[kind](CommandLine(self._agent(), self._values.get("--config-dir", "")))
        elif kind is not None:
            found = map(Candidate, kind)
        matching = [one for one in found if one.value.startswith(typed)]
        return matching if matching or parameter.get("name") != "PATH" else FILES  # an id of a run, or a path

    def _agent(self) -> str:
        """Return the agent on the command line: of an option, else of the argument that is one."""
        named = self._values.get("--agent")
        pairs = zip(self._command["arguments"], self._arguments, strict=False)
        arguments = (word for argument, word in pairs if str(argument.get("complete")).startswith("agents"))
        return named or next(arguments, "")
