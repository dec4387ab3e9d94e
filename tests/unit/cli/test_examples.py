"""The examples in the help of each command are valid command lines."""

from collections.abc import Iterator
from typing import Any

import pytest
from tests.unit.cli.command_lines import amux_calls, check_call
from tests.unit.cli.conftest import Amux

from agent_mux.cli.app import command
from agent_mux.cli.examples import EXAMPLES, examples_of

WITHOUT = {"version", "help"}


def commands(group: Any, *way: str) -> Iterator[str]:
    for name, inner in group.commands.items():
        if hasattr(inner, "commands"):
            yield from commands(inner, *way, name)
        else:
            yield " ".join((*way, name))


def test_every_command_has_an_example() -> None:
    known = set(commands(command()))
    assert {name for name in known if not examples_of(name)} == WITHOUT
    assert set(EXAMPLES) <= known


@pytest.mark.parametrize(
    ("name", "example"), [(name, example) for name, examples in EXAMPLES.items() for example in examples]
)
def test_every_example_is_a_valid_command_line(name: str, example: str) -> None:
    for arguments in amux_calls(example):
        check_call(arguments)
    assert name in {" ".join(words[: len(name.split())]) for words in amux_calls(example)} | {"hooks handle"}


def test_help_shows_the_examples(amux: Amux) -> None:
    told = amux("sessions", "list", "--help").out
    assert "Examples:" in told
    assert "amux sessions list --agent claude --since 7d --sort cost" in told
