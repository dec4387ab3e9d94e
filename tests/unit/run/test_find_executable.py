"""Which program a run starts: by command, by variable or by name; and the error without any of them."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.unit.testing.toy_adapter import toy_adapter

from agent_mux.cli import inputs
from agent_mux.errors import AgentMuxError, ValidationError
from agent_mux.process.executable import find_executable
from agent_mux.sdk.options import RunOptions, validate_options

ANY = replace(toy_adapter(), agent="any", executables=(), takes_command=True, executable_variable="AMUX_ANY")
OWN = toy_adapter()


def program(tmp_path: Path) -> Path:
    path = tmp_path / "agent"
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def test_a_command_is_found_on_path(tmp_path: Path) -> None:
    there = program(tmp_path)
    assert find_executable(ANY, {"PATH": str(tmp_path)}, ("agent", "--acp")) == str(there)
    assert find_executable(ANY, {"PATH": "/nowhere"}, (str(there),)) == str(there)


def test_the_variable_replaces_a_command_of_one_word(tmp_path: Path) -> None:
    assert find_executable(ANY, {"AMUX_ANY": str(program(tmp_path))}) == str(tmp_path / "agent")


def test_a_missing_command_is_an_error_that_names_the_option() -> None:
    with pytest.raises(AgentMuxError, match=r"set command .--command. or AMUX_ANY") as refused:
        find_executable(ANY, {})
    assert refused.value.code == "VALIDATION_ERROR"


def test_a_command_that_does_not_exist_is_an_error() -> None:
    with pytest.raises(
        AgentMuxError,
        match="nobody is neither a program on PATH nor an executable file; install it, or give its path",
    ) as refused:
        find_executable(ANY, {"PATH": "/nowhere"}, ("nobody",))
    assert refused.value.code == "AGENT_NOT_INSTALLED"


def test_agents_with_their_own_program_refuse_a_command() -> None:
    with pytest.raises(AgentMuxError, match=f"takes no command; set {OWN.executable_variable}"):
        find_executable(OWN, {}, (sys.executable,))


@pytest.mark.parametrize("command", ["a string", (1,), ("",), ("a\0b",), 5])
def test_invalid_commands_are_refused(command: Any) -> None:
    with pytest.raises(ValidationError, match="command"):
        validate_options(RunOptions(agent="any", prompt="hi", command=command))


def test_a_command_is_split_like_in_a_shell_without_expansion() -> None:
    assert inputs.command("agent --name 'two words' $HOME") == ("agent", "--name", "two words", "$HOME")


@pytest.mark.parametrize("text", ["", "  ", "agent 'open"])
def test_text_that_cannot_be_split_is_refused(text: str) -> None:
    with pytest.raises(AgentMuxError, match="--command"):
        inputs.command(text)
