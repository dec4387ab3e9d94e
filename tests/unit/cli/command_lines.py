"""Checks that a documented command line is one that `amux` accepts."""

import shlex
from collections.abc import Iterator
from typing import Any

from agent_mux.cli.app import command

SEPARATORS = {"|", "||", "&&", ";", "&"}
REDIRECTIONS = {">", ">>", "<", "2>", "2>&1"}


def amux_calls(line: str) -> Iterator[list[str]]:
    """Yield the arguments of each `amux` in a line of a shell, without redirections."""
    words: list[str] = []
    for word in [*shlex.split(line, comments=True), ";"]:
        if word in SEPARATORS:
            if words[:1] == ["amux"]:
                yield words[1 : next((at for at, one in enumerate(words) if one in REDIRECTIONS), len(words))]
            words = []
        else:
            words.append(word)


def check_call(arguments: list[str]) -> None:
    """Raise if `amux` does not accept the arguments."""
    group: Any = command()
    if not arguments or arguments[0].startswith("-"):
        group.make_context("amux", list(arguments), resilient_parsing=True)
        return
    context, one, rest, called = group.make_context("amux", [], resilient_parsing=True), group, arguments, ""
    while hasattr(one, "commands"):
        called, one, rest = one.resolve_command(context, rest)
    one.make_context(called, list(rest), parent=context)
