"""JSON that commands print is inert on a terminal and unchanged in a pipe."""

import io
import json
import sys

import pytest

from agent_mux.cli.command_output import for_terminal, print_json

HOSTILE = "a\x85\x9b2J\u2028\u202e\u200bb"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_control_characters_are_escaped_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", screen := Terminal())
    print_json({"text": HOSTILE})
    assert screen.getvalue().isascii()
    assert json.loads(screen.getvalue())["data"] == {"text": HOSTILE}


def test_json_in_a_pipe_is_unchanged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    assert for_terminal(HOSTILE) == HOSTILE
