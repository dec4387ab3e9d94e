"""Misspelt names of tools in `--allowed-tools` and `--disallowed-tools`."""

import pytest

from agent_loop.cli.errors import UsageError
from agent_loop.cli.protocol import StartCommand
from agent_loop.cli.tool_names import OPTIONAL, check_tool_names

TOOLS = ["read_file", "shell"]


def notes(*, has_servers: bool = False, **names: list[str]) -> list[str]:
    return list(check_tool_names(StartCommand(**names), TOOLS, has_servers=has_servers))


def test_known_and_optional_tools_are_accepted() -> None:
    assert notes(allowed_tools=[*TOOLS, *OPTIONAL], disallowed_tools=[*TOOLS, *OPTIONAL]) == []


def test_misspelt_denial_is_an_error() -> None:
    with pytest.raises(UsageError, match="'shel', so nothing would be disallowed; did you mean 'shell'"):
        notes(disallowed_tools=["shell", "shel"])
    with pytest.raises(UsageError, match=r"'Bash', .*; the tools are delegate, present_plan, read_file, shell, "):
        notes(disallowed_tools=["Bash"])


def test_misspelt_permission_is_a_warning() -> None:
    assert notes(allowed_tools=["shel"]) == [
        "no tool is named 'shel', so nothing more is allowed; did you mean 'shell'?"
    ]


def test_names_of_server_tools_are_accepted_if_there_is_a_server() -> None:
    assert notes(allowed_tools=["time__now"], disallowed_tools=["time__convert"], has_servers=True) == []
    with pytest.raises(UsageError, match="'time__convert'"):
        notes(disallowed_tools=["time__convert"])
    with pytest.raises(UsageError, match="'shel'"):
        notes(disallowed_tools=["shel"], has_servers=True)
