"""`amux serve`: its flags and its announcement."""

import json
import shlex
from importlib import util

import pytest
from tests.unit.cli.conftest import Amux

from agent_mux.cli.command_output import Invocation
from agent_mux.cli.serve_command import _announcement_lines, parse_agent_limits

TOLD = {"url": "http://127.0.0.1:1234", "database": "sqlite:////x", "roots": ["/a", "/b"], "isOpenToOthers": False}


@pytest.mark.parametrize("needs_token", [True, False])
def test_the_announced_commands_are_valid(needs_token: bool) -> None:
    first, *_, start, watch = _announcement_lines({**TOLD, "needsToken": needs_token}, Invocation(no_color=True))
    assert first == "listening on http://127.0.0.1:1234"
    words = shlex.split(start)
    assert words[0] == "curl"
    assert "http://127.0.0.1:1234/v1/runs" in words
    assert json.loads(words[words.index("--json") + 1]) == {"agent": "replay", "prompt": "demo"}
    assert "http://127.0.0.1:1234/v1/runs/RUN_ID/events" in shlex.split(watch)
    for line in (start, watch):
        assert ("Authorization: Bearer $TOKEN" in shlex.split(line)) is needs_token


def test_agent_limits_accept_aliases() -> None:
    assert parse_agent_limits(["claude-code=2", "codex=10"]) == {"claude": 2, "codex": 10}


@pytest.mark.parametrize("words", [("serve",), ("tokens", "list")])
def test_a_missing_extra_is_one_sentence(amux: Amux, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]) -> None:
    real = util.find_spec
    monkeypatch.setattr(util, "find_spec", lambda name, *rest: None if name == "uvicorn" else real(name, *rest))
    done = amux(*words)
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
    assert "requires the extra: pip install 'agent-mux[service]'" in done.err
